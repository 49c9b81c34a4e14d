"""A drain that ends while a change is pending, on each NOS: confirmed, rolled back, or reverted by its timer.

By default on one NOS: the tests of each driver drain it across a change, too.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from netkit.platforms.compare import MODELS
from netkit.platforms.config import Config
from netkit.platforms.driver import Candidate, ConfirmsFirst, Driver
from tests.deploy.fleet import Fleet, built
from tests.deploy.live_scene import values
from tests.lab.running import needs_lab, running, until, write_fabric
from tests.lanes import daily

pytestmark = needs_lab
SPINE = "spine01"
CHANGE = {"ceilings": {"hosts_per_unit": 8}}
LONG_S, SHORT_S = 600, 12


@pytest.fixture(scope="module", params=daily(["nvue", "sonic", "eos", "frr"], "nvue"))
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Boot a fabric of 2 leaves and 2 spines, and an intent that differs in its filters."""
    platform = request.param
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), values(platform)), name=f"d{platform[0]}") as lab:
        yield Fleet(lab, Path(), built(values(platform, CHANGE)))


@contextmanager
def opened(fleet: Fleet) -> Iterator[Driver]:
    driver = fleet.connect(SPINE)
    driver.open()
    try:
        yield driver
    finally:
        driver.close()


def runs(fleet: Fleet, driver: Driver) -> Config:
    """The running configuration of the spine, which a new connection reads the same."""
    model = MODELS[fleet.fabric.switch(SPINE).platform]
    intended = fleet.intended()[SPINE]
    return model.parse({file: text for file, text in driver.running_files().items() if file in intended and text})


def is_drained(fleet: Fleet) -> bool:
    """Whether the spine asks its neighbors to avoid it."""
    if fleet.fabric.switch(SPINE).platform == "eos":
        return "NETKIT-DRAIN" in fleet.lab.shell(SPINE, "FastCli -p 15 -c 'show running-config'")
    return "bgp graceful-shutdown" in fleet.lab.run(SPINE, "vtysh", "-c", "show running-config")


def applied(fleet: Fleet, driver: Driver, revert_s: int) -> None:
    """Drain, and apply the change."""
    plan = fleet.plan().device(SPINE)
    assert plan is not None
    driver.drain()
    assert is_drained(fleet)
    driver.load_candidate(Candidate(fleet.intended()[SPINE], plan.changes, plan.way.method))
    driver.commit_config(message="test", revert_in=revert_s)
    assert is_drained(fleet)


def startup(driver: Any) -> str:
    """The startup configuration of the spine by NAPALM's getter, without comments, which EOS drops when it saves."""
    rows = str(driver.get_config("startup")["startup"]).splitlines()
    assert rows
    return "\n".join(row for row in rows if not row.lstrip().startswith("!"))


@pytest.mark.parametrize("is_drained_again", [False, True])
def test_a_rolled_back_change_leaves_no_trace(fleet: Fleet, *, is_drained_again: bool) -> None:
    with opened(fleet) as driver:
        driver.drain()
        driver.undrain()  # so that startup is as the switch itself writes it
        before, saved = runs(fleet, driver), startup(driver)
        applied(fleet, driver, LONG_S)
        intended = runs(fleet, driver)
        assert intended != before
        driver.undrain()
        assert not is_drained(fleet)
        if is_drained_again:
            driver.drain()
            assert is_drained(fleet)
    with opened(fleet) as driver:
        assert driver.has_pending_commit()
        assert runs(fleet, driver) == intended
        assert startup(driver) == saved
        driver.rollback()
        assert not driver.has_pending_commit()
        driver.discard_config()
        driver.undrain()
        assert runs(fleet, driver) == before
        assert startup(driver) == saved
    assert not is_drained(fleet)


def test_an_expired_timer_restores_everything_but_the_drain(fleet: Fleet) -> None:
    with opened(fleet) as driver:
        before, saved = runs(fleet, driver), startup(driver)
        applied(fleet, driver, SHORT_S)
        driver.undrain()
        until(lambda: not driver.has_pending_commit(), "the timer has run out", SHORT_S * 5)
        time.sleep(1)
    with opened(fleet) as driver:
        driver.undrain()
        assert runs(fleet, driver) == before
        assert startup(driver) == saved
    assert not is_drained(fleet)


def test_a_confirmed_change_is_saved_without_the_drain(fleet: Fleet) -> None:
    with opened(fleet) as driver:
        saved = startup(driver)
        applied(fleet, driver, LONG_S)
        intended = runs(fleet, driver)
        assert not isinstance(driver, ConfirmsFirst) or not driver.confirms_first
        driver.undrain()
        driver.confirm_commit()
        assert not driver.has_pending_commit()
        assert runs(fleet, driver) == intended
        assert startup(driver) != saved
    assert not is_drained(fleet)
    assert fleet.lab.lab("restart", SPINE).returncode == 0
    with opened(fleet) as driver:
        assert runs(fleet, driver) == intended
    assert not is_drained(fleet)

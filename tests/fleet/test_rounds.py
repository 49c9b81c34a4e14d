"""One round of a fabric at a time at each site, whoever begins it and whatever dies."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.fleet import link as linking
from netkit.fleet.answer import JobAnswer, LostJob
from netkit.fleet.coordinator import Coordinator, RoundBusyError
from netkit.fleet.link import BrokerLink, RoundEndingError
from netkit.fleet.rabbitmq import round_queue
from tests.command import NETKIT, ROOT, environment, run
from tests.fleet.bed import FABRIC, PATIENCE_S, Bed, eventually, job, password
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.fleet.repository import FabricRepository, fabric_repository

pytestmark = needs_rabbitmq
CHECK = "check of inventory/tokyo"
BUSY = "another check of inventory/tokyo is running at the site tokyo, or was killed within the last minutes"


@pytest.fixture(autouse=True)
def _brief_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "ROUND_LIMITS", {"x-expires": 4000})
    monkeypatch.setattr(linking, "ENDED_LIMITS", {"x-expires": 3000})


@pytest.fixture(autouse=True)
def _empty_queues(fleet_bed: Bed) -> Iterator[None]:
    yield
    fleet_bed.end_workers()
    fleet_bed.purge()


def is_free(fleet_bed: Bed, name: str = CHECK, *sites: str) -> bool:
    with fleet_bed.coordinator() as other:
        try:
            other.hold(name, sites or ("tokyo",))
        except RoundBusyError:
            return False
    return True


def break_off(fleet: Coordinator) -> None:
    """End the connections without a word, as the death of a coordinator does."""
    for site in fleet._sites.values():  # noqa: SLF001
        assert site.link is not None
        site.link.detach()
        site.link = None


def test_a_second_round_is_refused_until_the_first_has_ended(fleet_bed: Bed) -> None:
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        with fleet_bed.coordinator() as second, pytest.raises(RoundBusyError, match=f"{BUSY}; nothing was begun"):
            second.hold(CHECK, ["tokyo"])
        assert is_free(fleet_bed, "backup of inventory/tokyo")
        assert is_free(fleet_bed, "check of inventory/other")
        assert is_free(fleet_bed, CHECK, "osaka")
        assert not is_free(fleet_bed, CHECK, "osaka", "tokyo")
        assert is_free(fleet_bed, CHECK, "osaka"), "what is refused at one site is held at none"
        time.sleep(4.5)
        assert not is_free(fleet_bed), "it does not expire while it is held"
    assert is_free(fleet_bed)


def test_a_killed_coordinator_keeps_its_round_while_workers_may_go_on(fleet_bed: Bed) -> None:
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        break_off(first)
    assert not is_free(fleet_bed)
    eventually(lambda: is_free(fleet_bed))


def test_a_round_waits_until_the_jobs_of_one_that_was_given_up_have_ended(fleet_bed: Bed, tmp_path: Path) -> None:
    fleet_bed.worker("tokyo", "unheard", "slow", GATE=str(tmp_path / "gate"))
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        next(first.run([job()]))
    began_s, lines = time.monotonic(), list[str]()
    with fleet_bed.coordinator(lines.append) as second:
        second.hold(CHECK, ["tokyo"])
    assert time.monotonic() - began_s > 1.5
    assert lines == ["tokyo: waits, since jobs of a round that was given up may still run"]
    assert is_free(fleet_bed)


def test_a_coordinator_that_connects_again_goes_on_with_its_round(fleet_bed: Bed, tmp_path: Path) -> None:
    worker = fleet_bed.worker("tokyo", "steady", "slow", GATE=str(tmp_path / "gate"))
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        events = first.run([job(within_s=120)])
        next(events)
        break_off(first)
        list(first._step(0.5))  # noqa: SLF001
        assert not is_free(fleet_bed)
        (tmp_path / "gate").touch()
        answers = [event for event in events if isinstance(event, JobAnswer)]
    assert [event.payload for event in answers] == [
        f"first of {worker.process.pid}".encode(),
        f"tokyo leaf01 {worker.process.pid}".encode(),
    ]
    assert is_free(fleet_bed)


def test_jobs_are_lost_if_another_round_has_begun_meanwhile(fleet_bed: Bed) -> None:
    with fleet_bed.coordinator() as first:
        first.hold(CHECK, ["tokyo"])
        break_off(first)
        eventually(lambda: is_free(fleet_bed))
        with fleet_bed.coordinator() as second:
            second.hold(CHECK, ["tokyo"])
            one = job()
            lost = [event for event in first.run([one]) if isinstance(event, LostJob)]
            assert [(event.job.nonce, event.reason) for event in lost] == [(one.nonce, BUSY)]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> FabricRepository:
    return fabric_repository(tmp_path_factory.mktemp("rounds") / "origin", FABRIC["tokyo"])


@pytest.mark.parametrize("verb", ["check", "snapshot", "backup"])
def test_a_verb_is_refused_with_its_own_code(
    verb: str, origin: FabricRepository, fleet_bed: Bed, tmp_path: Path
) -> None:
    out = {
        "check": ("--store", tmp_path / "store.db"),
        "snapshot": ("-o", tmp_path / "out.json"),
        "backup": ("-o", tmp_path),
    }
    variables: dict[str, Any] = {
        "NETKIT_SECRET_BROKER": password(fleet_bed.home),
        "NETKIT_STORE": str(tmp_path / "store.db"),
    }
    with fleet_bed.coordinator() as first:
        first.hold(f"{verb} of {FABRIC['tokyo']}", ["tokyo"])
        done = run(
            *(verb, "--fabric", origin.folder / FABRIC["tokyo"], "--fleet", fleet_bed.home), *out[verb], **variables
        )
    assert (done.returncode, done.stdout) == (5, "")
    assert f"{BUSY.replace('check', verb)}; nothing was begun; wait for it to finish" in done.stderr


def test_sigterm_gives_a_round_up(origin: FabricRepository, fleet_bed: Bed, tmp_path: Path) -> None:
    words = ("backup", "--fabric", origin.folder / FABRIC["tokyo"], "--fleet", fleet_bed.home, "-o", tmp_path / "saved")
    variables = {"NETKIT_SECRET_BROKER": password(fleet_bed.home)}
    process = subprocess.Popen([*NETKIT, *map(str, words)], cwd=ROOT, env=environment(**variables))
    name = f"backup of {FABRIC['tokyo']}"
    eventually(lambda: round_queue(name) in fleet_bed.server.control("list_queues", "-p", "netkit.tokyo", "name"))
    process.terminate()
    assert process.wait(PATIENCE_S) == 130
    vhost, credentials = fleet_bed.settings.virtual_host("tokyo"), fleet_bed.credentials()
    user = fleet_bed.settings.user("coordinator")
    with (
        BrokerLink(fleet_bed.settings.broker, vhost, user, credentials) as link,
        pytest.raises(RoundEndingError, match="jobs of a round that was given up may still run"),
    ):
        link.hold_round(name, "0" * 32)

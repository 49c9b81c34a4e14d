"""Deploy from empty, change, remove, redeploy and roll back on every platform; no secret is printed.

By default one platform runs all of it, another from empty and back: the tests of their drivers cover the rest.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from netkit.deploy import Journal, Outcome
from netkit.deploy.model import DeployEvent
from tests.deploy.fleet import Fleet, built, secret
from tests.deploy.live_scene import merged, reasons, results, values
from tests.lab.running import needs_lab, running, write_fabric
from tests.lanes import daily

pytestmark = needs_lab
FIRST: dict[str, Any] = {"rails": 1, "units": [{"unit": 1, "hosts": 2}]}
"""A leaf with two hosts below two spines."""
ECN: dict[str, Any] = {"lossless": {"ecn": {400: {"min_bytes": 200_000, "max_bytes": 900_000}}}}
TIMERS: dict[str, Any] = {"routing": {"keepalive_s": 2, "hold_s": 6}}
CHANGES = {"nvue": ECN, "sonic": ECN, "eos": {**ECN, **TIMERS}, "frr": {**TIMERS, "services": {"ntp": ["192.0.2.9"]}}}
SECRETS = ("SNMP_AUTH", "SNMP_PRIV", "LOGIN_HASH")
LESS: dict[str, Any] = {"units": [{"unit": 1, "hosts": 1}], "services": {"dns": None}}
"""A host that leaves takes its ports, their queues and their watchdogs with it."""


def fleets(platform: str, first: Fleet) -> tuple[Fleet, Fleet, Fleet]:
    """The intended switches at first, after a change, and after a removal."""
    change = merged({**FIRST}, CHANGES[platform])
    changed = replace(first, fabric=built(values(platform, change)))
    return first, changed, replace(first, fabric=built(values(platform, {**change, **LESS})))


def deployed(fleet: Fleet) -> Journal:
    """Deploy until the plan is empty."""
    journal = fleet.journal()
    outcome = fleet.apply(journal=journal, is_disruptive_allowed=True)
    assert outcome.exit_code == 0, reasons(outcome)
    assert "done" in results(outcome).values()
    again = fleet.apply()
    assert (again.exit_code, set(results(again).values())) == (0, {"unchanged"})
    return journal


def taken_back(outcome: Outcome) -> bool:
    """Whether every device runs what it ran before."""
    assert set(results(outcome).values()) <= {"done", "unchanged"}, reasons(outcome)
    return outcome.exit_code == 0


@pytest.mark.parametrize("platform", daily(["nvue", "sonic", "eos", "frr"], "nvue"))
def test_from_empty_then_a_change_then_a_removal_and_everything_rolled_back(platform: str, tmp_path: Path) -> None:
    assert_goes_and_comes_back(platform, tmp_path, 3)


@pytest.mark.parametrize("platform", daily(["sonic", "eos", "frr"], "sonic"))
def test_from_empty_and_back(platform: str, tmp_path: Path) -> None:
    assert_goes_and_comes_back(platform, tmp_path, 1)


def assert_goes_and_comes_back(platform: str, tmp_path: Path, count: int) -> None:
    """Deploy this many of the fleets in order, then roll each back."""
    intent = values(platform, FIRST)
    reported: list[DeployEvent] = []
    with running(write_fabric(tmp_path / "fabric", intent), "--bare", name="b") as lab:
        first = Fleet(lab, tmp_path / "runs", built(intent), on_event=reported.append)
        was = first.configs()
        assert set(was) == set(first.names)
        steps = []
        for fleet in fleets(platform, first)[:count]:
            steps.append((deployed(fleet), was))
            was, before = fleet.configs(), was
            assert was != before
        for journal, before in reversed(steps):
            assert taken_back(first.undo(journal, is_disruptive_allowed=True))
            assert first.configs() == before
    assert "@secret:" in repr(first.intended())
    left = [file.read_bytes().decode("latin-1") for file in first.runs.rglob("*") if file.is_file()]
    assert left
    assert reported
    assert not [word for word in map(secret, SECRETS) if word in "".join(left) or word in repr(reported)]

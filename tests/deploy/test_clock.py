"""A wall clock that is set during a deploy, or before its resume, changes only the times that people read."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.deploy import DeviceResult, Journal, Outcome, Phase
from netkit.deploy.clock import CLOCK
from netkit.deploy.journal import CONFIRMED, JOURNAL, JournalEntry
from netkit.errors import DeployError
from tests.deploy import promise
from tests.deploy.fake import Fault, Killed
from tests.deploy.scene import Scene, scene
from tests.deploy.test_promises import BROKEN, CHANGE, SETTINGS, Cut, broken

HOUR_S = 3600.0
JUMP = st.sampled_from((-HOUR_S, HOUR_S, -1e9, 1e9))


def steps(journal: Journal) -> list[JournalEntry]:
    return [replace(entry, at_s=0.0) for entry in journal.entries()]


def rolled(change: str, faults: dict[str, list[Fault]], jumps: dict[int, float]) -> tuple[object, ...]:
    """Deploy, and set the clock before some operations on devices; return everything observable."""
    operations = 0

    def strike(_device: str, _operation: str) -> None:
        nonlocal operations
        operations += 1
        found.time.set_s += jumps.get(operations, 0.0)

    with scene(change) as found:
        broken(found, faults)
        found.gate, found.strike = found.sessions(), strike
        journal = found.journal()
        outcome = found.apply(journal, max_fail=2)
        events = [(event.phase, event.device, event.at_s) for event in found.events]
        return replace(outcome, run=""), events, steps(journal), found.time.now_s


@SETTINGS
@given(change=CHANGE, faults=BROKEN, jumps=st.dictionaries(st.integers(1, 150), JUMP, min_size=1, max_size=3))
def test_setting_the_clock_during_a_deploy_changes_nothing(
    change: str, faults: dict[str, list[Fault]], jumps: dict[int, float]
) -> None:
    assert rolled(change, faults, jumps) == rolled(change, faults, {})


def killed(found: Scene, line: int) -> tuple[Journal, Outcome | None]:
    journal = Cut(found.journal().folder, found.time.clock)
    journal.left = line
    try:
        return journal, found.apply(journal, max_fail=1)
    except Killed:
        journal.close()
        return journal, None


def gone_on_with(line: int, later_s: float, set_s: float) -> tuple[object, ...]:
    with scene("asn") as found:
        journal, outcome = killed(found, line)
        found.wait(later_s)
        found.time.set_s = set_s
        outcome = outcome or found.resume(journal)
        return replace(outcome, run=""), steps(journal), found.time.now_s


@SETTINGS
@given(line=st.integers(1, 90), later_s=st.sampled_from((0.0, 30.0, 119.0, 121.0, 1000.0)), set_s=JUMP)
def test_setting_the_clock_before_a_resume_changes_nothing(line: int, later_s: float, set_s: float) -> None:
    assert gone_on_with(line, later_s, set_s) == gone_on_with(line, later_s, 0.0)


@SETTINGS
@given(
    line=st.integers(1, 90),
    later_s=st.sampled_from((0.0, 30.0, 119.0, 121.0, 1000.0)),
    set_s=st.sampled_from((0.0, -HOUR_S, HOUR_S, -1e9, 1e9)),
    boot=st.sampled_from(("another", "")),
)
def test_after_a_reboot_no_clock_is_trusted(line: int, later_s: float, set_s: float, boot: str) -> None:
    with scene("asn") as found:
        journal, outcome = killed(found, line)
        found.wait(later_s)
        found.time.set_s, found.time.boot = set_s, boot
        began_s = found.time.now_s
        outcome = outcome or found.resume(journal)
        promise.check(found, outcome)
        assert {one.result for one in outcome.devices} <= {DeviceResult.DONE, DeviceResult.UNCHANGED}, outcome
        assert found.time.now_s - began_s < 20_000


def test_runs_are_in_order_although_the_clock_was_set_back() -> None:
    with scene() as found:
        names = []
        for set_s in (0.0, -HOUR_S, -2 * HOUR_S, 0.0):
            found.time.set_s = set_s
            journal = found.journal()
            found.apply(journal)
            names.append(journal.run)
            found.plan = found.replan()
        assert names == sorted(names)


def test_the_monotonic_clock_is_shared_by_all_processes_of_a_machine() -> None:
    before_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before_s <= CLOCK.steady_s() <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert CLOCK.boot_id() == CLOCK.boot_id() != ""


@pytest.mark.parametrize("boot", ["", "another"])
def test_the_journal_has_the_boot_id_where_a_time_matters(boot: str) -> None:
    with scene() as found:
        found.time.boot = boot
        journal = found.journal()
        found.apply(journal, limit=("leaf01",))
        counted = {entry.step: (entry.boot, entry.steady_s > 0) for entry in journal.entries() if entry.revert_s}
        assert counted == {"commit": (boot, True)}


@pytest.mark.parametrize("happens", ["nothing", "clock put back", "its time is over", "confirmed", "damaged"])
def test_no_deploy_starts_while_a_killed_one_may_still_be_reverted(happens: str) -> None:
    with scene() as found:
        earlier = found.journal()
        earlier.folder.mkdir(parents=True)
        earlier.step(Phase.COMMIT, "leaf01", wave=1, revert_s=found.options.revert_s)
        match happens:
            case "clock put back":
                found.time.set_s = -HOUR_S
            case "its time is over":
                found.time.wait(found.options.revert_s)
            case "confirmed":
                earlier.step(CONFIRMED, "leaf01", wave=1)
            case "damaged":  # it cannot be resumed
                (earlier.folder / JOURNAL).write_text("{}\n", encoding="utf-8")
        earlier.close()
        if happens in {"nothing", "clock put back"}:
            (earlier.folder.parent / "old-runs").mkdir(exist_ok=True)
            with pytest.raises(DeployError, match=rf"run {earlier.run} was interrupted: leaf01 may still revert"):
                found.apply()
            assert sum(device.writes for device in found.devices.values()) == 0
        else:
            assert found.apply().exit_code == 0

"""The text of a deploy's outcome."""

from dataclasses import replace

import pytest

from netkit.deploy import ConfigState, DeviceOutcome, DeviceResult, Outcome
from netkit.report.history_text import outcome_text

DONE = DeviceOutcome("leaf01", DeviceResult.DONE, ConfigState.INTENDED, wave=1)
WAITING = tuple(
    DeviceOutcome(f"spine0{n}", DeviceResult.NOT_STARTED, ConfigState.AS_BEFORE, exit_code=1) for n in (1, 2)
)
LOST = DeviceOutcome(
    "leaf02", DeviceResult.UNREACHABLE, ConfigState.UNKNOWN, ("leaf02: the line\nis lost", "twice"), 2, 4
)


def test_complete_success_is_one_line() -> None:
    assert outcome_text(Outcome("r", "small", (DONE,))) == "small: 1 device: 1 done\n"


def test_a_failure_has_a_line_with_what_the_device_runs() -> None:
    assert outcome_text(Outcome("r", "small", (DONE, LOST, *WAITING), "1 failed, 0 may: leaf02")) == (
        "small: 4 devices: 1 done, 1 unreachable, 2 not started\n"
        "  leaf02: unreachable, its configuration is not known: the line\\nis lost; twice\n"
        "  not started, running their earlier configuration: spine01, spine02\n"
        "stopped: 1 failed, 0 may: leaf02\n"
    )


def test_a_rollback_names_what_was_not_rolled_back_and_how_to_do_it() -> None:
    dead = DeviceOutcome("leaf02", DeviceResult.UNREACHABLE, ConfigState.AS_BEFORE, ("leaf02: no answer",), 2, 4)
    half = DeviceOutcome("leaf03", DeviceResult.NOT_STARTED, ConfigState.BOTH, exit_code=1)
    failed = DeviceOutcome("leaf04", DeviceResult.FAILED, ConfigState.INTENDED, ("not saved",), 3, 1)
    died = DeviceOutcome("leaf05", DeviceResult.FAILED, ConfigState.UNKNOWN, ("no answer",), 4, 4)
    moved = DeviceOutcome("leaf06", DeviceResult.REFUSED, ConfigState.UNKNOWN, ("changed by others",), 5, 3)
    found = Outcome("s", "small", (DONE, dead, half, failed, died, moved, *WAITING), "1 failed", undoes="r")
    assert outcome_text(found) == (
        "small: 8 devices: 1 done, 2 failed, 1 refused, 1 unreachable, 3 not started\n"
        "  leaf02: unreachable, not rolled back: no answer\n"
        "  leaf04: failed, runs its earlier configuration: not saved\n"
        "  leaf05: failed, its configuration is not known: no answer\n"
        "  leaf06: refused, its configuration is not known: changed by others\n"
        "  these keep the later routes and sessions beside the earlier ones: leaf03\n"
        "  not started, not rolled back: spine01, spine02\n"
        "  once they answer, netkit rollback r rolls these back: leaf02, leaf05\n"
        "  netkit rollback r tries these again: leaf03, spine01, spine02\n"
        "stopped: 1 failed\n"
    )
    assert "netkit rollback" not in outcome_text(replace(found, stopped="interrupted"))


@pytest.mark.parametrize(
    ("result", "state", "wave", "has_changes"),
    [
        (DeviceResult.DONE, ConfigState.INTENDED, 1, True),
        (DeviceResult.FAILED, ConfigState.UNKNOWN, 1, True),
        (DeviceResult.REVERTED, ConfigState.BOTH, 3, True),
        (DeviceResult.NOT_STARTED, ConfigState.BOTH, 0, True),
        (DeviceResult.REVERTED, ConfigState.AS_BEFORE, 1, False),
        (DeviceResult.UNCHANGED, ConfigState.INTENDED, 0, False),
        (DeviceResult.UNREACHABLE, ConfigState.AS_BEFORE, 0, False),
    ],
)
def test_only_a_run_that_may_have_changed_a_device_can_be_rolled_back(
    result: DeviceResult, state: ConfigState, wave: int, *, has_changes: bool
) -> None:
    one = DeviceOutcome("leaf01", result, state, wave=wave)
    assert Outcome("r", "small", (one, *WAITING)).has_changes == has_changes


def test_notes_on_finished_devices_are_printed_once() -> None:
    notes = ("its CNPs were not compared: too few before the change",)
    done = [DeviceOutcome(name, DeviceResult.DONE, ConfigState.INTENDED, notes, 1) for name in ("leaf01", "leaf02")]
    warned = DeviceOutcome("leaf03", DeviceResult.DONE, ConfigState.INTENDED, ("leaf03: the line was lost",), 1)
    assert outcome_text(Outcome("r", "small", (*done, warned, DONE))) == (
        "small: 4 devices: 4 done\n"
        "  leaf01, leaf02: its CNPs were not compared: too few before the change\n"
        "  leaf03: the line was lost\n"
    )


def test_a_dry_run_is_labelled() -> None:
    ready = DeviceOutcome("leaf01", DeviceResult.READY, ConfigState.AS_BEFORE)
    assert outcome_text(Outcome("", "small", (ready,), is_dry_run=True)) == "dry run of small: 1 device: 1 ready\n"

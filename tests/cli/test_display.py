"""What a deploy displays while it runs."""

import io

import pytest
from rich.console import Console

from netkit.deploy import ConfigState, DeployEvent, DeviceOutcome, DeviceResult, Phase
from netkit.terminal.display import MOST_ROWS, WORDS, Lines, LiveTable
from netkit.terminal.interrupt import ASKED

GOOD = DeviceOutcome("leaf01", DeviceResult.DONE, ConfigState.INTENDED)
BAD = DeviceOutcome(
    "leaf02", DeviceResult.REVERTED, ConfigState.AS_BEFORE, ("leaf02: a session\x1b[2J is gone",), exit_code=1
)
EVENTS = (
    DeployEvent(Phase.PREFLIGHT, "leaf01", 0, 2, 0.1),
    DeployEvent(Phase.PREFLIGHT, "leaf02", 0, 2, 0.1),
    DeployEvent(Phase.PREFLIGHT, "leaf01", 1, 2, 0.5),
    DeployEvent(Phase.COMMIT, "leaf01", 1, 2, 0.9),
    DeployEvent(Phase.END, "leaf01", 1, 2, 2.25, GOOD),
    DeployEvent(Phase.PREFLIGHT, "leaf02", 2, 2, 2.5),
    DeployEvent(Phase.COMMIT, "leaf02", 2, 2, 2.75),
)
END = DeployEvent(Phase.END, "leaf02", 2, 2, 31.5, BAD)


def drawn(table: LiveTable) -> str:
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as shown:
        console.print(table)
    return shown.get()


def test_lines_report_waves_and_results(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(2)
    for event in (*EVENTS, END):
        lines(event)
    assert capsys.readouterr().err == (
        "   0.1 s  reading every device first\n"
        "   0.5 s  wave 1 of 2\n"
        "   2.2 s  1/2  leaf01: done\n"
        "   2.5 s  wave 2 of 2\n"
        "  31.5 s  2/2  leaf02: reverted, runs its earlier configuration: a session\\x1b[2J is gone\n"
    )


def test_the_table_has_current_and_finished_devices() -> None:
    table = LiveTable(2)
    for event in EVENTS:
        table(event)
    shown = drawn(table).splitlines()
    assert shown[0].strip() == "2.2 s  1/2  leaf01: done"
    assert shown[1].startswith("wave 2 of 2   1 of 2 ended, 0 failed")
    assert shown[2].split()[:2] == ["leaf02", "applying"]
    assert len(shown) == 3
    table(END)
    assert "2 of 2 ended, 1 failed" in drawn(table)
    assert "\x1b" not in drawn(table)


def test_the_table_shows_what_an_interrupted_run_is_waited_for() -> None:
    table = LiveTable(2)
    table(DeployEvent(Phase.SETTLE, "leaf01", 3, 0, 0.1))
    head, row = drawn(table).splitlines()
    assert head.startswith("finding out what interrupted devices run   0 of 2 ended")
    assert row.split()[:2] == ["leaf01", "finding"]


def test_the_table_shows_a_requested_stop() -> None:
    table = LiveTable(2, lambda: True)
    assert drawn(table).splitlines()[-1].strip() == ASKED
    assert ASKED not in drawn(LiveTable(2))


def test_the_table_stays_on_the_screen() -> None:
    table = LiveTable(500)
    for number in range(500):
        table(DeployEvent(Phase.LOAD, f"leaf{number}", 2, 3, 1.0))
    shown = drawn(table).splitlines()
    assert len(shown) == 1 + MOST_ROWS + 1
    assert shown[-1].strip() == f"… and {500 - MOST_ROWS} more"


def test_every_phase_has_a_label() -> None:
    assert set(WORDS) == set(Phase)

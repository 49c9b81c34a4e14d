"""The progress of a deploy: a live table on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO, cast

from netkit.deploy import DeployEvent, DeviceOutcome, Phase
from netkit.deploy.model import EventHandler
from netkit.report.history_text import device_text
from netkit.report.plan_view import shown
from netkit.terminal.interrupt import ASKED
from netkit.terminal.output import OutputStream, say
from netkit.terminal.progress import lines

if TYPE_CHECKING:
    from rich.console import Group

MOST_ROWS = 24
WORDS = {
    Phase.PREFLIGHT: "reading",
    Phase.DRAIN: "draining",
    Phase.LOAD: "loading",
    Phase.COMMIT: "applying",
    Phase.CONNECT: "reconnecting",
    Phase.VERIFY: "verifying",
    Phase.GATE: "checking its health",
    Phase.CONFIRM: "confirming",
    Phase.UNDRAIN: "ending the drain",
    Phase.WATCH: "watching its traffic",
    Phase.SETTLE: "finding out what it runs",
    Phase.ROLLBACK: "rolling back",
    Phase.END: "done",
}


@contextmanager
def display(total: int, is_stopping: Callable[[], bool]) -> Iterator[EventHandler]:
    """Yield a receiver of deploy events; `is_stopping` reports whether the user has asked to stop."""
    if not sys.stderr.isatty():
        written = Lines(total)
        with lines(written.now):
            yield written
        return
    from rich.console import Console  # noqa: PLC0415 (slow to import, and only a terminal needs it)
    from rich.live import Live  # noqa: PLC0415

    table = LiveTable(total, is_stopping)
    # A terminal that is closed must not end a deploy.
    console = Console(file=cast("TextIO", OutputStream(sys.stderr)))
    with Live(table, console=console, transient=True, refresh_per_second=5):
        yield table
    say(sys.stderr, "".join(f"{line}\n" for line in table.ended))


class Lines:
    """Prints a line for each wave that begins and each device that ends."""

    def __init__(self, total: int) -> None:
        self._total, self._ended, self._wave = total, 0, -1
        self._phases: dict[str, Phase] = {}
        self._began_s = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, event: DeployEvent) -> None:
        """Print an event that is worth a line."""
        with self._lock:
            if event.wave != self._wave and event.phase is Phase.PREFLIGHT:
                self._wave = event.wave
                what = _stage(event.wave, event.waves)
                say(sys.stderr, f"{event.at_s:6.1f} s  {what}\n")
            self._phases[event.device] = event.phase
            if event.outcome is not None:
                self._ended += 1
                self._phases.pop(event.device)
                say(sys.stderr, _line(event, event.outcome, self._ended, self._total))

    def now(self) -> str:
        """How many devices are in which phase."""
        with self._lock:
            phases = Counter(WORDS[phase] for phase in self._phases.values())
        counts = ", ".join(f"{number} {word}" for word, number in phases.items()) or "waiting"
        return f"{time.monotonic() - self._began_s:6.1f} s  {counts}"


def _line(event: DeployEvent, outcome: DeviceOutcome, number: int, total: int) -> str:
    return f"{event.at_s:6.1f} s  {number}/{total}  {shown(device_text(outcome, is_back=event.is_back))}\n"


def _stage(wave: int, waves: int) -> str:
    """The stage of a run. What an interrupted one left is settled before its waves are planned."""
    if not wave:
        return "reading every device first"
    return f"wave {wave} of {waves}" if waves else "finding out what interrupted devices run"


@dataclass(slots=True)
class DisplayRow:
    """A device that is being changed."""

    phase: Phase
    since_s: float


class LiveTable:
    """Waves, devices, phases and times, redrawn a few times a second."""

    def __init__(self, total: int, is_stopping: Callable[[], bool] = bool) -> None:
        self.ended: list[str] = []
        self._is_stopping = is_stopping
        self._total, self._rows, self._wave, self._waves = total, dict[str, DisplayRow](), 0, 0
        self._failed = 0
        self._began_s = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, event: DeployEvent) -> None:
        with self._lock:
            self._wave, self._waves = event.wave, event.waves
            if event.outcome is not None:
                self._rows.pop(event.device, None)
                self._failed += event.outcome.is_failure
                self.ended.append(_line(event, event.outcome, len(self.ended) + 1, self._total).rstrip("\n"))
            elif event.phase is Phase.PREFLIGHT and event.wave == 0:
                self._rows.pop(event.device, None)  # preflight only: no event reports its end
            else:
                self._rows[event.device] = DisplayRow(event.phase, time.monotonic())

    def __rich__(self) -> "Group":
        from rich.console import Group  # noqa: PLC0415 (see above)
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        now_s = time.monotonic()
        with self._lock:
            rows, ended = dict(self._rows), list(self.ended)
            step = _stage(self._wave, self._waves)
            head = (
                f"{step}   {len(ended)} of {self._total} ended, {self._failed} failed   {now_s - self._began_s:.0f} s"
            )
        grid = Table.grid(padding=(0, 2))
        for name, row in list(rows.items())[:MOST_ROWS]:
            grid.add_row(Text(f"  {name}"), Text(WORDS[row.phase]), Text(f"{now_s - row.since_s:.0f} s"))
        more = [Text(f"  … and {len(rows) - MOST_ROWS} more")] if len(rows) > MOST_ROWS else []
        more += [Text(ASKED, style="bold yellow")] if self._is_stopping() else []
        return Group(*(Text(line, style="dim") for line in ended[-3:]), Text(head, style="bold"), grid, *more)

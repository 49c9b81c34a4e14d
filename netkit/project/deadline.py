"""A time limit for a whole run: when it ends, connections are closed and what was collected is judged."""

import re
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self, TypeVar

from netkit.errors import AccessError, Problem, UsageError
from netkit.judge.run import CheckDeadline, OverdueError
from netkit.platforms.view import Reply, Viewer

WRITTEN = re.compile(r"(?P<number>[1-9]\d{0,5})(?P<unit>[smh])")
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
LEAST_SHARE_S = 1.0
LEAST_JUDGING_S = 10.0
AGAIN_S = 1.0
"""Interval at which a late check is interrupted again, in case it caught the first exception."""
LEAST_S = 0.001
"""A timer set to 0 never fires."""
T = TypeVar("T")


class Deadline:
    """When a run has to end; without a time, never."""

    def __init__(self, written: str, least_s: float = 0.0) -> None:
        self._written, self._least_s = written, least_s
        self._missed = f"not read completely before the deadline of {written}"
        self._whole_s = _seconds(written, least_s) if written else float("inf")
        self._ends_s = time.monotonic() + self._whole_s
        self._viewers: list[Viewer] = []
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self._written:
            self._timer = threading.Timer(self.left_s, self._hang_up)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    @property
    def left_s(self) -> float:
        return self._ends_s - time.monotonic()

    def half(self) -> "Deadline":
        """A deadline for work before reading devices: it leaves the window and half of the remaining time."""
        found = Deadline(self._written, self._least_s)
        found._missed = f"not measured within half of the deadline of {self._written}"
        if self._written:
            found._ends_s = time.monotonic() + max(0.0, self.left_s - self._least_s) / 2
        return found

    def judging(self) -> CheckDeadline:
        """When judging ends: with the run, but it gets at least a quarter of the time."""
        if not self._written:
            return CheckDeadline()
        left_s = max(self.left_s, self._whole_s / 4, LEAST_JUDGING_S)
        return Alarm(time.monotonic() + left_s, f"not judged before the deadline of {self._written}")

    def share_s(self, window_s: float) -> float:
        """The time limit for one device, so that devices that hang leave time for all others.

        Devices are read in up to three steps, each as long as its slowest device.
        """
        return max(LEAST_SHARE_S, round((self.left_s - window_s) / 4, 1))

    def bound(self, viewer: Viewer) -> Viewer:
        """Wrap a viewer so that it stops at the deadline."""
        if not self._written:
            return viewer
        with self._lock:
            self._viewers.append(viewer)
        return _Bound(viewer, self)

    def keep(self, work: Callable[[], T]) -> T:
        """Call a device; raise AccessError if the deadline has passed before or afterwards."""
        if self.is_over:
            raise self._error()
        try:
            found = work()
        except Exception:
            if self.is_over:
                raise self._error() from None
            raise
        if self.is_over:  # some viewers return what they have when their connection is closed
            raise self._error()
        return found

    def _error(self) -> AccessError:
        return AccessError(Problem(self._missed))

    def _hang_up(self) -> None:
        with self._lock:
            viewers = tuple(self._viewers)
        for viewer in viewers:
            with suppress(Exception):
                viewer.close()


class _Bound:
    """A viewer that sends nothing after the deadline."""

    def __init__(self, viewer: Viewer, deadline: Deadline) -> None:
        self._viewer, self._deadline = viewer, deadline

    def open(self) -> None:
        self._deadline.keep(self._viewer.open)

    def close(self) -> None:
        self._viewer.close()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        return self._deadline.keep(lambda: self._viewer.ask(commands))

    def running_files(self) -> Mapping[str, str | None]:
        return self._deadline.keep(self._viewer.running_files)

    def os_version(self) -> str:
        return self._deadline.keep(self._viewer.os_version)


NEVER = Deadline("")


class Alarm(CheckDeadline):
    """The end of judging, enforced by SIGALRM."""

    def __init__(self, ends_s: float, why: str) -> None:
        self.why = why
        self._ends_s = ends_s
        self._is_set = False

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._ends_s

    def __enter__(self) -> Self:
        """Set the alarm; only the main thread can be interrupted."""
        self._is_set = threading.current_thread() is threading.main_thread()
        if self._is_set:
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, max(LEAST_S, self._ends_s - time.monotonic()), AGAIN_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._is_set:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self.running:
            raise OverdueError("it was still running at the deadline")


def _seconds(written: str, least_s: float) -> float:
    found = WRITTEN.fullmatch(written)
    if found is None:
        remedy = "use seconds, minutes or hours, such as 90s, 10m or 1h"
        raise UsageError(Problem(f"--deadline {written!r} is not a duration", remedy))
    seconds = int(found["number"]) * UNITS_S[found["unit"]]
    if seconds <= least_s:
        remedy = f"give more than the {least_s:g} s of --window"
        raise UsageError(Problem(f"--deadline {written} ends before the second reading of counters", remedy))
    return seconds

"""A bound on a whole run: when it comes, devices are hung up on, and what was seen by then is judged."""

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
"""So long after the end a check is broken off once more, should it have caught the first time."""
LEAST_S = 0.001
"""A timer of no time at all never rings."""
T = TypeVar("T")


class Deadline:
    """When a run has to end; without a time, never."""

    def __init__(self, written: str, least_s: float = 0.0) -> None:
        self._written, self._least_s = written, least_s
        self._missed = f"not looked at to the end before the deadline of {written}"
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
        """Whether it has come."""
        return self.left_s <= 0

    @property
    def left_s(self) -> float:
        """Return how long it is until it comes."""
        return self._ends_s - time.monotonic()

    def half(self) -> "Deadline":
        """Return one for what comes before looking: it leaves the window, and half of the other time."""
        found = Deadline(self._written, self._least_s)
        found._missed = f"not measured within half of the deadline of {self._written}"
        if self._written:
            found._ends_s = time.monotonic() + max(0.0, self.left_s - self._least_s) / 2
        return found

    def judging(self) -> CheckDeadline:
        """Return when judging ends: with the run, but it has a quarter of its time however long looking took."""
        if not self._written:
            return CheckDeadline()
        left_s = max(self.left_s, self._whole_s / 4, LEAST_JUDGING_S)
        return Alarm(time.monotonic() + left_s, f"not judged before the deadline of {self._written}")

    def share_s(self, window_s: float) -> float:
        """Return how long one device may take, so that those that hang leave time for all others.

        Devices are looked at in up to three steps, each as long as its slowest device.
        """
        return max(LEAST_SHARE_S, round((self.left_s - window_s) / 4, 1))

    def bound(self, viewer: Viewer) -> Viewer:
        """Return a viewer that ends with the run."""
        if not self._written:
            return viewer
        with self._lock:
            self._viewers.append(viewer)
        return _Bound(viewer, self)

    def keep(self, work: Callable[[], T]) -> T:
        """Do something with a device; AccessError when the deadline came first, or comes meanwhile."""
        if self.is_over:
            raise self._error()
        try:
            found = work()
        except Exception:
            if self.is_over:
                raise self._error() from None
            raise
        if self.is_over:  # some viewers keep what they have when they are hung up on
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
    """A viewer that is asked nothing after the deadline."""

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
    """The time at which judging ends."""

    def __init__(self, ends_s: float, why: str) -> None:
        self.why = why
        self._ends_s = ends_s
        self._is_set = False

    @property
    def is_over(self) -> bool:
        """Whether the time has come."""
        return time.monotonic() >= self._ends_s

    def __enter__(self) -> Self:
        """Set it; only the main thread can be broken off."""
        self._is_set = threading.current_thread() is threading.main_thread()
        if self._is_set:
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, max(LEAST_S, self._ends_s - time.monotonic()), AGAIN_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Turn it off."""
        if self._is_set:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self.running:
            raise OverdueError("it was still running when the time was over")


def _seconds(written: str, least_s: float) -> float:
    found = WRITTEN.fullmatch(written)
    if found is None:
        remedy = "use seconds, minutes or hours, such as 90s, 10m or 1h"
        raise UsageError(Problem(f"--deadline {written!r} is no time", remedy))
    seconds = int(found["number"]) * UNITS_S[found["unit"]]
    if seconds <= least_s:
        remedy = f"give more than the {least_s:g} s of --window"
        raise UsageError(Problem(f"--deadline {written} comes before the counters are read twice", remedy))
    return seconds

"""An end to judging: the check that runs then is broken off, wherever it is."""

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Self

from netkit.judge.limit import CheckDeadline, OverdueError

AGAIN_S = 1.0
"""So long after the end a check is broken off once more, should it have caught the first time."""
LEAST_S = 0.001
"""A timer of no time at all never rings."""


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

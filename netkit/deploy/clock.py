"""Time as a deploy sees it, so that tests can let hours pass at once."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def _steady_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@cache
def _boot_id() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


@dataclass(frozen=True, slots=True)
class DeployClock:
    """Where the time comes from, and how it is let pass. Every duration is measured by `steady_s`."""

    wall_s: Callable[[], float] = time.time
    """Seconds since the epoch, for people to read: anybody may set this clock while a deploy runs."""
    sleep_s: Callable[[float], None] = time.sleep
    steady_s: Callable[[], float] = _steady_s
    """Seconds since this machine started, suspended or not. Nobody can set it, and all its processes agree on it."""
    boot_id: Callable[[], str] = _boot_id
    """Which start of the machine `steady_s` counts from; empty when that is not known."""

    def ahead_s(self) -> float:
        """Return how far the wall clock is ahead of the steady one; that changes only when somebody sets it."""
        return self.wall_s() - self.steady_s()


CLOCK = DeployClock()

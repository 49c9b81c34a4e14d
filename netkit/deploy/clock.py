"""The clocks of a deploy; tests replace them to let hours pass at once."""

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
    """The clocks of a deploy. Every duration is measured with `steady_s`."""

    wall_s: Callable[[], float] = time.time
    """Seconds since the epoch, for people to read: this clock may be set while a deploy runs."""
    sleep_s: Callable[[float], None] = time.sleep
    steady_s: Callable[[], float] = _steady_s
    """Seconds since this machine started, suspended or not. Nobody can set it, and all its processes agree on it."""
    boot_id: Callable[[], str] = _boot_id
    """The boot that `steady_s` counts from; empty when it is unknown."""

    def ahead_s(self) -> float:
        """Offset of the wall clock from the steady one; it changes only when the clock is set."""
        return self.wall_s() - self.steady_s()


CLOCK = DeployClock()

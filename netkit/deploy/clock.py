"""Time as a deploy sees it, so that tests can let hours pass at once."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Where the time comes from, and how it is let pass."""

    wall_s: Callable[[], float] = time.time
    """Seconds since the epoch: what a journal holds has to make sense to the next process."""
    sleep_s: Callable[[float], None] = time.sleep


CLOCK = Clock()

"""How much a value falls over many runs: a line through medians, which single odd readings do not bend."""

from collections.abc import Sequence
from statistics import median

LEAST = 6
"""Of fewer readings a third is one reading, and that may be odd."""
SHARE = 0.25
"""So much of the fall must lie in each half of the time; else it fell once, and stays where it is."""
Readings = Sequence[tuple[float, float]]


def faded(readings: Readings) -> float | None:
    """Return by how much a value fell steadily from the first to the last reading; None where that cannot be told.

    The line goes through the medians of the first and of the last third of the readings.
    """
    if len(readings) < LEAST:
        return None
    third = len(readings) // 3
    first, last = _middle(readings[:third]), _middle(readings[-third:])
    between = _middle(readings[third:-third])
    time_s, fall = last[0] - first[0], first[1] - last[1]
    if time_s <= 0 or fall <= 0 or not SHARE <= (first[1] - between[1]) / fall <= 1 - SHARE:
        return None
    return fall / time_s * (readings[-1][0] - readings[0][0])


def _middle(readings: Readings) -> tuple[float, float]:
    return median(at_s for at_s, _ in readings), median(value for _, value in readings)

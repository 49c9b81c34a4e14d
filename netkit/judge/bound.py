"""Confidence bounds for the true share or rate behind counts; they hold 1,999 times out of 2,000.

Shares use the Wilson score interval. Two ends that were not read at the same moment add what only one of them may have
counted: the part of the window in which just one counted, packets in flight, and the scatter of so small a count.
"""

from math import sqrt

Z = 3.29
"""One-sided, 1,999 times out of 2,000: a fabric has dozens of rails, each judged a hundred times a day."""
IN_FLIGHT = 2
"""Packets that may have left one end and not yet reached the other."""


def least(part: float, whole: float, doubt: float = 0.0) -> float:
    """A lower bound of the true share; doubt is the part of the window that only one end counted."""
    return _wilson(max(0.0, part - astray(whole, doubt)), whole, -Z)


def most(part: float, whole: float, doubt: float = 0.0) -> float:
    """An upper bound of the true share."""
    return _wilson(min(whole, max(0.0, part) + astray(whole, doubt)), whole, Z)


def least_rate(count: int, seconds: float) -> float:
    """A lower bound of the true rate, from a count over a time."""
    return max(0.0, sqrt(count) - Z / 2) ** 2 / seconds if seconds > 0 else 0.0


def surely_more(part: float, whole: float, than_part: float, than_whole: float) -> bool:
    """Whether one share is significantly larger than another."""
    if not whole or not than_whole:
        return False
    share, than = part / whole, than_part / than_whole
    together = (part + than_part) / (whole + than_whole)
    scatter = sqrt(max(0.0, together * (1 - together)) * (1 / whole + 1 / than_whole))
    return share - than > Z * scatter


def astray(whole: float, doubt: float) -> float:
    """How much of a count only one end may have seen."""
    expected = whole * doubt
    return expected + Z * sqrt(expected) + IN_FLIGHT


def _wilson(part: float, whole: float, z: float) -> float:
    if whole <= 0:
        return 0.0 if z < 0 else 1.0
    share, square = part / whole, z * z / whole
    half = sqrt(square * (share * (1 - share) + square / 4))
    bound = (share + square / 2 + (half if z > 0 else -half)) / (1 + square)
    return min(1.0, max(0.0, bound))

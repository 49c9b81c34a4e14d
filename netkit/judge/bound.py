"""What counts allow to say of the true share or rate behind them: bounds that hold 1,999 times out of 2,000.

Those of a share are Wilson's. Two ends that were not read at the same moment add what may have been counted at one end
only: that part of the window in which just one of them counted, what was on its way, and the scatter of so small a
count itself.
"""

from math import sqrt

Z = 3.29
"""One-sided, 1,999 times out of 2,000: a fabric has dozens of rails, each looked at a hundred times a day."""
ON_ITS_WAY = 2
"""What may have left one end and not yet reached the other."""


def least(part: float, whole: float, doubt: float = 0.0) -> float:
    """Return what the true share of a part is at least; doubt is how much of the window only one end counted."""
    return _wilson(max(0.0, part - astray(whole, doubt)), whole, -Z)


def most(part: float, whole: float, doubt: float = 0.0) -> float:
    """Return what the true share of a part is at most."""
    return _wilson(min(whole, max(0.0, part) + astray(whole, doubt)), whole, Z)


def least_rate(count: int, seconds: float) -> float:
    """Return how many a second there truly are at least, by how many came in so many seconds."""
    return max(0.0, sqrt(count) - Z / 2) ** 2 / seconds if seconds > 0 else 0.0


def surely_more(part: float, whole: float, than_part: float, than_whole: float) -> bool:
    """Whether one share is truly larger than another, however their counts scatter."""
    if not whole or not than_whole:
        return False
    share, than = part / whole, than_part / than_whole
    together = (part + than_part) / (whole + than_whole)
    scatter = sqrt(max(0.0, together * (1 - together)) * (1 / whole + 1 / than_whole))
    return share - than > Z * scatter


def astray(whole: float, doubt: float) -> float:
    """Return how much of a count only one end may have seen."""
    expected = whole * doubt
    return expected + Z * sqrt(expected) + ON_ITS_WAY


def _wilson(part: float, whole: float, z: float) -> float:
    if whole <= 0:
        return 0.0 if z < 0 else 1.0
    share, square = part / whole, z * z / whole
    half = sqrt(square * (share * (1 - share) + square / 4))
    bound = (share + square / 2 + (half if z > 0 else -half)) / (1 + square)
    return min(1.0, max(0.0, bound))

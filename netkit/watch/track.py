"""The last minute of one port, however long it is watched."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from netkit.watch.reading import Rates, Reading
from netkit.watch.trouble import NO_PAUSES, Pauses, Standing

KEPT = 64
"""Intervals: a minute at one a second."""
LEAST_SHARE = 0.3
"""An interval counts in a column it fills by so much: each column that was measured at all has one that does."""
NOTHING = Reading()


class Point(NamedTuple):
    """One interval: a rate holds for all of it, not only for its end."""

    from_s: float
    to_s: float
    reading: Reading
    standing: Standing = Standing()
    """How bad it is."""
    pauses: Pauses = NO_PAUSES


class Track:
    """A bounded history."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=KEPT)
        self.rates: Rates = {}
        """The last rates at each place of the port."""

    def add(self, point: Point, rates: Rates) -> None:
        """Remember an interval. A stream may tell one piece by piece; those are one."""
        last = self._points[-1] if self._points else None
        if last is not None and _is_same(last, point):
            self._points[-1] = _joined(last, point)
        else:
            if last is not None and point.to_s <= last.to_s:
                self._points.clear()  # the clock was set back: nobody can tell what was when
            self._points.append(point)
        self.rates = {**self.rates, **rates}

    @property
    def latest(self) -> Reading:
        """Return the last interval."""
        return self._points[-1].reading if self._points else NOTHING

    @property
    def end_s(self) -> float | None:
        """Return when the last interval ended."""
        return self._points[-1].to_s if self._points else None

    def since(self, from_s: float) -> tuple[Point, ...]:
        """Return the intervals that end after a moment."""
        kept = tuple(self._points)  # at one stroke: others may add meanwhile
        return tuple(point for point in kept if point.to_s > from_s)

    def worst(self, from_s: float) -> tuple[Standing, Pauses]:
        """Return how bad the worst interval was that ended after a moment, and what they all had to do with pauses."""
        worst, pauses = Standing(), NO_PAUSES
        for point in reversed(tuple(self._points)):
            if point.to_s <= from_s:
                break
            worst = max(worst, point.standing)
            pauses = _either(pauses, point.pauses)
        return worst, pauses

    def peaks(self, quantity: str, end_s: float, columns: int, step_s: float) -> Sequence[float | None]:
        """Return the highest value in each of so many steps up to a moment; None where nothing was measured."""
        found: list[float | None] = [None] * columns
        first_s = end_s - columns * step_s
        for point in self.since(first_s):
            value = getattr(point.reading, quantity)
            if value is None:
                continue
            for column in _columns(point, first_s, columns, step_s):
                here = found[column]
                found[column] = value if here is None else max(here, value)
        return found


def _is_same(last: Point, point: Point) -> bool:
    """Whether two intervals are for the better part one."""
    common_s = min(last.to_s, point.to_s) - max(last.from_s, point.from_s)
    return common_s > min(last.to_s - last.from_s, point.to_s - point.from_s) / 2


def _joined(last: Point, point: Point) -> Point:
    told = (value if value is not None else before for before, value in zip(last.reading, point.reading, strict=True))
    worst, pauses = max(last.standing, point.standing), _either(last.pauses, point.pauses)
    return Point(min(last.from_s, point.from_s), max(last.to_s, point.to_s), Reading(*told), worst, pauses)


def _either(one: Pauses, other: Pauses) -> Pauses:
    if one is other or other is NO_PAUSES:
        return one
    if one is NO_PAUSES:
        return other
    return Pauses(one.is_held or other.is_held, max(one.source, other.source))


def _columns(point: Point, first_s: float, columns: int, step_s: float) -> Sequence[int]:
    """Return the columns an interval counts in."""
    begin, end = (point.from_s - first_s) / step_s, (point.to_s - first_s) / step_s
    candidates = range(max(0, int(begin)), min(columns, int(end) + 1))
    least = min(LEAST_SHARE, (end - begin) / 2)
    return [column for column in candidates if min(end, column + 1) - max(begin, column) >= least - 1e-9]

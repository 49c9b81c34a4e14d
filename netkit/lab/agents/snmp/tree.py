"""All objects of an agent in their order. Each MIB is drawn anew when it is asked for and older than a second."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from netkit.lab.agents.snmp.row import Oid, Row

FRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class Mib:
    """A subtree and what draws it."""

    root: Oid
    draw: Callable[[], Iterable[Row]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A subtree as it was at one moment."""

    rows: tuple[Row, ...]
    oids: tuple[Oid, ...]
    at: float


class Tree:
    """GET and GETNEXT over subtrees that do not overlap."""

    def __init__(self, mibs: Iterable[Mib], fresh_s: float = FRESH_S) -> None:
        self.mibs = tuple(sorted(mibs, key=lambda mib: mib.root))
        self._roots = [mib.root for mib in self.mibs]
        self._drawn: dict[Oid, Drawn] = {}
        self._fresh_s = fresh_s

    def get(self, oid: Oid) -> Row | None:
        """Return an object by its name."""
        at = bisect_right(self._roots, oid) - 1
        if at < 0 or oid[: len(self._roots[at])] != self._roots[at]:
            return None
        drawn = self._now(self.mibs[at])
        position = bisect_left(drawn.oids, oid)
        return drawn.rows[position] if position < len(drawn.oids) and drawn.oids[position] == oid else None

    def next(self, oid: Oid, *, is_included: bool = False, end: Oid = ()) -> Row | None:
        """Return the first object after a name (or of that name), and before an end when there is one."""
        for mib in self.mibs[max(0, bisect_right(self._roots, oid) - 1) :]:
            if end and mib.root >= end:
                return None
            drawn = self._now(mib)
            position = bisect_left(drawn.oids, oid) if is_included else bisect_right(drawn.oids, oid)
            if position < len(drawn.oids):
                return drawn.rows[position] if not end or drawn.oids[position] < end else None
        return None

    def forget(self) -> None:
        """Draw everything anew when it is next asked for."""
        self._drawn.clear()

    def _now(self, mib: Mib) -> Drawn:
        drawn = self._drawn.get(mib.root)
        if drawn is None or time.monotonic() - drawn.at >= self._fresh_s:
            rows = tuple(sorted(mib.draw(), key=lambda row: row.oid))
            drawn = Drawn(rows, tuple(row.oid for row in rows), time.monotonic())
            self._drawn[mib.root] = drawn
        return drawn

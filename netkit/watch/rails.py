"""The view of rails: one row each, and one for each tier where rails meet."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from netkit.watch.board import BoardView, Row
from netkit.watch.port_severity import WORDS, natural
from netkit.watch.span import Glyphs, Line, Span, clean, fit, percent, short
from netkit.watch.view_state import of_trouble, style_of

HEAD = " RAIL       PORTS  FROM HOSTS   TO HOSTS  PAUSED  PAUSES  ECN/s LOST/s  WORST PORT"
WORST = 30
"""Cells for the worst port and what is wrong with it."""


class PortGroup(NamedTuple):
    """A rail or a tier at one time."""

    name: str
    rows: tuple[Row, ...]
    """The worst first."""

    @property
    def from_hosts_bps(self) -> float | None:
        """What its hosts send: as counted by the leaves, or without them by the hosts."""
        return _sum(self._host_ports("rx_bps")) if self._has_leaf else _sum(self._nics("tx_bps"))

    @property
    def to_hosts_bps(self) -> float | None:
        return _sum(self._host_ports("tx_bps")) if self._has_leaf else _sum(self._nics("rx_bps"))

    @property
    def _has_leaf(self) -> bool:
        return any(row.wire.kind == "host" and row.reading.rx_bps is not None for row in self.rows)

    def _host_ports(self, name: str) -> Iterable[float | None]:
        return (getattr(row.reading, name) for row in self.rows if row.wire.kind == "host")

    def _nics(self, name: str) -> Iterable[float | None]:
        return (getattr(row.reading, name) for row in self.rows if row.wire.kind == "nic")

    def total(self, name: str) -> float | None:
        """Return the sum of a quantity over all ports."""
        return _sum(getattr(row.reading, name) for row in self.rows)

    def highest(self, name: str) -> float | None:
        """Return the highest value of a quantity."""
        known = [value for row in self.rows if (value := getattr(row.reading, name)) is not None]
        return max(known) if known else None


def groups(rows: Sequence[Row]) -> tuple[PortGroup, ...]:
    """Return the rails in order, then the tiers."""
    names = sorted({row.wire.group for row in rows}, key=lambda name: (not name.startswith("rail "), natural(name)))
    return tuple(PortGroup(name, tuple(row for row in rows if row.wire.group == name)) for name in names)


def rails(view: BoardView, rows: Sequence[Row], width: int, height: int, glyphs: Glyphs) -> Iterator[Line]:
    yield (Span(HEAD, "title"),)
    for group in groups(rows)[: max(0, height - 1)]:
        yield _line(view, group, width, glyphs)


def _line(view: BoardView, group: PortGroup, width: int, glyphs: Glyphs) -> Line:
    absent, worst = glyphs.absent, group.rows[0]
    style = style_of(worst.severity.level)
    numbers = (
        f" {fit(clean(group.name), 10, more=glyphs.more)} {len(group.rows):>5}"
        f"  {short(group.from_hosts_bps, absent):>10} {short(group.to_hosts_bps, absent):>10}"
        f" {percent(group.highest('pause_in'), absent):>7} {percent(group.highest('pause_out'), absent):>7}"
        f"  {short(group.total('marks'), absent):>5} {short(group.total('loss'), absent):>6}"
    )
    spans = [Span(numbers)]
    if style:
        what = f"  {clean(f'{worst.wire.device} {worst.wire.port}')} {WORDS[worst.severity.level]}"
        spans.append(Span(fit(what, WORST, more=glyphs.more), style))
        room = width - len(numbers) - WORST - 1
        spans += [Span(" "), of_trouble(worst, min(60, room), view.outline.limits, glyphs)] if room > 3 else []
    return tuple(spans)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None

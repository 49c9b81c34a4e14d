"""The history of a port as a line of bars: of what is wrong with it, or of a quantity."""

from collections.abc import Mapping, Sequence

from netkit.watch.board import Row
from netkit.watch.number import sparkline
from netkit.watch.span import Glyphs, Span, Style
from netkit.watch.trouble import SEVERE, SLIGHT, Level, Limits

OF_LEVEL: Mapping[Level, str] = {
    Level.LOSES: "loss",
    Level.FLAPS: "flaps",
    Level.DAMAGED: "errors",
    Level.DROPS: "drops",
    Level.MARKS: "marks",
    Level.PAUSED: "pause_in",
    Level.SLIGHTLY_PAUSED: "pause_in",
    Level.PAUSING: "pause_out",
    Level.SOURCE: "pause_out",
    Level.SLIGHTLY_PAUSING: "pause_out",
}
FRAMES = {"pause_in": "pauses_in", "pause_out": "pauses_out"}
"""What tells of pauses where a device does not tell how long they are."""


def of_trouble(row: Row, columns: int, limits: Limits, glyphs: Glyphs) -> Span:
    """Return the history of what is wrong with a port; of its traffic when nothing is."""
    quantity = OF_LEVEL.get(row.standing.level)
    if quantity is None:
        return of_traffic(row, columns, glyphs)
    return of_quantity(row, quantity, columns, limits, glyphs)


def of_quantity(row: Row, quantity: str, columns: int, limits: Limits, glyphs: Glyphs) -> Span:
    """Return the history of a quantity; its highest value is a full bar, but for pauses that are little."""
    peaks = row.peaks(quantity, columns)
    if quantity in FRAMES and all(value is None for value in peaks):
        quantity = FRAMES[quantity]
        peaks = row.peaks(quantity, columns)
    least = {"pause_in": limits.pause_fraction_fail, "pause_out": limits.pause_fraction_fail}.get(quantity, 0.0)
    return Span(sparkline(peaks, max(least, highest(peaks)), glyphs), style_of(row.standing.level))


def of_traffic(row: Row, columns: int, glyphs: Glyphs) -> Span:
    """Return how much of its speed a port moved, in the busier direction."""
    received, sent = row.peaks("rx_bps", columns), row.peaks("tx_bps", columns)
    both = [_higher(one, other) for one, other in zip(received, sent, strict=True)]
    return Span(sparkline(both, row.wire.speed_gbps * 1e9 or highest(both), glyphs), "good")


def highest(values: Sequence[float | None]) -> float:
    """Return the highest of those that were measured."""
    return max((value for value in values if value is not None), default=0.0)


def _higher(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def style_of(level: Level) -> Style:
    """Return how a level looks."""
    return "bad" if level in SEVERE else "warn" if level in SLIGHT else ""

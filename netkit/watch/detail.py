"""The view of one port: the last minute of each quantity, and its priorities and queues."""

from collections.abc import Iterator, Mapping

from netkit.facts.counter import place
from netkit.judge.delta import Delta
from netkit.watch.board import BoardView, Row
from netkit.watch.feed import NO_PEAKS
from netkit.watch.port_severity import WORDS
from netkit.watch.span import Glyphs, Line, Span, Style, clean, fit, percent, short
from netkit.watch.view_state import of_quantity, style_of

QUANTITIES = (
    ("received", "rx_bps"),
    ("sent", "tx_bps"),
    ("is paused", "pause_in"),
    ("pauses it received", "pauses_in"),
    ("pauses the other end", "pause_out"),
    ("pauses it sent", "pauses_out"),
    ("marked with CE", "marks"),
    ("lossless packets lost", "loss"),
    ("other packets dropped", "drops"),
    ("damaged or retransmitted", "errors"),
    ("link went down", "flaps"),
)
PEAKS = (("queue, of ECN's minimum", "queue_share"), ("of its headroom used", "headroom_share"))
"""Shown of a port that has some."""
PERCENT = frozenset({"pause_in", "pause_out", "queue_share", "headroom_share"})
NAME, NUMBER = 24, 8
HEAD = " PRIORITY  PAUSED  PAUSES    SENT  ECN/s LOST/s  QUEUE HEADRM"
PRIORITIES = range(8)


def detail(view: BoardView, row: Row, width: int, glyphs: Glyphs) -> Iterator[Line]:
    wire, limits = row.wire, view.outline.limits
    ends = f"{wire.device} {wire.port} {glyphs.arrow} {wire.peer} {wire.peer_port}"
    yield (
        Span(f" {clean(ends)}", "bold"),
        Span(f"  {clean(wire.group)}, {wire.speed_gbps:g} Gbit/s  ", "dim"),
        Span(WORDS[row.severity.level], style_of(row.severity.level)),
    )
    columns = max(0, min(60, width - NAME - NUMBER - 4))
    yield (Span(fit("", NAME + NUMBER + 3) + f"LAST {columns} s", "title"),)
    has_peaks = any(value is not None for _, name in PEAKS for value in row.peaks(name, columns))
    for title, name in (*QUANTITIES, *(PEAKS if has_peaks else ())):
        value = getattr(row.reading, name)
        text = percent(value, glyphs.absent) if name in PERCENT else short(value, glyphs.absent)
        bars = of_quantity(row, name, columns, limits, glyphs)
        style: Style = "" if name in {"rx_bps", "tx_bps"} else "warn"
        yield Span(f" {fit(title, NAME)}{text:>{NUMBER}}  "), Span(bars.text, style)
    lossless = frozenset(view.outline.lossless)
    lines = [_priority(row, number, glyphs, is_lossless=number in lossless) for number in PRIORITIES]
    if any(lines):
        yield ()
        yield (Span(HEAD, "title"),)
        yield from filter(None, lines)


def _priority(row: Row, number: int, glyphs: Glyphs, *, is_lossless: bool) -> Line:
    """Return the line of a priority and its queue; empty if the device reports nothing about it."""

    def rate(name: str) -> float | None:
        places: Mapping[str, Delta] = row.rates.get(name, {})
        delta = places.get(place(row.wire.port, number))
        return delta.per_s if delta is not None and delta.is_known else None

    held, holds, octets = rate("rx_pause_us"), rate("tx_pause_us"), rate("queue_tx_bytes")
    lost = [value for value in map(rate, ("buffer_drops", "queue_drops", "watchdog_drops")) if value is not None]
    marks, loss = rate("queue_ecn_marked"), sum(lost) if lost else None
    level = row.levels.get(place(row.wire.port, number), NO_PEAKS)
    if level == NO_PEAKS and all(value is None for value in (held, holds, octets, marks, loss)):
        return ()
    absent = glyphs.absent
    text = (
        f" {number} {'lossless' if is_lossless else '':8}"
        f" {percent(_fraction(held), absent):>6} {percent(_fraction(holds), absent):>7}"
        f" {short(None if octets is None else octets * 8, absent):>7}"
        f" {short(marks, absent):>6} {short(loss, absent):>6}"
        f" {short(level.queue_bytes, absent):>6} {short(level.headroom_bytes, absent):>6}"
    )
    is_bad = is_lossless and bool(loss)
    return (Span(text, "bad" if is_bad else "warn" if held or holds or marks else ""),)


def _fraction(us_per_s: float | None) -> float | None:
    return None if us_per_s is None else min(1.0, us_per_s / 1e6)

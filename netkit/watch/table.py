"""The view of ports: one row each, with as many columns as fit."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from netkit.watch.board import BoardView, Row
from netkit.watch.feed import PortReading
from netkit.watch.port_severity import WORDS, PauseLimits, judged
from netkit.watch.span import Glyphs, Line, Span, Style, clean, fit, percent, short
from netkit.watch.view_state import Key, key, of_traffic, of_trouble, style_of

WHAT = 7
LONGEST_NAME, LEAST_NAME = 26, 12
ROOM_FOR_PEER, ROOM_FOR_MORE, ROOM_FOR_PEAKS, ROOM_FOR_BOTH = 104, 124, 140, 150
"""Widths from which more columns are shown."""
LONGEST_HISTORY = 60


class Column(NamedTuple):
    """A number shown for each port."""

    title: str
    width: int
    text: Callable[[Row, str], str]
    is_bad: Callable[[Row, PauseLimits], Style]


def _plain(_row: Row, _limits: PauseLimits) -> Style:
    return ""


def _counted(name: str, style: Style) -> Callable[[Row, PauseLimits], Style]:
    return lambda row, _limits: style if getattr(row.reading, name) else ""


def _judged(*names: str) -> Callable[[Row, PauseLimits], Style]:
    """Return the style of how bad a port is by some quantities alone."""
    return lambda row, limits: style_of(
        judged(PortReading(**{name: getattr(row.reading, name) for name in names}), 0, limits).level
    )


def pause(held: float | None, rate: float | None, absent: str) -> str:
    """Format pauses as a fraction of time if that is reported, else as frames per second."""
    return f"{short(rate, absent)}/s" if held is None and rate is not None else percent(held, absent)


def peak(share: float | None, found_bytes: float | None, absent: str) -> str:
    """Return a peak as a part of what it is held against, and as bytes where that is not known."""
    return percent(share, absent) if share is not None else short(found_bytes, absent)


ALWAYS = (
    Column("RX", 5, lambda row, absent: short(row.reading.rx_bps, absent), _plain),
    Column("TX", 5, lambda row, absent: short(row.reading.tx_bps, absent), _plain),
    Column(
        "PAUSED",
        7,
        lambda row, absent: pause(row.reading.pause_in, row.reading.pauses_in, absent),
        _judged("pause_in", "pauses_in"),
    ),
    Column(
        "PAUSES",
        7,
        lambda row, absent: pause(row.reading.pause_out, row.reading.pauses_out, absent),
        _judged("pause_out", "pauses_out"),
    ),
    Column("ECN/s", 5, lambda row, absent: short(row.reading.marks, absent), _counted("marks", "warn")),
    Column("LOST/s", 6, lambda row, absent: short(row.reading.loss, absent), _counted("loss", "bad")),
)
ROOMY = (
    Column("DROPS/s", 7, lambda row, absent: short(row.reading.drops, absent), _counted("drops", "warn")),
    Column("ERR/s", 5, lambda row, absent: short(row.reading.errors, absent), _counted("errors", "warn")),
)

PEAKS = (
    Column(
        "QUEUE",
        6,
        lambda row, absent: peak(row.reading.queue_share, row.reading.queue_bytes, absent),
        _judged("queue_share"),
    ),
    Column(
        "HEADRM",
        6,
        lambda row, absent: peak(row.reading.headroom_share, row.reading.headroom_bytes, absent),
        _judged("headroom_share"),
    ),
)


class TableLayout(NamedTuple):
    """The columns and their widths."""

    name: int
    peer: int
    columns: tuple[Column, ...]
    history: int
    has_both: bool
    """Whether traffic has a history of its own, beside that of the problem."""


def layout(rows: Sequence[Row], width: int) -> TableLayout:
    name = _width(f"{row.wire.device} {row.wire.port}" for row in rows)
    peer = _width(f"{row.wire.peer} {row.wire.peer_port}" for row in rows) if width >= ROOM_FOR_PEER else 0
    columns = ALWAYS + (ROOMY if width >= ROOM_FOR_MORE else ()) + (PEAKS if width >= ROOM_FOR_PEAKS else ())
    taken = 1 + name + (1 + peer if peer else 0) + sum(1 + column.width for column in columns) + 2 + WHAT
    room = max(0, width - taken - 1)
    has_both = width >= ROOM_FOR_BOTH
    return TableLayout(name, peer, columns, min(LONGEST_HISTORY, (room - 1) // 2 if has_both else room), has_both)


def _width(names: Iterator[str]) -> int:
    longest = max((len(name) for name in names), default=LEAST_NAME)
    return max(LEAST_NAME, min(LONGEST_NAME, longest))


def table(
    view: BoardView, rows: Sequence[Row], chosen: Key | None, width: int, height: int, glyphs: Glyphs
) -> Iterator[Line]:
    """Yield the head and the rows of the page that holds the chosen one."""
    frame = layout(rows, width)
    yield _head(frame, glyphs)
    for row in visible(rows, chosen, height - 1):
        yield _line(row, frame, view.outline.limits, glyphs, is_chosen=key(row) == chosen)


def visible(rows: Sequence[Row], chosen: Key | None, height: int) -> Sequence[Row]:
    """Return the rows of the page that holds the chosen one."""
    at = next((index for index, row in enumerate(rows) if key(row) == chosen), 0)
    first = at - at % height if height > 0 else 0
    return rows[first : first + max(0, height)]


def _head(frame: TableLayout, glyphs: Glyphs) -> Line:
    text = " " + fit("PORT", frame.name)
    text += f" {fit('TO', frame.peer)}" if frame.peer else ""
    text += "".join(f" {fit(column.title, column.width, is_right=True)}" for column in frame.columns)
    text += "  " + fit("WHAT", WHAT)
    text += " " + fit(f"LAST {frame.history} s", frame.history, more=glyphs.more)
    text += " " + fit("TRAFFIC", frame.history) if frame.has_both else ""
    return (Span(text, "title"),)


def _line(row: Row, frame: TableLayout, limits: PauseLimits, glyphs: Glyphs, *, is_chosen: bool) -> Line:
    style: Style = "chosen" if is_chosen else ""
    name = fit(clean(f"{row.wire.device} {row.wire.port}"), frame.name, more=glyphs.more)
    spans = [Span(f"{glyphs.chosen if is_chosen else ' '}{name}", style or "bold")]
    if frame.peer:
        peer = fit(clean(f"{row.wire.peer} {row.wire.peer_port}"), frame.peer, more=glyphs.more)
        spans.append(Span(f" {peer}", style or "dim"))
    for column in frame.columns:
        text = fit(column.text(row, glyphs.absent), column.width, is_right=True, more=glyphs.more)
        spans.append(Span(f" {text}", column.is_bad(row, limits)))
    spans.append(Span(f"  {fit(WORDS[row.severity.level], WHAT)} ", style_of(row.severity.level)))
    if frame.history > 0:
        spans.append(of_trouble(row, frame.history, limits, glyphs))
        spans += [Span(" "), of_traffic(row, frame.history, glyphs)] if frame.has_both else []
    return tuple(spans)

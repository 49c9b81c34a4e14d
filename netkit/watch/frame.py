"""A whole screen at one time; pure, so that a replayed record looks the same."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from netkit.facts.counter import place
from netkit.judge.delta import Delta
from netkit.watch.board import BoardView, Health, Row
from netkit.watch.feed import NO_PEAKS, PortReading
from netkit.watch.port_severity import WORDS, Level, PauseLimits, judged, natural
from netkit.watch.span import Glyphs, Line, Span, Style, clean, cut, fit, percent, short
from netkit.watch.view_state import Key, ViewState, key, of_quantity, of_traffic, of_trouble, shown, style_of

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
    """The style of how bad a port is by some quantities alone."""
    return lambda row, limits: style_of(
        judged(PortReading(**{name: getattr(row.reading, name) for name in names}), 0, limits).level
    )


def pause(held: float | None, rate: float | None, absent: str) -> str:
    """Format pauses as a fraction of time if that is reported, else as frames per second."""
    return f"{short(rate, absent)}/s" if held is None and rate is not None else percent(held, absent)


def peak(share: float | None, found_bytes: float | None, absent: str) -> str:
    """A peak as a part of what it is held against, and as bytes where that is not known."""
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
    """Whether traffic has a separate history, beside that of the problem."""


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
    """The rows of the page that holds the chosen one."""
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


RAILS_HEAD = " RAIL       PORTS  FROM HOSTS   TO HOSTS  PAUSED  PAUSES  ECN/s LOST/s  WORST PORT"
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
        """The sum of a quantity over all ports."""
        return _sum(getattr(row.reading, name) for row in self.rows)

    def highest(self, name: str) -> float | None:
        """The highest value of a quantity."""
        known = [value for row in self.rows if (value := getattr(row.reading, name)) is not None]
        return max(known) if known else None


def groups(rows: Sequence[Row]) -> tuple[PortGroup, ...]:
    """The rails in order, then the tiers."""
    names = sorted({row.wire.group for row in rows}, key=lambda name: (not name.startswith("rail "), natural(name)))
    return tuple(PortGroup(name, tuple(row for row in rows if row.wire.group == name)) for name in names)


def rails(view: BoardView, rows: Sequence[Row], width: int, height: int, glyphs: Glyphs) -> Iterator[Line]:
    yield (Span(RAILS_HEAD, "title"),)
    for group in groups(rows)[: max(0, height - 1)]:
        yield _rail_line(view, group, width, glyphs)


def _rail_line(view: BoardView, group: PortGroup, width: int, glyphs: Glyphs) -> Line:
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
DETAIL_PEAKS = (("queue, of ECN's minimum", "queue_share"), ("of its headroom used", "headroom_share"))
"""Shown of a port that has some."""
PERCENT = frozenset({"pause_in", "pause_out", "queue_share", "headroom_share"})
NAME, NUMBER = 24, 8
DETAIL_HEAD = " PRIORITY  PAUSED  PAUSES    SENT  ECN/s LOST/s  QUEUE HEADRM"
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
    has_peaks = any(value is not None for _, name in DETAIL_PEAKS for value in row.peaks(name, columns))
    for title, name in (*QUANTITIES, *(DETAIL_PEAKS if has_peaks else ())):
        value = getattr(row.reading, name)
        text = percent(value, glyphs.absent) if name in PERCENT else short(value, glyphs.absent)
        bars = of_quantity(row, name, columns, limits, glyphs)
        style: Style = "" if name in {"rx_bps", "tx_bps"} else "warn"
        yield Span(f" {fit(title, NAME)}{text:>{NUMBER}}  "), Span(bars.text, style)
    lossless = frozenset(view.outline.lossless)
    lines = [_priority(row, number, glyphs, is_lossless=number in lossless) for number in PRIORITIES]
    if any(lines):
        yield ()
        yield (Span(DETAIL_HEAD, "title"),)
        yield from filter(None, lines)


def _priority(row: Row, number: int, glyphs: Glyphs, *, is_lossless: bool) -> Line:
    """The line of a priority and its queue; empty if the device reports nothing about it."""

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


MOST_CONDITIONS = 4
MOST_HEAD = MOST_CONDITIONS + 4
LEAST_HEIGHT, LEAST_WIDTH = 6, 30
TOO_SMALL = "the terminal is too small"


def frame(view: BoardView, look: ViewState, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """At most `height` lines of at most `width` cells."""
    if height < LEAST_HEIGHT or width < LEAST_WIDTH:
        return [cut((Span(TOO_SMALL),), width)][:height]
    rows = shown(view, look)
    conditions = list(_conditions(view.health, glyphs))[: height - LEAST_HEIGHT + 1]
    head = [_title(view, look), _summary(rows, look), *conditions]
    body = list(_body(view, look, rows, width, height - len(head) - 1, glyphs))[: height - len(head) - 1]
    filling: list[Line] = [()] * (height - len(head) - 1 - len(body))
    return [cut(line, width) for line in (*head, *body, *filling, _foot(look, glyphs))]


def unbounded(view: BoardView, look: ViewState, width: int, glyphs: Glyphs) -> list[Line]:
    """A screen as high as it needs, without the line of keys, for a file or a pipe."""
    height = len(view.rows) + MOST_HEAD + 30
    lines = frame(view, look, width, height, glyphs)[:-1]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _body(
    view: BoardView, look: ViewState, rows: Sequence[Row], width: int, height: int, glyphs: Glyphs
) -> Iterator[Line]:
    chosen = next((row for row in view.rows if key(row) == look.chosen), None)
    if look.is_detail and chosen is not None:
        yield from detail(view, chosen, width, glyphs)
    elif look.is_rails:
        yield from rails(view, view.rows, width, height, glyphs)
    else:
        yield from table(view, rows, look.chosen, width, height, glyphs)


def _title(view: BoardView, look: ViewState) -> Line:
    outline = view.outline
    live = [one for one in view.health if not one.is_overdue and one.condition.state != "gone"]
    name = f" netkit watch  {clean(outline.fabric)}" + (f" (lab {clean(outline.lab)})" if outline.lab else "")
    spans = [Span(name, "bold"), Span(f"  {view.clock}  {len(live)} of {len(view.health)} devices")]
    if look.wanted or look.is_typing:
        spans.append(Span(f"  /{clean(look.wanted)}{'_' if look.is_typing else ''}", "warn"))
    if look.is_paused:
        spans.append(Span("  paused: p continues", "chosen"))
    return tuple(spans)


def _summary(rows: Sequence[Row], look: ViewState) -> Line:
    """The number of ports by problem."""
    counts = Counter(WORDS[row.severity.level] for row in rows if style_of(row.severity.level))
    styles = {WORDS[row.severity.level]: style_of(row.severity.level) for row in reversed(rows)}
    spans = [Span(f" {len(rows)} {'ports match' if look.wanted else 'ports'}:")]
    spans += [Span(f"  {count} {word}", styles[word]) for word, count in counts.items()]
    unknown = sum(row.severity.level is Level.UNKNOWN for row in rows)
    if rows and not counts:
        spans.append(Span("  nothing is known yet" if unknown == len(rows) else "  nothing is wrong"))
    if 0 < unknown < len(rows):
        spans.append(Span(f"  {unknown} not known", "warn"))
    return tuple(spans)


def _conditions(health: Sequence[Health], glyphs: Glyphs) -> Iterator[Line]:
    """Yield the devices without samples, then those that are polled less often than wanted."""
    odd = sorted((one for one in health if _weight(one)), key=lambda one: (-_weight(one), one.device))
    room = MOST_CONDITIONS if len(odd) <= MOST_CONDITIONS else MOST_CONDITIONS - 1
    for one in odd[:room]:
        style: Style = "bad" if _weight(one) > 1 else "warn"
        yield Span(f" {clean(one.device)}", "bold"), Span(f"  {_condition_text(one)}", style)
    if len(odd) > room:
        names = ", ".join(clean(one.device) for one in odd[room:])
        yield (Span(f" {glyphs.more} and {len(odd) - room} more: {names}", "warn"),)
    yield from _listed(" connecting: ", (clean(one.device) for one in health if _is_connecting(one)))
    slow = (one for one in health if one.condition.state == "slow" and not one.is_overdue)
    paces = (f"{clean(one.device)} {one.condition.every_s:.1f} s" for one in slow)
    yield from _listed(" polled less often, slow to answer: ", paces)


def _listed(title: str, names: Iterable[str]) -> Iterator[Line]:
    if text := ", ".join(names):
        yield (Span(f"{title}{text}", "warn"),)


def _is_connecting(one: Health) -> bool:
    return one.condition.state == "connecting" and one.is_overdue


def _weight(one: Health) -> int:
    """The importance of a separate line; 0 for none."""
    if one.condition.state == "gone":
        return 3
    if one.is_overdue and not _is_connecting(one):
        return 2
    return int(bool(one.condition.why))


def _condition_text(one: Health) -> str:
    condition = one.condition
    if condition.state == "gone":
        return f"gone, retried after {condition.again_s:.0f} s: {clean(condition.why)}"
    if one.is_overdue:
        return "no sample yet" if one.silent_s is None else f"no sample for {one.silent_s:.0f} s"
    return clean(condition.why)


def _foot(look: ViewState, glyphs: Glyphs) -> Line:
    if look.is_typing:
        return (Span(" type words of a device, port, peer or rail; enter keeps them, escape ends", "dim"),)
    other = "ports" if look.is_rails else "rails"
    enter = "enter back" if look.is_detail else "enter port"
    text = f" q quit  p stop  s sort: {look.sort}  / filter  {glyphs.updown} choose  {enter}  tab {other}"
    return (Span(text, "dim"),)

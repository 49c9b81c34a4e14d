"""What the user has chosen to see; keys change it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from netkit.watch.board import Board, BoardView, Health, Row
from netkit.watch.feed import PortReading
from netkit.watch.port_severity import SEVERE, SLIGHT, WORDS, Level, PauseLimits, natural, use
from netkit.watch.span import Glyphs, Span, Style, sparkline

Sort = Literal["wrong", "traffic", "name"]
SORTS: tuple[Sort, ...] = ("wrong", "traffic", "name")
Key = tuple[str, str]
"""Device and port."""
LONGEST_FILTER = 60


@dataclass(frozen=True, slots=True)
class ViewState:
    """The view: mode, sort order, filter and chosen port."""

    is_rails: bool = False
    is_detail: bool = False
    is_paused: bool = False
    is_typing: bool = False
    """Keys go into the filter."""
    sort: Sort = "wrong"
    wanted: str = ""
    """The filter: ports that match each of its words."""
    chosen: Key | None = None


def key(row: Row) -> Key:
    return row.wire.device, row.wire.port


def shown(view: BoardView, look: ViewState) -> tuple[Row, ...]:
    words = look.wanted.lower().split()
    rows = (row for row in view.rows if all(word in row.wire.label for word in words))
    if look.sort == "name":
        return tuple(sorted(rows, key=lambda row: (natural(row.wire.device), natural(row.wire.port))))
    if look.sort == "traffic":  # in steps, so that rows of equal use stay where they are
        return tuple(sorted(rows, key=lambda row: -round(16 * use(row.reading, row.wire.speed_gbps))))
    return tuple(rows)


def pressed(look: ViewState, name: str, rows: Sequence[Row], page: int = 10) -> ViewState:
    """The view after a key: a character, or the name of a special key."""
    if look.is_typing:
        return _typed(look, name)
    if look.is_detail and name in {"enter", "escape", "backspace"}:
        return replace(look, is_detail=False)
    steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page, "home": -len(rows)}
    steps["end"] = len(rows)
    if name in steps:
        by = steps[name]
        if not rows:
            return look
        keys = [key(row) for row in rows]
        before = keys.index(look.chosen) if look.chosen in keys else -1 if by > 0 else len(keys)
        return replace(look, chosen=keys[max(0, min(len(keys) - 1, before + by))])
    if name == "enter":
        chosen = look.chosen or (key(rows[0]) if rows else None)
        return replace(look, chosen=chosen, is_detail=chosen is not None)
    return _switched(look, name)


def _switched(look: ViewState, name: str) -> ViewState:
    if name == "p":
        return replace(look, is_paused=not look.is_paused)
    if name == "s":
        return replace(look, sort=SORTS[(SORTS.index(look.sort) + 1) % len(SORTS)])
    if name == "/":
        return replace(look, is_typing=True, is_detail=False, is_rails=False)
    if name == "tab":
        return replace(look, is_rails=not look.is_rails, is_detail=False)
    return replace(look, wanted="", chosen=None) if name == "escape" else look


def _typed(look: ViewState, name: str) -> ViewState:
    if name == "enter":
        return replace(look, is_typing=False)
    if name == "escape":
        return replace(look, is_typing=False, wanted="")
    if name == "backspace":
        return replace(look, wanted=look.wanted[:-1])
    is_text = len(name) == 1 and name.isprintable() and len(look.wanted) < LONGEST_FILTER
    return replace(look, wanted=look.wanted + name) if is_text else look


OF_LEVEL: Mapping[Level, str] = {
    Level.LOSES: "loss",
    Level.FILLS: "headroom_share",
    Level.QUEUES: "queue_share",
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
"""The rate of pauses, shown where a device does not report their duration."""


def of_trouble(row: Row, columns: int, limits: PauseLimits, glyphs: Glyphs) -> Span:
    """The history of a port's problem; of its traffic if there is none."""
    quantity = OF_LEVEL.get(row.severity.level)
    if quantity is None:
        return of_traffic(row, columns, glyphs)
    return of_quantity(row, quantity, columns, limits, glyphs)


def of_quantity(row: Row, quantity: str, columns: int, limits: PauseLimits, glyphs: Glyphs) -> Span:
    """The history of a quantity; a full bar is its highest value, or at least the limit of pauses."""
    peaks = row.peaks(quantity, columns)
    if quantity in FRAMES and all(value is None for value in peaks):
        quantity = FRAMES[quantity]
        peaks = row.peaks(quantity, columns)
    least = {"pause_in": limits.pause_fraction_fail, "pause_out": limits.pause_fraction_fail}.get(quantity, 0.0)
    return Span(sparkline(peaks, max(least, highest(peaks)), glyphs), style_of(row.severity.level))


def of_traffic(row: Row, columns: int, glyphs: Glyphs) -> Span:
    """The history of utilisation in the busier direction."""
    received, sent = row.peaks("rx_bps", columns), row.peaks("tx_bps", columns)
    pairs = [[value for value in pair if value is not None] for pair in zip(received, sent, strict=True)]
    both = [max(pair, default=None) for pair in pairs]
    return Span(sparkline(both, row.wire.speed_gbps * 1e9 or highest(both), glyphs), "good")


def highest(values: Sequence[float | None]) -> float:
    return max((value for value in values if value is not None), default=0.0)


def style_of(level: Level) -> Style:
    return "bad" if level in SEVERE else "warn" if level in SLIGHT else ""


UNREACHED = 4


def exit_code(board: Board) -> int:
    """4 if no device answered, else 0."""
    return 0 if any(one.samples for one in board.health(0).values()) else UNREACHED


def result(board: Board, now_s: float) -> Mapping[str, Any]:
    """Devices and ports, the worst first; unknown values are null."""
    view = board.view(now_s)
    return {
        "fabric": view.outline.fabric,
        "lab": view.outline.lab,
        "at_s": round(now_s, 3),
        "devices": [_device(one) for one in view.health],
        "ports": [_port(row) for row in shown(view, ViewState())],
    }


def _device(one: Health) -> Mapping[str, Any]:
    silent_s = None if one.silent_s is None else round(one.silent_s, 3)
    return {"device": one.device, **asdict(one.condition), "samples": one.samples, "silent_s": silent_s}


def _port(row: Row) -> Mapping[str, Any]:
    highest: dict[str, float | None] = {}
    for name in PortReading._fields:
        values = (getattr(point.reading, name) for point in row.track.since(0))
        highest[name] = max((value for value in values if value is not None), default=None)
    return {
        **row.wire._asdict(),
        "what": WORDS[row.severity.level],
        "level": row.severity.level.name.lower(),
        "last": row.reading._asdict(),
        "highest": highest,
    }

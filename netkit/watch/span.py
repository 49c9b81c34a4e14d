"""Text in cells of a terminal: cut, padded, and without control characters."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Style = Literal["", "bold", "dim", "bad", "warn", "good", "title", "chosen"]
WIDE = "WF"


class Span(NamedTuple):
    """Text in one style."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters to draw with."""

    bars: str
    """From none to full; a blank means not measured."""
    absent: str
    chosen: str
    more: str
    arrow: str
    updown: str


UNICODE = Glyphs("▁▂▃▄▅▆▇█", "–", "▸", "…", "→", "↑↓")
ASCII = Glyphs("_.:-=+*#", "-", ">", "~", "to", "up/down")


def glyphs_for(encoding: str | None) -> Glyphs:
    try:
        "".join((UNICODE.bars, UNICODE.absent, UNICODE.chosen, UNICODE.more, UNICODE.arrow)).encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return ASCII
    return UNICODE


def clean(text: str) -> str:
    """Replace characters that do not take exactly one cell."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _has_one_cell(char) else "?" for char in text)


def _has_one_cell(char: str) -> bool:
    is_wide = unicodedata.combining(char) or unicodedata.east_asian_width(char) in WIDE
    return char.isprintable() and (char.isascii() or not is_wide)


def fit(text: str, width: int, *, is_right: bool = False, more: str = "…") -> str:
    """Cut or pad text to exactly `width` cells."""
    if len(text) > width:
        return text[: max(0, width - len(more))] + more[:width]
    return text.rjust(width) if is_right else text.ljust(width)


def cut(line: Iterable[Span], width: int) -> Line:
    found: list[Span] = []
    for span in line:
        if width <= 0:
            break
        found.append(Span(span.text[:width], span.style))
        width -= len(span.text)
    return tuple(found)


def plain(lines: Sequence[Line]) -> str:
    """Join lines as text without styles."""
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)


PREFIXES = ("", "k", "M", "G", "T", "P")


def short(value: float | None, absent: str) -> str:
    """Format a number in at most five cells: `0`, `0.3`, `42`, `1.25k`, `380G`."""
    if value is None:
        return absent
    if 0 < value < 0.95:
        return f"{value:.1f}" if value >= 0.05 else "<0.1"
    index = 0
    while value >= 999.5 and index < len(PREFIXES) - 1:
        value, index = value / 1000, index + 1
    digits = 0 if index == 0 or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{min(value, 9999):.{digits}f}{PREFIXES[index]}"


def percent(value: float | None, absent: str) -> str:
    """Format a fraction in at most five cells."""
    if value is None:
        return absent
    if 0 < value < 0.001:
        return "<0.1%"
    return f"{value:.0%}" if value >= 0.9995 or value == 0 else f"{value:.1%}"


def sparkline(values: Sequence[float | None], top: float, glyphs: Glyphs) -> str:
    """Draw a history; a small value differs from none, and a gap means not measured."""
    return "".join(" " if value is None else _bar(value, top, glyphs.bars) for value in values)


def _bar(value: float, top: float, bars: str) -> str:
    if value <= 0:
        return bars[0]
    last = len(bars) - 1
    share = min(1.0, value / top) if top > 0 else 1.0
    return bars[max(1, round(share * last))]

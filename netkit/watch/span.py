"""Text in cells of a terminal: cut, padded, and without anything that could move its cursor."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Style = Literal["", "bold", "dim", "bad", "warn", "good", "title", "chosen"]
WIDE = "WF"


class Span(NamedTuple):
    """Text of one look."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What can be drawn with."""

    bars: str
    """From none to full; what was not measured is a blank."""
    absent: str
    chosen: str
    more: str
    arrow: str
    updown: str


UNICODE = Glyphs("▁▂▃▄▅▆▇█", "–", "▸", "…", "→", "↑↓")
ASCII = Glyphs("_.:-=+*#", "-", ">", "~", "to", "up/down")


def glyphs_for(encoding: str | None) -> Glyphs:
    """Return what an encoding can say."""
    try:
        "".join((UNICODE.bars, UNICODE.absent, UNICODE.chosen, UNICODE.more, UNICODE.arrow)).encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return ASCII
    return UNICODE


def clean(text: str) -> str:
    """Return text of which each character takes one cell and none does anything."""
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char.isascii():
        return char if char.isprintable() else "?"
    is_odd = unicodedata.combining(char) or unicodedata.east_asian_width(char) in WIDE or not char.isprintable()
    return "?" if is_odd else char


def fit(text: str, width: int, *, is_right: bool = False, more: str = "…") -> str:
    """Return text in exactly so many cells."""
    if len(text) > width:
        return text[: max(0, width - len(more))] + more[:width]
    return text.rjust(width) if is_right else text.ljust(width)


def cut(line: Iterable[Span], width: int) -> Line:
    """Return what of a line fits."""
    found: list[Span] = []
    for span in line:
        if width <= 0:
            break
        found.append(Span(span.text[:width], span.style))
        width -= len(span.text)
    return tuple(found)


def plain(lines: Sequence[Line]) -> str:
    """Return lines without their looks."""
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)

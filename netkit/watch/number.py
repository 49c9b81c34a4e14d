"""Numbers in few cells."""

from collections.abc import Sequence

from netkit.watch.span import Glyphs

PREFIXES = ("", "k", "M", "G", "T", "P")


def short(value: float | None, absent: str) -> str:
    """Return a number in at most five cells: `0`, `0.3`, `42`, `1.25k`, `380G`."""
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
    """Return a part of the whole in at most five cells."""
    if value is None:
        return absent
    if 0 < value < 0.001:
        return "<0.1%"
    return f"{value:.0%}" if value >= 0.9995 or value == 0 else f"{value:.1%}"


def sparkline(values: Sequence[float | None], top: float, glyphs: Glyphs) -> str:
    """Return a history; none and little look different, and what was not measured is a gap."""
    return "".join(" " if value is None else _bar(value, top, glyphs.bars) for value in values)


def _bar(value: float, top: float, bars: str) -> str:
    if value <= 0:
        return bars[0]
    last = len(bars) - 1
    share = min(1.0, value / top) if top > 0 else 1.0
    return bars[max(1, round(share * last))]

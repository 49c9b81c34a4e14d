"""What the firmware of a NIC knows of its link, as mlxlink or mstlink prints it: JSON, or text where it is old."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from netkit.facts.optic import Line, Module
from netkit.platforms.linux.facts.mlxlink_module import module, values, word
from netkit.platforms.linux.facts.reading import document, member, number, plain, whole

SMALLEST = 1e-30
"""A rate of 15E-255 is the tool's zero."""
DASHES = re.compile(r"-{3,}\Z")
Rows = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Shown:
    """What one call told."""

    module: Module | None = None
    line: Line | None = None
    bins: Mapping[int, int] = field(default_factory=dict)
    """Number of wrong symbols → codewords."""


def shown(text: str) -> Shown:
    """Return what one call told; nothing where it told nothing."""
    found = _sections(text)
    return Shown(
        module=module(member(found, "Module Info")),
        line=_line(member(found, "Operational Info"), member(found, "Physical Counters and BER Info")),
        bins=dict(_bins(member(found, "Histogram of FEC Errors"))),
    )


def _sections(text: str) -> Mapping[str, Any]:
    told = document(text)
    if isinstance(told, dict):
        return member(member(told, "result"), "output")
    return _of_text(text)


def _of_text(text: str) -> Mapping[str, Any]:
    """Return the text form in the shape of the JSON: headings are underlined, lanes are separated by commas."""
    found: dict[str, dict[str, object]] = {}
    rows: dict[str, object] = {}
    for line, after in pairwise([*plain(text).splitlines(), ""]):
        key, colon, value = line.partition(":")
        if DASHES.match(after.strip()) and line.strip():
            rows = found.setdefault(line.strip(), {})
        elif colon and key.strip():
            rows[key.strip()] = value.strip()
    return found


def _line(operation: Rows, counters: Rows) -> Line | None:
    if not operation and not counters:
        return None
    lanes = dict(enumerate(map(_rate, values(counters, "Raw Physical BER Per Lane")), 1))
    known = {at: rate for at, rate in lanes.items() if rate is not None}
    ber = _rate(word(counters, "Raw Physical BER"))
    return Line(
        fec=fec_name(word(operation, "FEC")),
        ber=max(known.values(), default=None) if ber is None else ber,
        effective_ber=_rate(word(counters, "Effective Physical BER")),
        lane_ber=known,
    )


def fec_name(told: str) -> str:
    """Return a kind of FEC in the words of facts, or as it was told."""
    upper = told.upper()
    if "RS" in upper and "FEC" in upper:
        return "rs"
    if "FIRECODE" in upper.replace("-", "").replace(" ", "") or "FC-FEC" in upper:
        return "fc"
    return "none" if upper == "NO FEC" else told


def _rate(told: str) -> float | None:
    rate = number(told)
    if rate is None or not 0 <= rate <= 1:
        return None
    return rate if rate >= SMALLEST else 0.0


def _bins(rows: Rows) -> Iterator[tuple[int, int]]:
    """Yield the bins: the number stands in the name, the count last."""
    for name in rows:
        head, _, index = name.partition(" ")
        words = " ".join(values(rows, name)).split()
        count = whole(words[-1]) if words else None
        if head == "Bin" and whole(index) is not None and count is not None:
            yield int(index), count

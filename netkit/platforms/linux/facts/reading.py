"""Reading what a host printed, whatever it is: nothing here raises."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from netkit.platforms.shown import parsed

COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WHOLE = re.compile(r"[0-9]{1,20}\Z")
NUMBER = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,4})?\Z")
BEGIN, END = "#@ ", "#= "
MOST = 2**64
NOTHING: Mapping[str, Any] = {}


def whole(told: object) -> int | None:
    """Return a count or an index; None when that is not what was told."""
    if isinstance(told, str) and WHOLE.match(told.strip()):
        told = int(told)
    is_count = isinstance(told, int) and not isinstance(told, bool)
    return told if is_count and isinstance(told, int) and 0 <= told < MOST else None


def number(told: object) -> float | None:
    """Return a measured value; None when that is not what was told."""
    if isinstance(told, str):
        return number(float(told)) if NUMBER.match(told.strip()) else None
    if isinstance(told, bool) or not isinstance(told, int | float) or abs(told) >= MOST:
        return None
    return float(told) if math.isfinite(told) else None


def plain(text: str) -> str:
    """Return a text without the colours of a terminal."""
    return COLOUR.sub("", text)


def document(text: str) -> Any:
    """Return the JSON that a command printed; None when it is none."""
    return parsed(text)


def members(found: object) -> tuple[Mapping[str, Any], ...]:
    """Return the objects in a list; an object alone counts as one."""
    listed = found if isinstance(found, list) else [found]
    return tuple(one for one in listed if isinstance(one, dict))


def member(found: object, key: str) -> Mapping[str, Any]:
    """Return an object inside another one; empty when there is none."""
    inner = found.get(key) if isinstance(found, dict) else None
    return inner if isinstance(inner, dict) else NOTHING


def word(found: Mapping[str, Any], key: str) -> str:
    """Return a text inside an object; empty when there is none."""
    told = found.get(key)
    return told.strip() if isinstance(told, str) else ""


def sections(text: str) -> dict[str, str]:
    """Return what one command printed about each NIC, of those it ended well for."""
    found: dict[str, str] = {}
    name, rows = "", list[str]()
    for line in text.splitlines():
        if line.startswith(BEGIN):
            name, rows = line.removeprefix(BEGIN).strip(), []
        elif line.startswith(END):
            if name and line.removeprefix(END).strip() == "0" and any(row.strip() for row in rows):
                found[name] = "\n".join(rows)
            name = ""
        elif name:
            rows.append(line)
    return found


def pairs(text: str, separator: str = ":") -> Iterator[tuple[str, str]]:
    """Yield keys and values of lines; lines without a separator are left out."""
    for line in plain(text).splitlines():
        key, found, value = line.partition(separator)
        if found and key.strip():
            yield key.strip(), value.strip()

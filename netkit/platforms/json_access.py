"""Tolerant access to a device's JSON output. Nothing here raises, whatever the input.

A value of an unexpected type counts as absent.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

from pydantic_core import from_json

Shown = Mapping[str, object]
HALF = r"\ud"
"""Start of an escaped surrogate."""
MOST_DIGITS = 20
LARGEST = 2**64
DECODER = json.JSONDecoder()
START = re.compile(r"^[{\[]", re.MULTILINE)
RECENT = 8
"""Large answers that are kept parsed, since several views of a device read the same; nothing changes them."""
MOST_STARTS = 100
"""Limit on lines that look like the start of JSON, in truncated text."""


def parsed(text: str) -> object:
    """Parse JSON; None if it is invalid."""
    try:
        return from_json(text)
    except ValueError:  # this parser is the faster one, and the stricter one
        pass
    try:
        return printable(json.loads(text), text)
    except (ValueError, RecursionError):
        return None


def printable(found: object, text: str) -> object:
    """Replace lone surrogates in JSON parsed from a text: JSON may hold them, UTF-8 cannot."""
    return _without_surrogates(found) if HALF in text.lower() else found


def _without_surrogates(found: object) -> object:
    if isinstance(found, str):
        return found.encode("utf-8", "replace").decode("utf-8")
    if isinstance(found, list):
        return [_without_surrogates(one) for one in found]
    if isinstance(found, dict):
        return {_without_surrogates(key): _without_surrogates(one) for key, one in found.items()}
    return found


def table(found: object, *path: str) -> Shown:
    """Find the object at a path; empty if there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def named(found: object, *path: str) -> Iterator[tuple[str, Shown]]:
    """Yield the objects within the object at a path, by name."""
    for name, one in table(found, *path).items():
        if isinstance(one, dict):
            yield name, one


def rows(found: object) -> list[Shown]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(found: object) -> str:
    """Convert a string or a number to text; empty for anything else."""
    if isinstance(found, str):
        return found.strip()
    number = whole(found)
    return "" if number is None else str(number)


def whole(found: object) -> int | None:
    """Convert a number or a quoted number to an integer that fits a 64-bit counter; None for anything else."""
    if type(found) is int:
        return found if 0 <= found < LARGEST else None
    if isinstance(found, str):
        digits = found.strip()
        found = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS else None
    if isinstance(found, float) and math.isfinite(found) and found.is_integer():
        found = int(found)
    is_number = isinstance(found, int) and not isinstance(found, bool)
    return found if is_number and isinstance(found, int) and 0 <= found < LARGEST else None


def number(found: object) -> float | None:
    """Convert a finite number to float; None for anything else."""
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    return float(found) if type(found) is int and abs(found) < LARGEST else None


def flag(found: object) -> bool | None:
    """A boolean; None for anything else."""
    return found if isinstance(found, bool) else None


def documents(text: str) -> Iterator[object]:
    """Yield each JSON object or list that starts at the beginning of a line, with any text around it."""
    end = 0
    for start in islice(START.finditer(text), MOST_STARTS):
        if start.end() > end:
            with suppress(ValueError, RecursionError):
                found, end = DECODER.raw_decode(text, start.end() - 1)
                yield _without_surrogates(found)


NO_SEPARATORS = str.maketrans("", "", ".:-")
HEXADECIMAL = "0123456789abcdef"


def mac_or_name(shown: str) -> str:
    """Normalise a MAC address to 00:1c:73:a0:fc:18; anything else is unchanged."""
    digits = shown.lower().translate(NO_SEPARATORS)
    is_mac = len(digits) == 12 and not digits.strip(HEXADECIMAL)
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if is_mac else shown


UNKNOWN = -1
"""What NAPALM's getters return for a counter that a device does not expose."""


def count_or_unknown(value: object) -> int:
    """Convert a number or numeric text to a counter, else UNKNOWN."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() else UNKNOWN

"""Access to what a device shows as JSON. Nothing here raises, whatever the text.

A value of another type than expected counts as absent.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice

Shown = Mapping[str, object]
HALF = r"\ud"
"""How the halves of characters begin that JSON writes as two."""
MOST_DIGITS = 20
LARGEST = 2**64
DECODER = json.JSONDecoder()
START = re.compile(r"^[{\[]", re.MULTILINE)
MOST_STARTS = 100
"""Of what begins like JSON in a text that is cut off."""


def parsed(text: str) -> object:
    """Return JSON; None when it is none."""
    try:
        return printable(json.loads(text), text)
    except (ValueError, RecursionError):
        return None


def printable(found: object, text: str) -> object:
    """Return JSON, found in a text, without halves of characters: it may hold them, and nothing else can."""
    return _whole(found) if HALF in text.lower() else found


def _whole(found: object) -> object:
    if isinstance(found, str):
        return found.encode("utf-8", "replace").decode("utf-8")
    if isinstance(found, list):
        return [_whole(one) for one in found]
    if isinstance(found, dict):
        return {_whole(key): _whole(one) for key, one in found.items()}
    return found


def table(found: object, *path: str) -> Shown:
    """Return the object at a path; empty when there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def named(found: object, *path: str) -> Iterator[tuple[str, Shown]]:
    """Yield the objects in an object, by name."""
    yield from ((name, one) for name, one in table(found, *path).items() if isinstance(one, dict))


def rows(found: object) -> list[Shown]:
    """Return the objects in a list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(found: object) -> str:
    """Return a word or a number as text; empty when it is neither."""
    if isinstance(found, str):
        return found.strip()
    number = whole(found)
    return "" if number is None else str(number)


def whole(found: object) -> int | None:
    """Return a whole number that a counter or an identifier can be, also one in quotes."""
    if isinstance(found, str):
        digits = found.strip()
        found = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS else None
    if isinstance(found, float) and math.isfinite(found) and found.is_integer():
        found = int(found)
    is_number = isinstance(found, int) and not isinstance(found, bool)
    return found if is_number and isinstance(found, int) and 0 <= found < LARGEST else None


def number(found: object) -> float | None:
    """Return a finite number."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    if isinstance(found, int) and abs(found) >= LARGEST:
        return None
    return float(found) if math.isfinite(found) else None


def flag(found: object) -> bool | None:
    """Return what is true or false."""
    return found if isinstance(found, bool) else None


def documents(text: str) -> Iterator[object]:
    """Yield each JSON object or list that begins a line, whatever stands around it."""
    end = 0
    for start in islice(START.finditer(text), MOST_STARTS):
        if start.end() > end:
            with suppress(ValueError, RecursionError):
                found, end = DECODER.raw_decode(text, start.end() - 1)
                yield _whole(found)


def mac_or_name(shown: str) -> str:
    """Return an address as everybody else writes it, 00:1c:73:a0:fc:18; a name as it is."""
    digits = "".join(sign for sign in shown.lower() if sign not in ".:-")
    is_mac = len(digits) == 12 and all(sign in "0123456789abcdef" for sign in digits)
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if is_mac else shown


UNKNOWN = -1
"""What NAPALM's getters return for a count that a device does not show."""


def count_or_unknown(value: object) -> int:
    """Return a count, whether it came as a number or as text."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() else UNKNOWN

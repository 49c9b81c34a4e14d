"""Slots: the fixed positions of devices, written `8`, `1-8`, `1-3,5` or `[1, 2, 3, 5]`.

A device's numbers follow its slot, never its position in a list, so removing slot 4 renumbers nothing.
"""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

LARGEST = 65_535
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


def parse(text: str) -> tuple[int, ...]:
    """The slots of a text such as `1-3,5`, in ascending order."""
    slots: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            raise ValueError("{given} is not a list of slots; write it as 1-8 or 1-3,5")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last <= LARGEST:
            raise ValueError(f"{part} runs backwards or past {LARGEST}; write the smaller number first")
        if not slots.isdisjoint(range(first, last + 1)):
            raise ValueError("{given} names a slot twice; name each once")
        slots.update(range(first, last + 1))
    return tuple(sorted(slots))


def _from_count(value: Any) -> tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= LARGEST:
            raise ValueError(f"{{given}} is not a count; use 1 to {LARGEST}")
        return tuple(range(1, value + 1))
    return _from_text(value)


def _from_number(value: Any) -> tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        return parse(str(value))
    return _from_text(value)


def _from_text(value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, tuple):
        return value
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, int | str) and not isinstance(one, bool) for one in value)
    ):
        return parse(",".join(map(str, value)))
    raise ValueError("{given} is neither a number nor a list of slots; write it as 8, 1-8 or 1-3,5")


_PATTERN = r"^[0-9]+(-[0-9]+)?(, ?[0-9]+(-[0-9]+)?)*$"
_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": _PATTERN},
        {
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": _PATTERN}]},
        },
    ]
}

Count = Annotated[tuple[int, ...], BeforeValidator(_from_count), WithJsonSchema(_SCHEMA)]
"""A count (`8` means slots 1 to 8) or an explicit list (`1-3,5-8`)."""

Numbers = Annotated[tuple[int, ...], BeforeValidator(_from_number), WithJsonSchema(_SCHEMA)]
"""One number (`3` means just 3) or a list of ranges (`1-15`)."""

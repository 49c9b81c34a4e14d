"""What `sonic-db-dump` prints: a database as JSON, key → {type, value}. Values may be `N/A`, and are texts."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.facts import Absent
from netkit.platforms.json_access import printable

Row = Mapping[str, str]
START = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
WHOLE = re.compile(r"\d{1,20}", re.ASCII)
NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?([eE][-+]?\d{1,3})?", re.ASCII)
NO_LIGHT_DBM = -40.0
MOST_TRIES = 20
"""A warning may begin like JSON; a text that is cut off has as many beginnings as lines."""
DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Database:
    """The rows of a database that were asked for."""

    rows: Mapping[str, Row]

    def row(self, key: str) -> Row:
        """Return a row; an empty one where there is none."""
        return self.rows.get(key, {})

    def table(self, prefix: str) -> dict[str, Row]:
        """Return the rows below a prefix, by the rest of their keys."""
        return {key[len(prefix) :]: row for key, row in self.rows.items() if key.startswith(prefix)}


def database(text: str) -> Database | None:
    """Return what was dumped; nothing when the text is no whole dump."""
    found = value(text)
    if not isinstance(found, dict):
        return None
    return Database({key: dict(_fields(entry)) for key, entry in found.items() if isinstance(entry, dict)})


def value(text: str) -> object:
    """Return the JSON in a text; nothing when there is none. Warnings of a tool may stand around it."""
    return next(values(text), None)


def values(text: str) -> Iterator[object]:
    """Yield each JSON object or list that begins a line."""
    end, tries = 0, 0
    for start in START.finditer(text):
        if start.start() < end:
            continue
        try:
            found, end = DECODER.raw_decode(text, start.end() - 1)
        except (ValueError, RecursionError):
            tries += 1
            if tries == MOST_TRIES:
                return
        else:
            yield printable(found, text)


def _fields(entry: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    fields = entry.get("value")
    for name, text in fields.items() if isinstance(fields, dict) else ():
        if isinstance(text, str):
            yield name, text


def whole(text: str | None) -> int | None:
    """Return a count."""
    return int(text) if text is not None and WHOLE.fullmatch(text.strip()) else None


def number(text: str | None) -> float | None:
    """Return a reading, whatever its unit."""
    found = NUMBER.match((text or "").strip())
    number = float(found[0]) if found else None
    return number if number is None or math.isfinite(number) else None


def dbm(text: str | None) -> float | None:
    """Return light; none at all is told as minus infinity."""
    return NO_LIGHT_DBM if (text or "").strip().startswith("-inf") else number(text)


def word(text: str | None) -> str:
    """Return a text; empty where it says that it is none."""
    said = (text or "").strip()
    return "" if said in {"N/A", "None", "NULL"} else said


def flag(text: str | None) -> bool | None:
    """Return whether it is so; nothing when the text does not say."""
    return {"true": True, "1": True, "false": False, "0": False}.get((text or "").strip().lower())


def unread(name: str) -> Absent:
    """Return why there is nothing of a database."""
    return Absent(f"{name} cannot be read: what came is no dump of it")


def without(name: str, table: str) -> Absent:
    """Return why there is nothing, though the database was read."""
    return Absent(f"{name} has no {table}")

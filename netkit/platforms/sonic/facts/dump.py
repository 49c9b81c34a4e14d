"""Parsers of `sonic-db-dump`: a database as JSON, key → {type, value}. Values are texts, and may be `N/A`."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from netkit.facts import Absent
from netkit.platforms.json_access import RECENT, parsed, printable

Row = Mapping[str, str]
START = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
WHOLE = re.compile(r"\d{1,20}", re.ASCII)
NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?([eE][-+]?\d{1,3})?", re.ASCII)
NO_LIGHT_DBM = -40.0
MOST_TRIES = 20
"""Limit on lines that look like the start of JSON: warnings, and the lines of truncated JSON."""
DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Database:
    """Rows of a database, by key."""

    rows: Mapping[str, Row]

    def row(self, key: str) -> Row:
        """A row, empty if it is missing."""
        return self.rows.get(key, {})

    def table(self, prefix: str) -> dict[str, Row]:
        """The rows with a prefix, by the rest of their keys."""
        return {key[len(prefix) :]: row for key, row in self.rows.items() if key.startswith(prefix)}


@lru_cache(maxsize=RECENT)
def database(text: str) -> Database | None:
    """Parse a dump; None if it is incomplete."""
    found = value(text)
    if not isinstance(found, dict):
        return None
    rows: dict[str, Row] = {}
    for key, entry in found.items():
        if isinstance(entry, dict):
            fields = entry.get("value")
            fields = fields if isinstance(fields, dict) else {}
            rows[key] = {name: text for name, text in fields.items() if isinstance(text, str)}
    return Database(rows)


def value(text: str) -> object:
    """Find the first JSON document in a text, ignoring warnings around it; None if there is none."""
    whole_text = parsed(text) if text.startswith("{") else None
    return next(values(text), None) if whole_text is None else whole_text


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


def whole(text: str | None) -> int | None:
    return int(text) if text is not None and WHOLE.fullmatch(text.strip()) else None


def number(text: str | None) -> float | None:
    """Parse a reading, ignoring its unit."""
    found = NUMBER.match((text or "").strip())
    number = float(found[0]) if found else None
    return number if number is None or math.isfinite(number) else None


def dbm(text: str | None) -> float | None:
    """Parse optical power; -inf without a signal."""
    return NO_LIGHT_DBM if (text or "").strip().startswith("-inf") else number(text)


def word(text: str | None) -> str:
    """A text; empty for `N/A` and the like."""
    stripped = (text or "").strip()
    return "" if stripped in {"N/A", "None", "NULL"} else stripped


def flag(text: str | None) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get((text or "").strip().lower())


def unread(name: str) -> Absent:
    return Absent(f"{name} cannot be read: the output is not a dump of it")


def without(name: str, table: str) -> Absent:
    return Absent(f"{name} has no {table}")

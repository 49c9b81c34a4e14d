"""The schema of CONFIG_DB per branch, read from a data file."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import yaml

from netkit.lab.personalities.sonic.tables import SEPARATOR, View, parts


class Rows:
    """The rows of all tables, for values that refer to one."""

    def __init__(self, tables: View) -> None:
        self._tables = tables
        self._first: dict[str, frozenset[str]] = {}

    def names(self, table: str) -> frozenset[str]:
        """Return the first key part of each row of a table."""
        if table not in self._first:
            self._first[table] = frozenset(parts(key)[0] for key in self._tables.get(table, {}))
        return self._first[table]

    def has(self, table: str, key: str) -> bool:
        return key in self._tables.get(table, {})


class SonicValueCheck(Protocol):
    """Checks a value, given the existing rows and the preceding key parts."""

    def __call__(self, value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        """Return whether it fits."""


@dataclass(frozen=True, slots=True)
class SonicValueKind:
    """A type of value as the schema file writes it."""

    wording: str
    checks: tuple[SonicValueCheck, ...]
    refers_to: frozenset[str]
    shape: str = "one"

    def fits(self, value: object, rows: Rows, before: tuple[str, ...]) -> bool:
        if self.shape == "list":
            return isinstance(value, list) and bool(value) and all(self._one(item, rows, before) for item in value)
        if not isinstance(value, str):
            return False
        items = value.split(",") if self.shape == "commas" else (value,)
        return all(self._one(item, rows, before) for item in items)

    def _one(self, value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        return any(check(value, rows, before) for check in self.checks)


REFERENCES = frozenset({"row", "beside"})


def read(wording: str) -> SonicValueKind:
    """Parse a type in the schema file."""
    shape, _, rest = wording.partition(" ")
    if shape not in {"list", "commas"}:
        shape, rest = "one", wording
    alternatives = [alternative.partition(" ")[::2] for alternative in rest.split(" or ")]
    checks = tuple(_check(word, argument) for word, argument in alternatives)
    refers_to = frozenset(argument for word, argument in alternatives if word in REFERENCES)
    return SonicValueKind(wording, checks, refers_to, shape)


def _check(word: str, argument: str) -> SonicValueCheck:
    """Return the check of one type; the schema file documents the types."""
    fits = bool if word in REFERENCES else _SIMPLE[word](argument)

    def check(value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        if word == "row":
            return value in rows.names(argument)
        if word == "beside":
            return rows.has(argument, f"{before[0]}{SEPARATOR}{value}")
        return bool(fits(value))

    return check


def _number(argument: str) -> Callable[[str], bool]:
    low, high = map(int, argument.split())
    return lambda value: bool(re.fullmatch(r"-?[0-9]{1,20}", value)) and low <= int(value) <= high


def _text(argument: str) -> Callable[[str], bool]:
    low, high = map(int, argument.split())
    return lambda value: low <= len(value) <= high and value.isprintable()


def _ip(*versions: int, has_length: bool) -> Callable[[str], Callable[[str], bool]]:
    def fits(value: str) -> bool:
        try:
            return ("/" in value) == has_length and ipaddress.ip_interface(value).version in versions
        except ValueError:
            return False

    return lambda _: fits


_SIMPLE: dict[str, Callable[[str], Callable[[str], object]]] = {
    "words": lambda argument: frozenset(argument.split()).__contains__,
    "number": _number,
    "text": _text,
    "match": lambda argument: re.compile(argument).fullmatch,
    "ip4": _ip(4, has_length=False),
    "ip": _ip(4, 6, has_length=False),
    "prefix4": _ip(4, has_length=True),
    "prefix": _ip(4, 6, has_length=True),
    "mac": lambda _: re.compile("([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}").fullmatch,
}


FILE = Path(__file__).parent / "data" / "schema.yaml"
FOREVER = 999_999


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a row."""

    kind: SonicValueKind
    is_mandatory: bool


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a table's rows: its key, and either named leaves or free pairs."""

    key: tuple[SonicValueKind, ...]
    leaves: Mapping[str, Leaf]
    pairs: tuple[SonicValueKind, SonicValueKind] | None

    def takes_key(self, key: tuple[str, ...], rows: Rows) -> bool:
        return len(key) == len(self.key) and all(
            kind.fits(part, rows, key[:index]) for index, (kind, part) in enumerate(zip(self.key, key, strict=True))
        )

    def refers_to(self) -> frozenset[str]:
        """Return the tables that rows of this form refer to."""
        found = [*self.key, *(leaf.kind for leaf in self.leaves.values()), *(self.pairs or ())]
        return frozenset().union(*(kind.refers_to for kind in found))


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables of a branch."""

    branch: int
    tables: Mapping[str, tuple[Form, ...]]
    depths: Mapping[str, int]
    """The length of a table's longest chain of references; rows are added in this order."""
    named: frozenset[str]
    """Tables that others refer to."""

    def form(self, table: str, key: str, rows: Rows) -> Form | None:
        """Return the form that matches a row's key."""
        return next((form for form in self.tables.get(table, ()) if form.takes_key(parts(key), rows)), None)


def branch_of(version: str) -> int:
    found = re.match(r"[0-9]{6}", version)
    return int(found.group()) if found else FOREVER


@cache
def schema(branch: int) -> Schema:
    data: dict[str, list[dict[str, Any]]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    tables = {
        name: tuple(_form(entry, branch) for entry in entries if _is_in(entry, branch))
        for name, entries in data.items()
    }
    known = {name: forms for name, forms in tables.items() if forms}
    refers_to = {
        name: frozenset().union(*(form.refers_to() for form in forms)) - {name} for name, forms in known.items()
    }
    named = frozenset().union(*refers_to.values())
    return Schema(branch, known, {name: _depth(refers_to, name) for name in known}, named)


def _form(entry: Mapping[str, Any], branch: int) -> Form:
    leaves: dict[str, Leaf] = {}
    for name, definition in (entry.get("leaves") or {}).items():
        for kind in definition if isinstance(definition, list) else [definition]:
            wording = kind if isinstance(kind, str) else kind["kind"]
            if isinstance(kind, str) or _is_in(kind, branch):
                leaves[name.removesuffix("!")] = Leaf(read(wording), name.endswith("!"))
    pairs = entry.get("pairs")
    return Form(
        key=tuple(map(read, entry["key"])),
        leaves=leaves,
        pairs=(read(pairs[0]), read(pairs[1])) if pairs else None,
    )


def _is_in(entry: Mapping[str, Any], branch: int) -> bool:
    return int(entry.get("since", 0)) <= branch <= int(entry.get("until", FOREVER))


def _depth(refers_to: Mapping[str, frozenset[str]], name: str) -> int:
    return 1 + max((_depth(refers_to, other) for other in refers_to[name]), default=0)

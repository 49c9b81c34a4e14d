"""The tables and values CONFIG_DB may have in one branch of SONiC, read from a data file."""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import yaml

from netkit.lab.personalities.sonic.tables import SEPARATOR, View, parts


class Rows:
    """Which rows there are, for values that name one."""

    def __init__(self, tables: View) -> None:
        self._tables = tables
        self._first: dict[str, frozenset[str]] = {}

    def names(self, table: str) -> frozenset[str]:
        """Return the first key parts of a table's rows."""
        if table not in self._first:
            self._first[table] = frozenset(parts(key)[0] for key in self._tables.get(table, {}))
        return self._first[table]

    def has(self, table: str, key: str) -> bool:
        """Whether there is a row of exactly this key."""
        return key in self._tables.get(table, {})


class SonicValueCheck(Protocol):
    """Whether a value fits, given the rows there are and the key parts before it."""

    def __call__(self, value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        """Return whether it fits."""


@dataclass(frozen=True, slots=True)
class SonicValueKind:
    """One kind of value as the schema file writes it."""

    wording: str
    checks: tuple[SonicValueCheck, ...]
    refers_to: frozenset[str]
    shape: str = "one"

    def fits(self, value: object, rows: Rows, before: tuple[str, ...]) -> bool:
        """Whether a value is of this kind."""
        if self.shape == "list":
            return isinstance(value, list) and bool(value) and all(self._one(item, rows, before) for item in value)
        if not isinstance(value, str):
            return False
        items = value.split(",") if self.shape == "commas" else (value,)
        return all(self._one(item, rows, before) for item in items)

    def _one(self, value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        return any(check(value, rows, before) for check in self.checks)


@dataclass(frozen=True, slots=True)
class _Parsed:
    check: SonicValueCheck
    refers_to: frozenset[str] = field(default_factory=frozenset)


def read(wording: str) -> SonicValueKind:
    """Return the kind a wording of the schema file stands for."""
    shape, _, rest = wording.partition(" ")
    if shape not in {"list", "commas"}:
        shape, rest = "one", wording
    found = [_alternative(words) for words in rest.split(" or ")]
    refers_to = frozenset().union(*(one.refers_to for one in found))
    return SonicValueKind(wording, tuple(one.check for one in found), refers_to, shape)


def _alternative(wording: str) -> _Parsed:
    word, _, rest = wording.partition(" ")
    if word in {"row", "beside"}:
        return _Parsed(_row(rest) if word == "row" else _beside(rest), frozenset({rest}))
    return _Parsed(_SIMPLE[word](rest))


def _row(table: str) -> SonicValueCheck:
    def check(value: str, rows: Rows, before: tuple[str, ...]) -> bool:  # noqa: ARG001
        return value in rows.names(table)

    return check


def _beside(table: str) -> SonicValueCheck:
    def check(value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        return rows.has(table, f"{before[0]}{SEPARATOR}{value}")

    return check


def _plain(fits: Callable[[str], bool]) -> SonicValueCheck:
    return lambda value, rows, before: fits(value)  # noqa: ARG005


def _words(rest: str) -> SonicValueCheck:
    allowed = frozenset(rest.split())
    return _plain(allowed.__contains__)


def _number(rest: str) -> SonicValueCheck:
    low, high = map(int, rest.split())
    return _plain(lambda value: bool(re.fullmatch(r"-?[0-9]{1,20}", value)) and low <= int(value) <= high)


def _text(rest: str) -> SonicValueCheck:
    low, high = map(int, rest.split())
    return _plain(lambda value: low <= len(value) <= high and value.isprintable())


def _match(rest: str) -> SonicValueCheck:
    pattern = re.compile(rest)
    return _plain(lambda value: pattern.fullmatch(value) is not None)


def _address(*versions: int) -> Callable[[str], SonicValueCheck]:
    def fits(value: str) -> bool:
        try:
            return ipaddress.ip_address(value).version in versions
        except ValueError:
            return False

    return lambda _: _plain(fits)


def _prefix(*versions: int) -> Callable[[str], SonicValueCheck]:
    def fits(value: str) -> bool:
        try:
            return "/" in value and ipaddress.ip_interface(value).version in versions
        except ValueError:
            return False

    return lambda _: _plain(fits)


_SIMPLE: dict[str, Callable[[str], SonicValueCheck]] = {
    "words": _words,
    "number": _number,
    "text": _text,
    "match": _match,
    "ip4": _address(4),
    "ip": _address(4, 6),
    "prefix4": _prefix(4),
    "prefix": _prefix(4, 6),
    "mac": lambda _: _match("([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}"),
}


FILE = Path(__file__).parent / "data" / "schema.yaml"
FOREVER = 999_999


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf a row may have."""

    kind: SonicValueKind
    is_mandatory: bool


@dataclass(frozen=True, slots=True)
class Form:
    """One shape of a table's rows: its key, and either named leaves or free pairs."""

    key: tuple[SonicValueKind, ...]
    leaves: Mapping[str, Leaf]
    pairs: tuple[SonicValueKind, SonicValueKind] | None

    def takes_key(self, key: tuple[str, ...], rows: Rows) -> bool:
        """Whether a key is one of this form's."""
        return len(key) == len(self.key) and all(
            kind.fits(part, rows, key[:index]) for index, (kind, part) in enumerate(zip(self.key, key, strict=True))
        )

    def refers_to(self) -> frozenset[str]:
        """Return the tables whose rows this form's rows name."""
        found = [*self.key, *(leaf.kind for leaf in self.leaves.values()), *(self.pairs or ())]
        return frozenset().union(*(kind.refers_to for kind in found))


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables of a branch."""

    branch: int
    tables: Mapping[str, tuple[Form, ...]]
    depths: Mapping[str, int]
    """How far a table stands from those that name no other: what is named must be there first."""
    named: frozenset[str]
    """Tables whose rows others name."""

    def form(self, table: str, key: str, rows: Rows) -> Form | None:
        """Return the form that fits a row's key."""
        return next((form for form in self.tables.get(table, ()) if form.takes_key(parts(key), rows)), None)


def branch_of(version: str) -> int:
    """Return the branch of a release: 202411 of 202411.3."""
    found = re.match(r"[0-9]{6}", version)
    return int(found.group()) if found else FOREVER


@cache
def schema(branch: int) -> Schema:
    """Return the schema of a branch."""
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
    pairs = entry.get("pairs")
    return Form(
        key=tuple(map(read, entry["key"])),
        leaves=dict(_leaves(entry.get("leaves") or {}, branch)),
        pairs=(read(pairs[0]), read(pairs[1])) if pairs else None,
    )


def _leaves(data: Mapping[str, Any], branch: int) -> Iterator[tuple[str, Leaf]]:
    for name, given in data.items():
        entries = given if isinstance(given, list) else [given]
        for entry in entries:
            wording = entry if isinstance(entry, str) else entry["kind"]
            if isinstance(entry, str) or _is_in(entry, branch):
                yield name.removesuffix("!"), Leaf(read(wording), name.endswith("!"))


def _is_in(entry: Mapping[str, Any], branch: int) -> bool:
    return int(entry.get("since", 0)) <= branch <= int(entry.get("until", FOREVER))


def _depth(refers_to: Mapping[str, frozenset[str]], name: str) -> int:
    return 1 + max((_depth(refers_to, other) for other in refers_to[name]), default=0)

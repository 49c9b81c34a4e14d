"""What one value may be: the words of the schema file as checks."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

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


class Check(Protocol):
    """Whether a value fits, given the rows there are and the key parts before it."""

    def __call__(self, value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        """Return whether it fits."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value as the schema file writes it."""

    wording: str
    checks: tuple[Check, ...]
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
    check: Check
    refers_to: frozenset[str] = field(default_factory=frozenset)


def read(wording: str) -> Kind:
    """Return the kind a wording of the schema file stands for."""
    shape, _, rest = wording.partition(" ")
    if shape not in {"list", "commas"}:
        shape, rest = "one", wording
    found = [_alternative(words) for words in rest.split(" or ")]
    refers_to = frozenset().union(*(one.refers_to for one in found))
    return Kind(wording, tuple(one.check for one in found), refers_to, shape)


def _alternative(wording: str) -> _Parsed:
    word, _, rest = wording.partition(" ")
    if word in {"row", "beside"}:
        return _Parsed(_row(rest) if word == "row" else _beside(rest), frozenset({rest}))
    return _Parsed(_SIMPLE[word](rest))


def _row(table: str) -> Check:
    def check(value: str, rows: Rows, before: tuple[str, ...]) -> bool:  # noqa: ARG001
        return value in rows.names(table)

    return check


def _beside(table: str) -> Check:
    def check(value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        return rows.has(table, f"{before[0]}{SEPARATOR}{value}")

    return check


def _plain(fits: Callable[[str], bool]) -> Check:
    return lambda value, rows, before: fits(value)  # noqa: ARG005


def _words(rest: str) -> Check:
    allowed = frozenset(rest.split())
    return _plain(allowed.__contains__)


def _number(rest: str) -> Check:
    low, high = map(int, rest.split())
    return _plain(lambda value: bool(re.fullmatch(r"-?[0-9]{1,20}", value)) and low <= int(value) <= high)


def _text(rest: str) -> Check:
    low, high = map(int, rest.split())
    return _plain(lambda value: low <= len(value) <= high and value.isprintable())


def _match(rest: str) -> Check:
    pattern = re.compile(rest)
    return _plain(lambda value: pattern.fullmatch(value) is not None)


def _address(*versions: int) -> Callable[[str], Check]:
    def fits(value: str) -> bool:
        try:
            return ipaddress.ip_address(value).version in versions
        except ValueError:
            return False

    return lambda _: _plain(fits)


def _prefix(*versions: int) -> Callable[[str], Check]:
    def fits(value: str) -> bool:
        try:
            return "/" in value and ipaddress.ip_interface(value).version in versions
        except ValueError:
            return False

    return lambda _: _plain(fits)


_SIMPLE: dict[str, Callable[[str], Check]] = {
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

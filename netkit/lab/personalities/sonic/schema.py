"""The tables CONFIG_DB may have in one branch of SONiC, read from the schema file."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from netkit.lab.personalities.sonic import kinds
from netkit.lab.personalities.sonic.kinds import Kind, Rows
from netkit.lab.personalities.sonic.tables import parts

FILE = Path(__file__).parent / "data" / "schema.yaml"
FOREVER = 999_999


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf a row may have."""

    kind: Kind
    is_mandatory: bool


@dataclass(frozen=True, slots=True)
class Form:
    """One shape of a table's rows: its key, and either named leaves or free pairs."""

    key: tuple[Kind, ...]
    leaves: Mapping[str, Leaf]
    pairs: tuple[Kind, Kind] | None

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
        key=tuple(map(kinds.read, entry["key"])),
        leaves=dict(_leaves(entry.get("leaves") or {}, branch)),
        pairs=(kinds.read(pairs[0]), kinds.read(pairs[1])) if pairs else None,
    )


def _leaves(data: Mapping[str, Any], branch: int) -> Iterator[tuple[str, Leaf]]:
    for name, given in data.items():
        entries = given if isinstance(given, list) else [given]
        for entry in entries:
            wording = entry if isinstance(entry, str) else entry["kind"]
            if isinstance(entry, str) or _is_in(entry, branch):
                yield name.removesuffix("!"), Leaf(kinds.read(wording), name.endswith("!"))


def _is_in(entry: Mapping[str, Any], branch: int) -> bool:
    return int(entry.get("since", 0)) <= branch <= int(entry.get("until", FOREVER))


def _depth(refers_to: Mapping[str, frozenset[str]], name: str) -> int:
    return 1 + max((_depth(refers_to, other) for other in refers_to[name]), default=0)

"""The difference between two states of CONFIG_DB as single edits, each as wide as it can be."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from netkit.lab.personalities.sonic.tables import Row, Table, Value, View, natural

Operation = Literal["add", "remove", "replace"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One operation on a table, a row of it, or a leaf of that; names it does not reach are empty."""

    operation: Operation
    table: str
    key: str = ""
    leaf: str = ""
    value: Value | Row | Table | None = None

    @property
    def path(self) -> str:
        """Return how far the edit reaches, with slashes between."""
        return "/".join(part for part in (self.table, self.key, self.leaf) if part)

    @property
    def port(self) -> str:
        """Return the port whose row this is, as tables of ports have it first in their keys."""
        return self.key.partition("|")[0]

    def as_json(self) -> dict[str, object]:
        """Return the edit as one operation of a JSON patch."""
        names = (part.replace("~", "~0").replace("/", "~1") for part in (self.table, self.key, self.leaf) if part)
        entry: dict[str, object] = {"op": self.operation, "path": "/" + "/".join(names)}
        return entry if self.operation == "remove" else {**entry, "value": self.value}


def difference(running: View, intended: View) -> list[Edit]:
    """Return what turns the one into the other."""
    return [edit for table in sorted({*running, *intended}) for edit in _table_edits(running, intended, table)]


def _table_edits(running: View, intended: View, table: str) -> Iterator[Edit]:
    if table not in intended:
        yield Edit("remove", table)
    elif table not in running:
        yield Edit("add", table, value={key: dict(row) for key, row in intended[table].items()})
    else:
        before, after = running[table], intended[table]
        for key in sorted({*before, *after}, key=natural):
            if key not in after:
                yield Edit("remove", table, key)
            elif key not in before:
                yield Edit("add", table, key, value=dict(after[key]))
            else:
                yield from _leaf_edits(table, key, dict(before[key]), dict(after[key]))


def _leaf_edits(table: str, key: str, before: Row, after: Row) -> Iterator[Edit]:
    for leaf in sorted({*before, *after}):
        if leaf not in after:
            yield Edit("remove", table, key, leaf)
        elif leaf not in before:
            yield Edit("add", table, key, leaf, after[leaf])
        elif before[leaf] != after[leaf]:
            yield Edit("replace", table, key, leaf, after[leaf])

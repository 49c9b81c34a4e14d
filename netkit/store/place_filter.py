"""Which findings or states to read: names or globs with `*` and `?`, compared by the database."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Table

from netkit.judge import Verdict

T = TypeVar("T")
COLUMNS = {"device": "device", "check": "check_name", "place": "place"}
LIKE = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_", "*": "%", "?": "_"})


@dataclass(frozen=True, slots=True)
class PlaceFilter:
    """A name or a glob for each of three, empty for any; and a verdict, None for warnings and worse."""

    device: str = ""
    check: str = ""
    place: str = ""
    verdict: Verdict | None = None

    def conditions(self, connection: Connection, table: Table) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions on the names."""
        for name, column in COLUMNS.items():
            if pattern := getattr(self, name):
                if connection.dialect.name == "sqlite":  # its LIKE ignores case
                    yield table.c[column].op("GLOB")(pattern.replace("[", "[[]"))
                else:
                    yield table.c[column].like(pattern.translate(LIKE), escape="\\")


@dataclass(frozen=True, slots=True)
class StoredPage(Generic[T]):
    """A part of a list, and how long the list is."""

    items: tuple[T, ...]
    total: int

"""Rows of a JSON object: each with the comma that follows it, so that a template only loops."""

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")

Rows = tuple[tuple[Item, str], ...]
"""Items, each with a comma, the last one with none."""

Table = tuple[Rows[Item], ...]
"""One table of rows, or none."""


def rows(items: Iterable[Item]) -> Rows[Item]:
    """Return the items with their commas."""
    listed = tuple(items)
    commas = [","] * len(listed)
    commas[-1:] = [""] * bool(listed)
    return tuple(zip(listed, commas, strict=True))


def table(items: Iterable[Item]) -> Table[Item]:
    """Return the rows as one table; without items there is no table at all."""
    listed = rows(items)
    return (listed,) if listed else ()

"""Tables in columns as SONiC prints them."""

import re
from collections.abc import Iterable, Sequence

PADDING = 2
"""A column is at least this much wider than its title."""
NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def columns(titles: Sequence[str], rows: Iterable[Sequence[object]], *, right: bool = True) -> str:
    """Return a table; text stands right where SONiC says so, and numbers always do."""
    cells = [[str(cell) for cell in row] for row in rows]
    found = [[row[index] for row in cells] for index in range(len(titles))]
    widths = [max([len(title) + PADDING, *map(len, column)]) for title, column in zip(titles, found, strict=True)]
    rights = [right or _is_numeric(column) for column in found]
    lines = [_line(titles, widths, rights), "  ".join("-" * width for width in widths)]
    return "".join(f"{line}\n" for line in [*lines, *(_line(row, widths, rights) for row in cells)])


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and values between two rules, without titles."""
    widths = [max((len(row[index]) for row in rows), default=0) for index in (0, 1)]
    rule = "  ".join("-" * width for width in widths)
    lines = [rule, *(_line(row, widths, [False, False]) for row in rows), rule]
    return "".join(f"{line}\n" for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], rights: Sequence[bool]) -> str:
    placed = (
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, rights, strict=True)
    )
    return "  ".join(placed).rstrip()


def _is_numeric(column: Sequence[str]) -> bool:
    return bool(column) and all(NUMBER.fullmatch(cell) for cell in column)

"""Aligned columns."""

from collections.abc import Iterable, Sequence


def columns(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    table = [[str(cell) for cell in row] for row in ([head, *rows] if head else rows)]
    if not table:
        return ""
    widths = [max(len(row[index]) for row in table) for index in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
    return "\n".join(lines) + "\n"

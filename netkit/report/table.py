"""Aligned columns; control characters of their texts are escaped."""

from collections.abc import Iterable, Sequence

from netkit.report.plan_view import shown


def columns(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    table = [[shown(str(cell)) for cell in row] for row in ([head, *rows] if head else rows)]
    if not table:
        return ""
    widths = [max(len(row[index]) for row in table) for index in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
    return "\n".join(lines) + "\n"

"""Plain output: aligned columns, CSV and JSON."""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from netkit.errors import Problem, UsageError


def columns(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Return rows as aligned columns."""
    table = [[str(cell) for cell in row] for row in ([head, *rows] if head else rows)]
    if not table:
        return ""
    widths = [max(len(row[index]) for row in table) for index in range(len(table[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
    return "\n".join(lines) + "\n"


def write_json(value: object) -> None:
    """Write a value as JSON, with dataclasses as mappings."""
    sys.stdout.write(json.dumps(_plain(value), indent=1, default=str) + "\n")


def write_csv(rows: Iterable[Any]) -> None:
    """Write dataclass rows of one type as CSV."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names: list[str] = []
    for row in rows:
        if not names:
            names = [field.name for field in fields(row)]
            writer.writerow(names)
        writer.writerow([getattr(row, name) for name in names])


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def check_format(output: str) -> None:
    """Refuse an output format netkit does not have."""
    if output not in {"text", "json"}:
        raise UsageError(Problem(f"no output format {output!r}", "use text or json"))

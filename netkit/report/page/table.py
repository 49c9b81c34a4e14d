"""Tables by column, since thousands of ports mostly have equal values, and texts short enough for a cell."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from netkit.report.plan_view import shown

Value = str | int | float | bool | None
Row = Mapping[str, Value]
RARE = 0.25
"""The share of values that may differ from the usual one for a column to list only the exceptions."""
STEADY = 0.4
"""The share of rows that may start a new value for a column to be run-length encoded."""


def table(rows: Sequence[Row]) -> dict[str, Any]:
    """Convert rows to columns; empty columns are left out."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    known = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return {"rows": len(rows), "columns": {name: column(values) for name, values in known.items()}}


def column(values: Sequence[Value]) -> dict[str, Any]:
    """Encode a column: the usual value and exceptions, runs of values, or all values."""
    (kind, usual), number = Counter(map(_identity, values)).most_common(1)[0]
    if number == len(values):
        return {"all": usual}
    if len(values) - number <= RARE * len(values):
        differs = {str(index): value for index, value in enumerate(values) if _identity(value) != (kind, usual)}
        return {"all": usual, "but": differs}
    runs = [[value, sum(1 for _ in run)] for (_, value), run in groupby(values, key=_identity)]
    if len(runs) <= STEADY * len(values):
        return {"runs": runs}
    return {"each": list(values)}


def _identity(value: Value) -> tuple[type, Value]:
    """A key that also distinguishes True from 1."""
    return type(value), value


def rounded(value: float | None, digits: int = 4) -> float | int | None:
    """Round to significant digits."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def merged(rows: Iterable[Row]) -> dict[str, Value]:
    """Merge rows into one."""
    return {name: value for row in rows for name, value in row.items()}


LONGEST_NAME = 80
LONGEST_TEXT = 400


def name(text: str) -> str:
    return cut(text, LONGEST_NAME)


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Escape text and cut it; an ellipsis marks the cut."""
    plain = shown(text[: longest + 1])
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"

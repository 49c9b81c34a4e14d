"""Tables by column, since thousands of ports mostly say the same: a column that does is one value."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Value = str | int | float | bool | None
Row = Mapping[str, Value]
RARE = 0.25
"""Where no more of the values than this differ from the usual one, only those are told."""


def table(rows: Sequence[Row]) -> dict[str, Any]:
    """Return rows by column; a column in which nothing is known is left out."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    known = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    return {"rows": len(rows), "columns": {name: column(values) for name, values in known.items()}}


def column(values: Sequence[Value]) -> dict[str, Any]:
    """Return a column: all of its values, or the usual one and the few that differ."""
    # A boolean equals a number here, so that the type is part of what is counted.
    (_, usual), number = Counter((type(value), value) for value in values).most_common(1)[0]
    if number == len(values):
        return {"all": usual}
    if len(values) - number <= RARE * len(values):
        differs = {str(index): value for index, value in enumerate(values) if not _is_same(value, usual)}
        return {"all": usual, "but": differs}
    return {"each": list(values)}


def _is_same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and one == other


def rounded(value: float | None, digits: int = 4) -> float | int | None:
    """Return a number with as many digits as mean something."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def merged(rows: Iterable[Row]) -> dict[str, Value]:
    """Return one row of several."""
    return {name: value for row in rows for name, value in row.items()}

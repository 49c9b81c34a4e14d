"""CONFIG_DB as plain values: table → row key → leaf → text, or a list of texts."""

import json
import re
from collections.abc import Mapping

from netkit.lab.node import ConfigRefusedError

Value = str | list[str]
Row = dict[str, Value]
Table = dict[str, Row]
Tables = dict[str, Table]
View = Mapping[str, Mapping[str, Mapping[str, Value]]]
"""The same, for who only reads."""

SEPARATOR = "|"


def parse(text: str, name: str = "config_db.json") -> Tables:
    """Return the tables of a JSON text, or say where it is not a CONFIG_DB."""
    return shaped(parse_json(text, name), name)


def parse_json(text: str, name: str) -> object:
    """Return a JSON text as values; a key that stands twice is refused, where Python would keep the last."""
    try:
        found: object = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ConfigRefusedError(f"{name} is not valid JSON: {error}") from error
    return found


def shaped(found: object, name: str) -> Tables:
    """Return parsed JSON as tables, or refuse what has another shape."""
    if not isinstance(found, dict):
        raise ConfigRefusedError(f"{name}: expected an object of tables")
    tables: Tables = {}
    for table, rows in found.items():
        if not isinstance(rows, dict):
            raise ConfigRefusedError(f"{name}: {table}: expected an object of rows")
        tables[table] = {key: _row(f"{name}: {table}{SEPARATOR}{key}", row) for key, row in rows.items()}
    return tables


def dump(tables: View) -> str:
    """Return tables as SONiC writes them: sorted, numbers in their order, and an empty row as {}."""
    return json.dumps(ordered(tables), indent=4) + "\n"


def ordered(tables: View) -> Tables:
    """Return a deep copy, with tables, rows and leaves in natural order."""
    return {
        name: {
            key: {leaf: list(value) if isinstance(value, list) else value for leaf, value in sorted(rows[key].items())}
            for key in sorted(rows, key=natural)
        }
        for name, rows in sorted(tables.items())
        if rows
    }


def natural(key: str) -> tuple[tuple[int, int | str], ...]:
    """Return what sorts Ethernet8 before Ethernet64."""
    return tuple(
        (0, int(part)) if part[0] in "0123456789" else (1, part) for part in re.findall(r"[0-9]+|[^0-9]+", key)
    )


def text(tables: View, table: str, key: str, leaf: str, otherwise: str = "") -> str:
    """Return one leaf as text."""
    value = tables.get(table, {}).get(key, {}).get(leaf, otherwise)
    return ",".join(value) if isinstance(value, list) else value


def parts(key: str) -> tuple[str, ...]:
    """Return the parts of a row key."""
    return tuple(key.split(SEPARATOR))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)} stands twice")
    return found


def _row(where: str, row: object) -> Row:
    if not isinstance(row, dict):
        raise ConfigRefusedError(f"{where}: expected an object of fields")
    return {leaf: _value(f"{where}: {leaf}", value) for leaf, value in row.items()}


def _value(where: str, value: object) -> Value:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [str(item) for item in value]
    raise ConfigRefusedError(f"{where}: every value is a text or a list of texts, and this is neither")

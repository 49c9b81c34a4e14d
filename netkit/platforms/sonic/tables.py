"""CONFIG_DB in the form of SONiC's own files, and the patch between two of them."""

import copy
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from netkit.platforms.change import Change
from netkit.platforms.frr.model import FRR_CONF
from netkit.platforms.secrets import PLACEHOLDER, SECRET
from netkit.platforms.sonic.model import FRR_TEXT, NO_FIELDS, SECRET_ROWS

Value: TypeAlias = str | list[str]
Row = dict[str, Value]
Tables = dict[str, dict[str, Row]]
Place = tuple[str, ...]
HIGHEST_PRIORITY = 10_000
"""Of rules of access lists, which have this one less their number."""
CONTROL_LISTS = {
    "NETKIT-MANAGEMENT": ("SSH", "SNMP"),
    "NETKIT-GNMI": ("EXTERNAL_CLIENT",),
    "NETKIT-FABRIC": ("ANY",),
    "NETKIT-FABRIC-V6": ("ANY",),
}
"""netkit's access lists of the control plane, each with its services. A list has one version of IP."""


class ShapeError(ValueError):
    """A text is not a CONFIG_DB."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a JSON patch, on the largest possible part; without a value it is a removal."""

    verb: str
    place: Place
    value: Value | Row | dict[str, Row] | None = None

    def item(self) -> dict[str, object]:
        """The operation as JSON patch has it."""
        path = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in self.place)
        entry: dict[str, object] = {"op": self.verb, "path": path}
        return entry if self.verb == "remove" else {**entry, "value": self.value}


def read(text: str) -> Tables:
    """Parse CONFIG_DB without FRR's configuration in it; raises ShapeError."""
    try:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        raise ShapeError("is not JSON") from None
    if not isinstance(found, dict):
        raise ShapeError("holds no tables")
    tables: Tables = {}
    for table, rows in found.items():
        if table == FRR_TEXT:
            continue
        if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
            raise ShapeError(f"{table} does not hold rows")
        tables[table] = {key: {} if row == NO_FIELDS else _values(row) for key, row in rows.items()}
    return tables


def _values(row: dict[str, object]) -> Row:
    values: Row = {}
    for field, value in row.items():
        if isinstance(value, list):
            values[field] = [str(item) for item in value]
        else:
            values[field] = str(value).lower() if isinstance(value, bool) else str(value)
    return values


def text(tables: Tables) -> str:
    return json.dumps(tables, indent=1, sort_keys=True) + "\n"


def routing_mode(tables: Tables) -> str:
    """The mode that decides what configures FRR."""
    return str(tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("docker_routing_config_mode", "separated"))


def changed(running: Tables, changes: Iterable[Change], intended: Tables) -> Tables:
    """Apply changes to tables; values come from the intended tables, which hold the placeholders of secrets."""
    result = copy.deepcopy(running)
    touched: set[tuple[str, str]] = set()
    present: set[tuple[str, str]] = set()
    for change in changes:
        if change.path[0] == FRR_CONF:
            continue
        table, key = change.path[:2]
        if table in SECRET_ROWS and key == SECRET:
            result[table] = copy.deepcopy(intended.get(table, {}))
            continue
        raw_key = key
        if SECRET in key:  # masked: find the key with its placeholder
            rows = intended.get(table, {})
            raw_key = next((raw for raw in rows if PLACEHOLDER.sub(SECRET, raw) == key), key)
        row = result.setdefault(table, {}).setdefault(raw_key, {})
        touched.add((table, raw_key))
        if len(change.path) == 2:
            present |= set() if change.intended is None else {(table, raw_key)}
        elif change.intended is None:
            row.pop(change.path[2], None)
        else:
            row[change.path[2]] = copy.copy(intended[table][raw_key][change.path[2]])
    for table, key in touched - present:
        if not result[table][key]:
            del result[table][key]
    return {table: rows for table, rows in result.items() if rows}


def merged(running: Tables, added: Tables) -> Tables:
    """Merge rows into tables."""
    result = copy.deepcopy(running)
    for table, rows in added.items():
        for key, row in rows.items():
            result.setdefault(table, {}).setdefault(key, {}).update(row)
    return {table: rows for table, rows in result.items() if rows}


def operations(running: Tables, intended: Tables) -> list[Operation]:
    """The operations that turn running tables into intended ones; they never leave a table empty."""
    names = sorted(running.keys() | intended.keys())
    return [operation for table in names for operation in _table(running, intended, table)]


def _table(running: Tables, intended: Tables, table: str) -> Iterator[Operation]:
    old, new = running.get(table, {}), intended.get(table, {})
    if not new:
        if table in running:
            yield Operation("remove", (table,))
    elif not old:
        yield Operation("add", (table,), new)
    else:
        for key in sorted(old.keys() | new.keys()):
            yield from _row((table, key), old.get(key), new.get(key))


def _row(place: Place, old: Row | None, new: Row | None) -> Iterator[Operation]:
    if new is None:
        yield Operation("remove", place)
    elif old is None:
        yield Operation("add", place, new)
    else:
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                yield Operation("remove", (*place, name))
            elif old.get(name) != new[name]:
                yield Operation("replace" if name in old else "add", (*place, name), new[name])


def undone(operations_: Iterable[Operation], found: Tables) -> Iterator[str]:
    """Yield where operations had no effect; rows that SONiC adds by itself do not count."""
    for one in operations_:
        now: object = found
        for part in one.place:
            now = now.get(part) if isinstance(now, dict) else None
        is_done = now is None if one.verb == "remove" else _holds(now, one.value)
        if not is_done:
            yield "|".join(one.place)


def _holds(found: object, wanted: object) -> bool:
    if not isinstance(wanted, dict):
        return found == wanted
    return isinstance(found, dict) and all(name in found and _holds(found[name], one) for name, one in wanted.items())

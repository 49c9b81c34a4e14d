"""CONFIG_DB as SONiC's own files have it, and what a patch has to do to it."""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
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


class ShapeError(ValueError):
    """A text is no CONFIG_DB."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a JSON patch, as wide as it can be. No value: what stands there goes away."""

    verb: str
    place: Place
    value: Value | Row | dict[str, Row] | None = None

    def item(self) -> dict[str, object]:
        """Return the operation as a patch has it."""
        path = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in self.place)
        entry: dict[str, object] = {"op": self.verb, "path": path}
        return entry if self.verb == "remove" else {**entry, "value": self.value}


def read(text: str) -> Tables:
    """Return the tables in a text; ShapeError when it holds none. FRR's configuration among them is left out."""
    try:
        found = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        raise ShapeError("is not JSON") from None
    if not isinstance(found, dict):
        raise ShapeError("holds no tables")
    return {name: _rows(name, rows) for name, rows in found.items() if name != FRR_TEXT}


def _rows(table: str, rows: object) -> dict[str, Row]:
    if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
        raise ShapeError(f"{table} holds something else than rows")
    return {
        key: {} if row == NO_FIELDS else {name: _value(one) for name, one in row.items()} for key, row in rows.items()
    }


def _value(value: object) -> Value:
    if isinstance(value, list):
        return [str(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def text(tables: Tables) -> str:
    """Return tables as a file."""
    return json.dumps(tables, indent=1, sort_keys=True) + "\n"


def routing_mode(tables: Tables) -> str:
    """Return who owns FRR's configuration."""
    return str(tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("docker_routing_config_mode", "separated"))


def changed(running: Tables, changes: Iterable[Change], intended: Tables) -> Tables:
    """Return what tables become by changes; values come from the intended file, where secrets have their places."""
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
        raw_key = _raw_key(intended.get(table, {}), key)
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


def _raw_key(rows: Mapping[str, Row], key: str) -> str:
    """Return the key that a masked one stands for."""
    if SECRET not in key:
        return key
    return next((raw for raw in rows if PLACEHOLDER.sub(SECRET, raw) == key), key)


def merged(running: Tables, added: Tables) -> Tables:
    """Return tables with rows laid over them."""
    result = copy.deepcopy(running)
    for table, rows in added.items():
        for key, row in rows.items():
            result.setdefault(table, {}).setdefault(key, {}).update(row)
    return {table: rows for table, rows in result.items() if rows}


def operations(running: Tables, intended: Tables) -> list[Operation]:
    """Return what turns running tables into intended ones; no table is ever left empty."""
    return [found for table in sorted(running.keys() | intended.keys()) for found in _table(running, intended, table)]


def _table(running: Tables, intended: Tables, table: str) -> Iterator[Operation]:
    have, wanted = running.get(table, {}), intended.get(table, {})
    if not wanted:
        if table in running:
            yield Operation("remove", (table,))
    elif not have:
        yield Operation("add", (table,), wanted)
    else:
        for key in sorted(have.keys() | wanted.keys()):
            yield from _row((table, key), have.get(key), wanted.get(key))


def _row(place: Place, have: Row | None, wanted: Row | None) -> Iterator[Operation]:
    if wanted is None:
        yield Operation("remove", place)
    elif have is None:
        yield Operation("add", place, wanted)
    else:
        for name in sorted(have.keys() | wanted.keys()):
            if name not in wanted:
                yield Operation("remove", (*place, name))
            elif have.get(name) != wanted[name]:
                yield Operation("replace" if name in have else "add", (*place, name), wanted[name])


def undone(operations_: Iterable[Operation], found: Tables) -> Iterator[str]:
    """Yield what operations should have done to tables and did not; rows that SONiC adds by itself are no matter."""
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

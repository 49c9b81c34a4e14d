"""The schema of CONFIG_DB per branch, read from a data file, and rules across rows of YANG models and daemons."""

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import yaml

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic.tables import SEPARATOR, Row, Tables, View, parts, text

COLORS = ("green", "yellow", "red")


class Rows:
    """The rows of all tables, for values that refer to one."""

    def __init__(self, tables: View) -> None:
        self._tables = tables
        self._first: dict[str, frozenset[str]] = {}

    def names(self, table: str) -> frozenset[str]:
        """The first key part of each row of a table."""
        if table not in self._first:
            self._first[table] = frozenset(parts(key)[0] for key in self._tables.get(table, {}))
        return self._first[table]

    def has(self, table: str, key: str) -> bool:
        return key in self._tables.get(table, {})


class SonicValueCheck(Protocol):
    """Checks a value, given the existing rows and the preceding key parts."""

    def __call__(self, value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        """Whether it fits."""


@dataclass(frozen=True, slots=True)
class SonicValueKind:
    """A type of value as the schema file writes it."""

    wording: str
    checks: tuple[SonicValueCheck, ...]
    refers_to: frozenset[str]
    shape: str = "one"

    def fits(self, value: object, rows: Rows, before: tuple[str, ...]) -> bool:
        if self.shape == "list":
            return isinstance(value, list) and bool(value) and all(self._one(item, rows, before) for item in value)
        if not isinstance(value, str):
            return False
        items = value.split(",") if self.shape == "commas" else (value,)
        return all(self._one(item, rows, before) for item in items)

    def _one(self, value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        return any(check(value, rows, before) for check in self.checks)


REFERENCES = frozenset({"row", "beside"})


def read(wording: str) -> SonicValueKind:
    """Parse a type in the schema file."""
    shape, _, rest = wording.partition(" ")
    if shape not in {"list", "commas"}:
        shape, rest = "one", wording
    alternatives = [alternative.partition(" ")[::2] for alternative in rest.split(" or ")]
    checks = tuple(_check(word, argument) for word, argument in alternatives)
    refers_to = frozenset(argument for word, argument in alternatives if word in REFERENCES)
    return SonicValueKind(wording, checks, refers_to, shape)


def _check(word: str, argument: str) -> SonicValueCheck:
    """The check of one type; the schema file documents the types."""
    fits = bool if word in REFERENCES else _SIMPLE[word](argument)

    def check(value: str, rows: Rows, before: tuple[str, ...]) -> bool:
        if word == "row":
            return value in rows.names(argument)
        if word == "beside":
            return rows.has(argument, f"{before[0]}{SEPARATOR}{value}")
        return bool(fits(value))

    return check


def _number(argument: str) -> Callable[[str], bool]:
    low, high = map(int, argument.split())
    return lambda value: bool(re.fullmatch(r"-?[0-9]{1,20}", value)) and low <= int(value) <= high


def _text(argument: str) -> Callable[[str], bool]:
    low, high = map(int, argument.split())
    return lambda value: low <= len(value) <= high and value.isprintable()


def _ip(*versions: int, has_length: bool) -> Callable[[str], Callable[[str], bool]]:
    def fits(value: str) -> bool:
        try:
            return ("/" in value) == has_length and ipaddress.ip_interface(value).version in versions
        except ValueError:
            return False

    return lambda _: fits


_SIMPLE: dict[str, Callable[[str], Callable[[str], object]]] = {
    "words": lambda argument: frozenset(argument.split()).__contains__,
    "number": _number,
    "text": _text,
    "match": lambda argument: re.compile(argument).fullmatch,
    "ip4": _ip(4, has_length=False),
    "ip": _ip(4, 6, has_length=False),
    "prefix4": _ip(4, has_length=True),
    "prefix": _ip(4, 6, has_length=True),
    "mac": lambda _: re.compile("([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}").fullmatch,
}


FILE = Path(__file__).parent / "data" / "schema.yaml"
FOREVER = 999_999


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of a row."""

    kind: SonicValueKind
    is_mandatory: bool


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a table's rows: its key, and either named leaves or free pairs."""

    key: tuple[SonicValueKind, ...]
    leaves: Mapping[str, Leaf]
    pairs: tuple[SonicValueKind, SonicValueKind] | None

    def takes_key(self, key: tuple[str, ...], rows: Rows) -> bool:
        return len(key) == len(self.key) and all(
            kind.fits(part, rows, key[:index]) for index, (kind, part) in enumerate(zip(self.key, key, strict=True))
        )

    def refers_to(self) -> frozenset[str]:
        """The tables that rows of this form refer to."""
        found = [*self.key, *(leaf.kind for leaf in self.leaves.values()), *(self.pairs or ())]
        return frozenset().union(*(kind.refers_to for kind in found))


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables of a branch."""

    branch: int
    tables: Mapping[str, tuple[Form, ...]]
    depths: Mapping[str, int]
    """The length of a table's longest chain of references; rows are added in this order."""
    named: frozenset[str]
    """Tables that others refer to."""

    def form(self, table: str, key: str, rows: Rows) -> Form | None:
        """The form that matches a row's key."""
        return next((form for form in self.tables.get(table, ()) if form.takes_key(parts(key), rows)), None)


def branch_of(version: str) -> int:
    found = re.match(r"[0-9]{6}", version)
    return int(found.group()) if found else FOREVER


@cache
def schema(branch: int) -> Schema:
    data: dict[str, list[dict[str, Any]]] = yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    tables = {
        name: tuple(_form(entry, branch) for entry in entries if _is_in(entry, branch))
        for name, entries in data.items()
    }
    known = {name: forms for name, forms in tables.items() if forms}
    refers_to = {
        name: frozenset().union(*(form.refers_to() for form in forms)) - {name} for name, forms in known.items()
    }
    named = frozenset().union(*refers_to.values())
    return Schema(branch, known, {name: _depth(refers_to, name) for name in known}, named)


def _form(entry: Mapping[str, Any], branch: int) -> Form:
    leaves: dict[str, Leaf] = {}
    for name, definition in (entry.get("leaves") or {}).items():
        for kind in definition if isinstance(definition, list) else [definition]:
            wording = kind if isinstance(kind, str) else kind["kind"]
            if isinstance(kind, str) or _is_in(kind, branch):
                leaves[name.removesuffix("!")] = Leaf(read(wording), name.endswith("!"))
    pairs = entry.get("pairs")
    return Form(
        key=tuple(map(read, entry["key"])),
        leaves=leaves,
        pairs=(read(pairs[0]), read(pairs[1])) if pairs else None,
    )


def _is_in(entry: Mapping[str, Any], branch: int) -> bool:
    return int(entry.get("since", 0)) <= branch <= int(entry.get("until", FOREVER))


def _depth(refers_to: Mapping[str, frozenset[str]], name: str) -> int:
    return 1 + max((_depth(refers_to, other) for other in refers_to[name]), default=0)


def broken_rules(tables: View) -> Iterator[str]:
    yield from _interface_problems(tables)
    yield from _qos_problems(tables)
    yield from _buffer_problems(tables)
    yield from _service_problems(tables)
    yield from _access_problems(tables)
    for key in tables.get("PREFIX", {}):
        *_, prefix, lengths = parts(key)
        if lengths != "exact":
            low, high = map(int, lengths.split(".."))
            if not int(prefix.partition("/")[2]) <= low <= high <= (128 if ":" in prefix else 32):
                yield f"PREFIX|{key}: the lengths are out of range"


def _interface_problems(tables: View) -> Iterator[str]:
    ports = tables.get("PORT", {})
    lanes = Counter(lane for row in ports.values() for lane in str(row["lanes"]).split(","))
    aliases = Counter(str(row["alias"]) for row in ports.values() if "alias" in row)
    yield from (f"PORT: lane {lane} belongs to two ports" for lane, count in lanes.items() if count > 1)
    yield from (f"PORT: alias {alias} belongs to two ports" for alias, count in aliases.items() if count > 1)
    routed = {parts(key)[0] for key in tables.get("INTERFACE", {})}
    seen: set[str] = set()
    for key in tables.get("VLAN_MEMBER", {}):
        port = parts(key)[1]
        if port in routed:
            yield f"VLAN_MEMBER|{key}: {port} is a router interface"
        if port in seen:
            yield f"VLAN_MEMBER|{key}: {port} is untagged in another VLAN already"
        seen.add(port)
    for table in ("INTERFACE", "VLAN_INTERFACE", "LOOPBACK_INTERFACE"):
        rows = tables.get(table, {})
        for key in rows:
            base = parts(key)[0]
            if base not in rows:
                yield f"{table}|{key}: the row {base} is missing"
    for key, row in tables.get("VLAN", {}).items():
        if row.get("vlanid", key.removeprefix("Vlan")) != key.removeprefix("Vlan"):
            yield f"VLAN|{key}: vlanid does not match the name"


def _qos_problems(tables: View) -> Iterator[str]:
    poll = int(text(tables, "PFC_WD", "GLOBAL", "POLL_INTERVAL", "0"))
    for key, row in tables.get("PFC_WD", {}).items():
        for leaf in ("detection_time", "restoration_time"):
            if leaf in row and int(str(row[leaf])) < poll:
                yield f"PFC_WD|{key}: {leaf} is shorter than the poll interval"
    for key, row in tables.get("WRED_PROFILE", {}).items():
        for color in COLORS:
            low, high = row.get(f"{color}_min_threshold"), row.get(f"{color}_max_threshold")
            if high is not None and (low is None or int(str(high)) < int(str(low))):
                yield f"WRED_PROFILE|{key}: {color}_max_threshold needs a {color}_min_threshold not above it"
    for key, row in tables.get("SCHEDULER", {}).items():
        cir, pir = int(str(row.get("cir", "0"))), int(str(row.get("pir", "0")))
        if "pir" in row and not 0 < cir <= pir:
            yield f"SCHEDULER|{key}: pir needs a cir above 0 and not above it"
        if row.get("type") == "STRICT" and "weight" in row:
            yield f"SCHEDULER|{key}: a strict scheduler takes no weight"


def _buffer_problems(tables: View) -> Iterator[str]:
    is_dynamic = text(tables, "DEVICE_METADATA", "localhost", "buffer_model") == "dynamic"
    for key, row in tables.get("BUFFER_POOL", {}).items():
        if "percentage" in row and ("size" in row or not is_dynamic):
            yield f"BUFFER_POOL|{key}: percentage needs the dynamic buffer model and no size"
    for key, row in tables.get("BUFFER_PG", {}).items():
        if row["profile"] == "NULL" and not is_dynamic:
            yield f"BUFFER_PG|{key}: only the dynamic buffer model computes a profile"


def _service_problems(tables: View) -> Iterator[str]:
    has_vrf = text(tables, "MGMT_VRF_CONFIG", "vrf_global", "mgmtVrfEnabled") == "true"
    for table in ("NTP", "SYSLOG_SERVER"):
        for key, row in tables.get(table, {}).items():
            if row.get("vrf") == "mgmt" and not has_vrf:
                yield f"{table}|{key}: the management VRF is not enabled"
    for key, row in tables.get("SNMP_USER", {}).items():
        needed = ("SNMP_USER_AUTH_TYPE", "SNMP_USER_AUTH_PASSWORD", "SNMP_USER_ENCRYPTION_TYPE")
        if row["SNMP_USER_TYPE"] == "Priv":
            yield from (f"SNMP_USER|{key}: Priv needs {leaf}" for leaf in needed if leaf not in row)


def _access_problems(tables: View) -> Iterator[str]:
    control_plane = {name for name, row in tables.get("ACL_TABLE", {}).items() if row["type"] == "CTRLPLANE"}
    for name in sorted(control_plane):
        if "services" not in tables["ACL_TABLE"][name]:
            yield f"ACL_TABLE|{name}: CTRLPLANE needs services"
    for key, row in tables.get("ACL_RULE", {}).items():
        if parts(key)[0] in control_plane and "PACKET_ACTION" not in row:
            yield f"ACL_RULE|{key}: a rule of the control plane needs a PACKET_ACTION"


MAX_LISTED = 20


def refuse_invalid(tables: Tables, schema: Schema) -> None:
    """Raise ConfigRefusedError with the problems of invalid tables."""
    found = problems(tables, schema)
    if found:
        more = [f"and {len(found) - MAX_LISTED} more"] if len(found) > MAX_LISTED else []
        raise ConfigRefusedError("\n".join([*found[:MAX_LISTED], *more]))


def problems(tables: View, schema: Schema) -> list[str]:
    rows = Rows(tables)
    found = [problem for name in tables for problem in _table_problems(tables, name, schema, rows)]
    # Rules across rows parse values, which must be valid first.
    return found or list(broken_rules(tables))


def _table_problems(tables: View, name: str, schema: Schema, rows: Rows) -> Iterator[str]:
    if name not in schema.tables:
        yield f"{name}: no such table in SONiC {schema.branch}"
        return
    if not tables[name]:
        yield f"{name}: an empty table cannot be stored"
    for key, row in tables[name].items():
        form = schema.form(name, key, rows)
        if form is None:
            yield f"{name}|{key}: {_key_problem(schema, name, key, rows)}"
        else:
            yield from (f"{name}|{key}: {problem}" for problem in _row_problems(form, key, dict(row), rows))


def _key_problem(schema: Schema, name: str, key: str, rows: Rows) -> str:
    """Explain a wrong key by the first form with as many parts."""
    found = parts(key)
    for form in schema.tables[name]:
        if len(form.key) == len(found):
            for index, (kind, part) in enumerate(zip(form.key, found, strict=True)):
                if not kind.fits(part, rows, found[:index]):
                    return f"{part!r} does not fit the key: {kind.wording}"
    return "wrong number of parts in the key"


def _row_problems(form: Form, key: str, row: Row, rows: Rows) -> Iterator[str]:
    if form.pairs:
        yield from _pair_problems(form.pairs, row, rows)
        return
    before = parts(key)
    for leaf, value in row.items():
        known = form.leaves.get(leaf)
        if known is None:
            yield f"unknown field {leaf}"
        elif not known.kind.fits(value, rows, before):
            yield f"{leaf}: {value!r} does not fit: {known.kind.wording}"
    yield from (f"{name} is missing" for name, leaf in form.leaves.items() if leaf.is_mandatory and name not in row)


def _pair_problems(pairs: tuple[SonicValueKind, SonicValueKind], row: Row, rows: Rows) -> Iterator[str]:
    names, values = pairs
    if not row:
        yield "needs at least one pair"
    for name, value in row.items():
        if not names.fits(name, rows, ()):
            yield f"{name!r} does not fit: {names.wording}"
        if not values.fits(value, rows, ()):
            yield f"{name}: {value!r} does not fit: {values.wording}"

"""Validation of CONFIG_DB: the schema, and rules across rows of the YANG models and the daemons."""

from collections import Counter
from collections.abc import Iterator

from netkit.lab.node import ConfigRefusedError
from netkit.lab.personalities.sonic.schema import Form, Rows, Schema, SonicValueKind
from netkit.lab.personalities.sonic.tables import Row, Tables, View, parts, text

COLORS = ("green", "yellow", "red")


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

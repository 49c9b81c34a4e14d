"""A checker for CONFIG_DB files: tables, rows, fields, references, and what SONiC's own YANG does not check."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address, ip_interface
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

Tables = dict[str, dict[str, dict[str, Any]]]

SCHEMA = yaml.load((Path(__file__).parent / "sonic.yaml").read_text(), Loader=yaml.CSafeLoader)


def parse(text: str) -> Tables:
    """The tables of a file; a duplicate key is an error, which the json module accepts."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        assert twice == []
        return dict(pairs)

    tables: Tables = json.loads(text, object_pairs_hook=once)
    return tables


def problems(tables: Tables, version: int) -> list[str]:
    """All errors in the tables for a branch."""
    found = [*_shape(tables, version)]
    # Without the right structure the rest would only raise.
    return found or [
        *_ports(tables),
        *_vlans(tables),
        *_qos(tables),
        *_buffers(tables),
        *_services(tables),
        *_routing(tables),
    ]


def _known(names: Iterable[str], version: int) -> dict[str, str]:
    """The names a branch knows, bare, each with the name in the schema."""
    known = {}
    for name in names:
        bare, _, branch = name.partition("@")
        if branch.startswith("-") and version > int(branch[1:]):
            continue
        if branch and not branch.startswith("-") and version < int(branch):
            continue
        known[bare] = name
    return known


def _shape(tables: Tables, version: int) -> Iterator[str]:
    known = _known(SCHEMA, version)
    for table, rows in tables.items():
        if table not in known:
            yield f"{table}: unknown table"
        elif not rows:
            yield f"{table}: empty table"
        else:
            for key, row in rows.items():
                forms = [form for form in SCHEMA[known[table]] if _has_key(tables, form, key)]
                attempts = [[*_fields(tables, f"{table}|{key}", form, row, version)] for form in forms]
                yield from min(attempts, key=len, default=[f"{table}|{key}: no such key"])


def _has_key(tables: Tables, form: Any, key: str) -> bool:
    parts = key.split("|")
    specs = form["key"]
    return len(specs) == len(parts) and all(_fits(tables, *pair) for pair in zip(specs, parts, strict=True))


def _fields(tables: Tables, where: str, form: Any, row: dict[str, Any], version: int) -> Iterator[str]:
    if "map" in form:
        names, values = form["map"]
        for name, value in row.items():
            if not _fits(tables, names, name) or not _fits(tables, values, value):
                yield f"{where}: {name}: {value!r} does not fit"
        return
    known = {name.rstrip("*"): (source, name.endswith("*")) for name, source in _known(form["fields"], version).items()}
    for name, value in row.items():
        if name not in known:
            yield f"{where}: unknown field {name}"
        elif not _fits(tables, form["fields"][known[name][0]], value):
            yield f"{where}: {name}: {value!r} does not fit"
    yield from (f"{where}: {name} is missing" for name, (_, must) in known.items() if must and name not in row)


def _fits(tables: Tables, spec: str, value: Any) -> bool:
    if spec.startswith("/"):
        return isinstance(value, str) and re.fullmatch(spec[1:-1], value) is not None
    kind, _, rest = spec.partition(" ")
    if kind == "list":
        return isinstance(value, list) and bool(value) and all(_fits(tables, rest, item) for item in value)
    return isinstance(value, str) and CHECKS[kind](tables, rest, value)


def _is_int(_: Tables, limits: str, value: str) -> bool:
    low, high = map(int, limits.split(".."))
    return re.fullmatch(r"-?\d+", value) is not None and low <= int(value) <= high


def _is_prefix(_: Tables, __: str, value: str) -> bool:
    return "/" in value and str(ip_interface(value)) == value


CHECKS: dict[str, Callable[[Tables, str, str], bool]] = {
    "int": _is_int,
    "one": lambda _, words, value: value in words.split(" "),
    "ref": lambda tables, table, value: value in tables.get(table, {}),
    "refs": lambda tables, table, value: all(name in tables.get(table, {}) for name in value.split(",")),
    "pair": lambda tables, table, value: f"default|{value}" in tables.get(table, {}),
    "profile": lambda tables, _, value: value == "NULL" or value in tables.get("BUFFER_PROFILE", {}),
    "ip": lambda _, __, value: str(ip_address(value)) == value,
    "prefix": _is_prefix,
    "text": lambda _, __, value: 0 < len(value) <= 255,
    "secret": lambda _, __, value: re.fullmatch(r"@secret:[A-Z][A-Z0-9_]*@", value) is not None,
}


def _repeated(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def _ports(tables: Tables) -> Iterator[str]:
    ports = tables.get("PORT", {})
    yield from (f"PORT: alias {alias} stands twice" for alias in _repeated(port["alias"] for port in ports.values()))
    lanes = [lane for port in ports.values() for lane in port["lanes"].split(",")]
    yield from (f"PORT: lane {lane} belongs to two ports" for lane in _repeated(lanes))
    cages = [f"{port['index']}/{port['subport']}" for port in ports.values()]
    yield from (f"PORT: index/subport {cage} stands twice" for cage in _repeated(cages))
    lengths = tables.get("CABLE_LENGTH", {}).get("AZURE", {})
    yield from (f"CABLE_LENGTH: {name} is missing" for name in ports if name not in lengths)


def _vlans(tables: Tables) -> Iterator[str]:
    routed = {key.split("|")[0] for key in tables.get("INTERFACE", {})}
    for name, vlan in tables.get("VLAN", {}).items():
        if name != f"Vlan{vlan['vlanid']}":
            yield f"VLAN|{name}: vlanid {vlan['vlanid']}"
    members = [key.split("|")[1] for key in tables.get("VLAN_MEMBER", {})]
    yield from (f"VLAN_MEMBER: {port} is a routed port" for port in members if port in routed)
    yield from (f"VLAN_MEMBER: {port} is in two VLANs" for port in _repeated(members))
    for table in ("INTERFACE", "VLAN_INTERFACE", "LOOPBACK_INTERFACE"):
        rows = tables.get(table, {})
        yield from (f"{table}|{key}: has no base row" for key in rows if key.split("|")[0] not in rows)
    used = {*routed, *members}
    for name, port in tables.get("PORT", {}).items():
        if (port["admin_status"] == "up") != (name in used):
            yield f"PORT|{name}: {port['admin_status']}, but {'' if name in used else 'not '}in use"


def _qos(tables: Tables) -> Iterator[str]:
    yield from _maps(tables)
    yield from _schedulers(tables)
    for port, row in tables.get("PORT_QOS_MAP", {}).items():
        if port != "global":
            yield from _port_qos(tables, port, row)
    yield from _watchdog(tables)


def _maps(tables: Tables) -> Iterator[str]:
    sizes = {"DSCP_TO_TC_MAP": 64, "TC_TO_QUEUE_MAP": 8, "TC_TO_PRIORITY_GROUP_MAP": 8, "MAP_PFC_PRIORITY_TO_QUEUE": 8}
    for table, size in sizes.items():
        for name, row in tables.get(table, {}).items():
            if sorted(map(int, row)) != list(range(size)):
                yield f"{table}|{name}: not every value is mapped"


def _schedulers(tables: Tables) -> Iterator[str]:
    for name, row in tables.get("WRED_PROFILE", {}).items():
        for color in ("green", "yellow", "red"):
            if int(row[f"{color}_min_threshold"]) >= int(row[f"{color}_max_threshold"]):
                yield f"WRED_PROFILE|{name}: {color} starts where it ends"
    for name, row in tables.get("SCHEDULER", {}).items():
        if "pir" in row and ("cir" not in row or int(row["cir"]) > int(row["pir"])):
            yield f"SCHEDULER|{name}: pir needs a cir that is not above it"


def _port_qos(tables: Tables, port: str, row: dict[str, str]) -> Iterator[str]:
    queues = tables["TC_TO_QUEUE_MAP"][row["tc_to_queue_map"]]
    groups = tables["TC_TO_PRIORITY_GROUP_MAP"][row["tc_to_pg_map"]]
    for dscp, traffic_class in tables["DSCP_TO_TC_MAP"][row["dscp_to_tc_map"]].items():
        if f"{port}|{queues[traffic_class]}" not in tables.get("QUEUE", {}):
            yield f"{port}: DSCP {dscp} goes to queue {queues[traffic_class]}, which has no scheduler"
        if f"{port}|{groups[traffic_class]}" not in tables.get("BUFFER_PG", {}):
            yield f"{port}: DSCP {dscp} goes to priority group {groups[traffic_class]}, which has no buffer"
    for priority in row["pfc_enable"].split(","):
        queue = tables["MAP_PFC_PRIORITY_TO_QUEUE"][row["pfc_to_queue_map"]][priority]
        if "wred_profile" not in tables.get("QUEUE", {}).get(f"{port}|{queue}", {}):
            yield f"{port}: priority {priority} is lossless, but queue {queue} marks no ECN"
        if not _is_lossless(tables, tables.get("BUFFER_PG", {}).get(f"{port}|{priority}", {}).get("profile")):
            yield f"{port}: priority {priority} is lossless, but its priority group has no headroom"
        if priority not in row["pfcwd_sw_enable"].split(","):
            yield f"{port}: priority {priority} is lossless, but not watched"
    if port not in tables.get("PFC_WD", {}):
        yield f"{port}: the watchdog has no times"


def _is_lossless(tables: Tables, name: str | None) -> bool:
    if name == "NULL":
        is_dynamic = tables["DEVICE_METADATA"]["localhost"]["buffer_model"] == "dynamic"
        needed = ("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "LOSSLESS_TRAFFIC_PATTERN")
        return is_dynamic and all(table in tables for table in needed)
    profile = tables["BUFFER_PROFILE"].get(name or "", {})
    size, xon, xoff = (int(profile.get(field, 0)) for field in ("size", "xon", "xoff"))
    is_shared = "xoff" in tables["BUFFER_POOL"]["ingress_lossless_pool"]
    return profile.get("pool") == "ingress_lossless_pool" and xoff > 0 and (is_shared or size >= xon + xoff)


def _watchdog(tables: Tables) -> Iterator[str]:
    rows = tables.get("PFC_WD", {})
    if not rows:
        return
    poll = int(rows.get("GLOBAL", {}).get("POLL_INTERVAL", 0))
    if not poll:
        yield "PFC_WD: the GLOBAL row is missing; without it no row can be added back"
    for name, row in rows.items():
        if name != "GLOBAL" and min(int(row["detection_time"]), int(row["restoration_time"])) < poll:
            yield f"PFC_WD|{name}: faster than the poll interval"


def _buffers(tables: Tables) -> Iterator[str]:
    pools = tables.get("BUFFER_POOL", {})
    if pools and "ingress_lossless_pool" not in pools:
        yield "BUFFER_POOL: buffermgrd needs ingress_lossless_pool"
    is_dynamic = tables["DEVICE_METADATA"]["localhost"]["buffer_model"] == "dynamic"
    for name, pool in pools.items():
        if "percentage" in pool and ("size" in pool or not is_dynamic):
            yield f"BUFFER_POOL|{name}: percentage needs the dynamic model and no size"
        if not is_dynamic and "size" not in pool:
            yield f"BUFFER_POOL|{name}: has no size"
    for name, profile in tables.get("BUFFER_PROFILE", {}).items():
        if ("dynamic_th" in profile) == ("static_th" in profile):
            yield f"BUFFER_PROFILE|{name}: needs one threshold"
    covered: dict[str, list[int]] = {}
    for key in tables.get("BUFFER_QUEUE", {}):
        port, queues = key.split("|")
        first, _, last = queues.partition("-")
        covered.setdefault(port, []).extend(range(int(first), int(last or first) + 1))
    yield from (
        f"BUFFER_QUEUE: {port} has {queues}" for port, queues in covered.items() if sorted(queues) != list(range(8))
    )


def _services(tables: Tables) -> Iterator[str]:
    has_vrf = tables.get("MGMT_VRF_CONFIG", {}).get("vrf_global", {}).get("mgmtVrfEnabled") == "true"
    for table in ("NTP", "SYSLOG_SERVER"):
        for key, row in tables.get(table, {}).items():
            if row.get("vrf") == "mgmt" and not has_vrf:
                yield f"{table}|{key}: there is no management VRF"


def _routing(tables: Tables) -> Iterator[str]:
    is_unified = tables["DEVICE_METADATA"]["localhost"]["docker_routing_config_mode"] == "unified"
    if not is_unified and "BGP_GLOBALS" in tables:
        yield "BGP_GLOBALS: belongs to unified mode"
    unnumbered = [
        port for port, row in tables.get("INTERFACE", {}).items() if row.get("ipv6_use_link_local_only") == "enable"
    ]
    for port in unnumbered if is_unified else ():
        if f"default|{port}" not in tables.get("BGP_NEIGHBOR", {}):
            yield f"{port}: has no BGP neighbour"
    for key in tables.get("BGP_NEIGHBOR", {}):
        port = key.split("|")[1]
        if tables["INTERFACE"].get(port, {}).get("ipv6_use_link_local_only") != "enable":
            yield f"BGP_NEIGHBOR|{key}: {port} has no link-local address"
        if not all(_policies(tables, key, each.split("|")[1]) for each in tables["BGP_GLOBALS_AF"]):
            yield f"BGP_NEIGHBOR|{key}: has no policy for both ways, so no route would pass"
    used = {row.get("match_prefix_set") for row in tables.get("ROUTE_MAP", {}).values()} - {None}
    yield from (f"PREFIX_SET|{name}: no route map uses it" for name in tables.get("PREFIX_SET", {}) if name not in used)
    entered = {key.split("|")[0] for key in tables.get("ROUTE_MAP", {})}
    yield from (
        f"ROUTE_MAP_SET|{name}: has no entry" for name in tables.get("ROUTE_MAP_SET", {}) if name not in entered
    )
    numbers = [tuple(key.split("|")[:2]) for key in tables.get("PREFIX", {})]
    yield from (
        f"PREFIX|{'|'.join(low)}: number stands twice" for low, high in pairwise(sorted(numbers)) if low == high
    )


def _policies(tables: Tables, key: str, family: str) -> bool:
    vrf, port = key.split("|")
    group = tables["BGP_NEIGHBOR"][key]["peer_group_name"]
    rows = (
        tables.get("BGP_PEER_GROUP_AF", {}).get(f"{vrf}|{group}|{family}", {}),
        tables.get("BGP_NEIGHBOR_AF", {}).get(f"{vrf}|{port}|{family}", {}),
    )
    return all(any(side in row for row in rows) for side in ("route_map_in", "route_map_out"))

"""Routing of a SONiC switch: frr.conf in split mode, the BGP tables in unified mode.

The tables are read as the FRR lines that frrcfgd generates from them; a field that is not listed here is reported.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from netkit.platforms.bgp_reader import is_address, static_route
from netkit.platforms.config import Config, Files
from netkit.platforms.frr import routing as frr
from netkit.platforms.frr.model import FRR_CONF
from netkit.platforms.routing import RetainedRouting, Router

DEFAULT_VRF = "default"
MANAGEMENT_VRF = "mgmt"
SPLIT_MODES = frozenset({"split", "split-unified"})
INTERFACES = ("INTERFACE", "VLAN_INTERFACE", "LOOPBACK_INTERFACE", "PORTCHANNEL_INTERFACE", "VLAN_SUB_INTERFACE")
LINKS = ("PORT", "PORTCHANNEL", "VLAN")
PEERS = ("BGP_PEER_GROUP", "BGP_NEIGHBOR")
FAMILIES = ("BGP_PEER_GROUP_AF", "BGP_NEIGHBOR_AF")
IPV4, IPV6 = "ipv4_unicast", "ipv6_unicast"
FAMILY_LINES = {IPV4: "address-family ipv4 unicast", IPV6: "address-family ipv6 unicast"}
AGGREGATES = "BGP_GLOBALS_AF_AGGREGATE_ADDR"
CONFIG_DB = "config_db.json"

Row = Mapping[str, str]
Lines = Mapping[str, str | Mapping[str, str]]
"""Field → its FRR line, with the value at `{}`, or value → FRR line."""
Tables = dict[str, dict[str, dict[str, str]]]
NOTHING: dict[str, dict[str, str]] = {}
NO_ROW: Row = {}
SWITCH = {"true": "", "false": ""}
PLAIN_ROUTE = {"nexthop", "blackhole", "distance"}
"""Fields of a static route that has no interface and leads to no other VRF."""

INSTANCE: Lines = {
    "local_asn": "",
    "router_id": "bgp router-id {}",
    "default_ipv4_unicast": {"true": "", "false": "no bgp default ipv4-unicast"},
    "graceful_shutdown": {"true": "bgp graceful-shutdown", "false": ""},
    "load_balance_mp_relax": {"true": "bgp bestpath as-path multipath-relax", "false": ""},
    "ebgp_requires_policy": {"true": "", "false": "no bgp ebgp-requires-policy"},
    "log_nbr_state_changes": SWITCH,
    "graceful_restart_enable": SWITCH,
    "keepalive": "",
    "holdtime": "",
}
PATHS: Lines = {"max_ebgp_paths": "maximum-paths {}", "max_ibgp_paths": ""}
SESSION: Lines = {
    "peer_type": "remote-as {}",
    "asn": "remote-as {}",
    "peer_group_name": "peer-group {}",
    "admin_status": {"up": "", "down": "shutdown", "true": "", "false": "shutdown"},
    "shutdown_message": "",
    "name": "",
    "local_addr": "",
    "bfd": SWITCH,
    "capability_ext_nexthop": SWITCH,
    "conn_retry": "",
    "keepalive": "",
    "holdtime": "",
}
ACTIVATION: Lines = {
    "admin_status": {"up": "activate", "true": "activate", "down": "no-activate", "false": "no-activate"},
    "max_prefix_limit": "maximum-prefix {}",
    "route_map_in": "route-map {} in",
    "route_map_out": "route-map {} out",
    "allow_as_in": {"true": "allowas-in", "false": ""},
    "allow_as_count": "allowas-in {}",
    "soft_reconfiguration_in": SWITCH,
}
SUMMARY: Lines = {"summary_only": {"true": "summary-only", "false": ""}, "as_set": {"true": "as-set", "false": ""}}
NETWORKS: tuple[tuple[str, str, Lines], ...] = (
    (AGGREGATES, "aggregate-address", SUMMARY),
    ("BGP_GLOBALS_AF_NETWORK", "network", {"policy": "route-map {}", "backdoor": {"true": "backdoor", "false": ""}}),
)
CLAUSE: Lines = {
    "route_operation": "",
    "match_prefix_set": "match ip address prefix-list {}",
    "match_community": "match community {}",
    "set_local_pref": "set local-preference {}",
    "set_community_inline": "set community {}",
    "set_asn_list": "set as-path prepend {}",
    "set_metric": "set metric {}",
    "set_origin": "set origin {}",
}
CLAUSE_V6 = {**CLAUSE, "match_prefix_set": "match ipv6 address prefix-list {}"}
READ = frozenset(
    {
        "DEVICE_METADATA", "BGP_DEVICE_GLOBAL", "VLAN_MEMBER", "STATIC_ROUTE", "BGP_GLOBALS", "BGP_GLOBALS_AF",
        AGGREGATES, "BGP_GLOBALS_AF_NETWORK", "ROUTE_REDISTRIBUTE", "PREFIX_SET", "PREFIX",
        "COMMUNITY_SET", "ROUTE_MAP", *INTERFACES, *LINKS, *PEERS, *FAMILIES,
    }
)  # fmt: skip


def router(config: Config) -> Router:
    tables: Tables = {}
    is_split = False
    for path, value in config.items():
        if path[0] in READ:
            row = tables.setdefault(path[0], {}).setdefault(path[1], {})
            if len(path) > 2:
                row[path[2]] = value
        elif path[0] == FRR_CONF:
            is_split = True
    wired = _wired(tables)
    mode = tables.get("DEVICE_METADATA", NOTHING).get("localhost", NO_ROW).get("docker_routing_config_mode", "")
    if is_split or mode in SPLIT_MODES:
        return frr.bgp(config, wired)
    if mode != "unified":
        return _generated(tables, wired)
    return _unified(tables, wired)


def keeping(files: Files, kept: RetainedRouting) -> Files:
    """Add retained configuration to intended files, and leave the rest as written."""
    if FRR_CONF in files:
        return frr.keeping(files, kept)
    text = files[CONFIG_DB]
    sets = json.loads(text).get("PREFIX_SET", {})
    for name, rule in kept.rules:
        is_itself = rule.shortest == rule.longest == rule.prefix.prefixlen
        lengths = "exact" if is_itself else f"{rule.shortest}..{rule.longest}"
        if name not in sets:
            text = _with_row(text, "PREFIX_SET", name, {"mode": f"IPv{rule.prefix.version}"})
            sets[name] = {}
        action = {"action": "permit" if rule.is_permit else "deny"}
        text = _with_row(text, "PREFIX", f"{name}|{rule.number}|{rule.prefix}|{lengths}", action)
    for aggregate in kept.aggregates:
        summary = {"summary_only": "true" if aggregate.is_summary_only else "false"}
        family = IPV4 if aggregate.prefix.version == 4 else IPV6
        text = _with_row(text, AGGREGATES, f"{DEFAULT_VRF}|{family}|{aggregate.prefix}", summary)
    return {**files, CONFIG_DB: text}


def _with_row(text: str, table: str, key: str, row: Row) -> str:
    """Add a row to CONFIG_DB, by inserting text if possible, so that the rest stays as written."""
    wanted = json.loads(text)
    wanted.setdefault(table, {})[key] = row
    name = re.search(rf'"{table}"\s*:\s*{{(?=\s*")', text)
    line = f"\n  {json.dumps(key)}: {json.dumps(row)}"
    place = name.end() if name else text.find("{") + 1
    added = f"{line}," if name else f'\n "{table}": {{{line}\n }},'
    if place:
        longer = text[:place] + added + text[place:]
        with suppress(ValueError):  # the table was found within a text, for example
            if json.loads(longer) == wanted:
                return longer
    return json.dumps(wanted, indent=1) + "\n"


def _wired(tables: Tables) -> frr.Wiring:
    """Collect the addresses, the VLAN of each access port, speeds, and what is shut down."""
    wired = frr.Wiring()
    elsewhere = set()
    for table in INTERFACES:
        for key, row in tables.get(table, NOTHING).items():
            name, _, text = key.partition("|")
            if text:
                wired.address(name, text, 4, 6)
            elif ":" not in key and row.get("ipv6_use_link_local_only") != "enable":
                wired.without_ipv6.add(name)
            if row.get("vrf_name", DEFAULT_VRF) != DEFAULT_VRF:
                elsewhere.add(name)
    wired.without_ipv6 -= {
        key.partition("|")[0] for table in INTERFACES for key in tables.get(table, NOTHING) if ":" in key
    }
    for name in elsewhere:
        wired.addresses.pop(name, None)
    for key, row in tables.get("VLAN_MEMBER", NOTHING).items():
        vlan, _, port = key.partition("|")
        if row.get("tagging_mode") == "untagged" and vlan not in elsewhere:
            wired.members[port] = vlan
    for table in LINKS:
        wired.down.update(name for name, row in tables.get(table, NOTHING).items() if row.get("admin_status") == "down")
    wired.speeds |= {
        name: int(row["speed"]) // 1000
        for name, row in tables.get("PORT", NOTHING).items()
        if row.get("speed", "").isdecimal() and row.get("autoneg", "off") == "off"
    }
    _static(tables, wired)
    if tables.get("BGP_DEVICE_GLOBAL", NOTHING).get("STATE", NO_ROW).get("tsa_enabled", "false") != "false":
        wired.unknown.append("BGP_DEVICE_GLOBAL|STATE|tsa_enabled: true")
    return wired


def _static(tables: Tables, wired: frr.Wiring) -> None:
    for key, row in tables.get("STATIC_ROUTE", NOTHING).items():
        vrf, _, prefix = key.rpartition("|")
        if vrf == MANAGEMENT_VRF:
            continue
        vias = ["blackhole"] if row.get("blackhole") == "true" else row.get("nexthop", "").split(",")
        distances = (row["distance"].split(",") * len(vias))[: len(vias)] if row.get("distance") else [""] * len(vias)
        routes = [
            static_route((prefix, via, *filter(None, (distance,))), 6 if ":" in prefix else 4)
            for via, distance in zip(vias, distances, strict=True)
        ]
        if vrf in {"", DEFAULT_VRF} and not row.keys() - PLAIN_ROUTE and all(routes):
            wired.static += [route for route in routes if route]
        else:
            wired.unknown.append(f"STATIC_ROUTE|{key}")


def _generated(tables: Tables, wired: frr.Wiring) -> Router:
    """Read the sessions for which bgpcfgd generates FRR's configuration; what else is in its templates is unknown."""
    neighbors = tables.get("BGP_NEIGHBOR", NOTHING)
    wired.unknown.extend(f"BGP_NEIGHBOR|{key}" for key in neighbors)
    lines: frr.Section = [
        ((f"neighbor {key.removeprefix('default|')} {line}",), "")
        for key, row in neighbors.items()
        for line in _lines(row, {field: SESSION[field] for field in ("asn", "admin_status")}, "", "", [])
    ]
    asn = tables.get("DEVICE_METADATA", NOTHING).get("localhost", NO_ROW).get("bgp_asn", "")
    head = f"router bgp {asn}"
    return frr.read((head,), {head: lines}, wired) if asn and lines else frr.read((), {}, wired)


def _unified(tables: Tables, wired: frr.Wiring) -> Router:
    """Read the BGP tables, from which frrcfgd generates FRR's configuration."""
    unknown = wired.unknown
    top: list[str] = []
    sections: dict[str, frr.Section] = {}
    modes = {name: row.get("mode", "") for name, row in tables.get("PREFIX_SET", NOTHING).items()}
    for key, row in tables.get("PREFIX", NOTHING).items():
        name, number, prefix, lengths = (*key.split("|"), "", "", "")[:4]
        low, _, high = lengths.partition("..")
        bounds = f" ge {low} le {high}" if high else ""
        if (":" in prefix) == (modes.get(name) == "IPv6"):
            word = "ipv6" if ":" in prefix else "ip"
            top.append(f"{word} prefix-list {name} seq {number} {row.get('action', '')} {prefix}{bounds}")
    for key, row in tables.get("COMMUNITY_SET", NOTHING).items():
        top.append(f"bgp community-list standard {key} permit {_words(row.get('community_member', ''))}")
    for key, row in tables.get("ROUTE_MAP", NOTHING).items():
        name, _, number = key.partition("|")
        head = f"route-map {name} {row.get('route_operation', 'permit')} {number}"
        top.append(head)
        is_ipv6 = modes.get(row.get("match_prefix_set", "")) == "IPv6"
        sections[head] = [((line,), "") for line in _lines(row, CLAUSE_V6 if is_ipv6 else CLAUSE, "", "", [])]
        sections[head] += [((f"{field}: {row[field]}",), "") for field in row.keys() - CLAUSE.keys()]
    for key, row in tables.get("BGP_GLOBALS", NOTHING).items():
        if key == DEFAULT_VRF and "local_asn" in row:
            head = f"router bgp {row['local_asn']}"
            top.append(head)
            instance = [((line,), "") for line in _instance(tables, unknown)]
            sections[head] = instance + [((family, line), "") for family, line in _families(tables, unknown)]
        else:
            unknown.append(f"BGP_GLOBALS|{key}")
    return frr.read(top, sections, wired)


def _instance(tables: Tables, unknown: list[str]) -> Iterator[str]:
    yield from _lines(tables["BGP_GLOBALS"][DEFAULT_VRF], INSTANCE, "", "BGP_GLOBALS|default", unknown)
    for table in PEERS:
        for key, row in tables.get(table, NOTHING).items():
            vrf, _, name = key.partition("|")
            if vrf != DEFAULT_VRF:
                unknown.append(f"{table}|{key}")
                continue
            if table == "BGP_PEER_GROUP":
                yield f"neighbor {name} peer-group"
            elif not is_address(name):
                yield f"neighbor {name} interface"
            yield from _lines(row, SESSION, f"neighbor {name} ", f"{table}|{key}", unknown)


def _families(tables: Tables, unknown: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines of the instance's families, each with the head of its family."""
    for key, row in tables.get("BGP_GLOBALS_AF", NOTHING).items():
        vrf, _, family = key.partition("|")
        if vrf == DEFAULT_VRF and family in FAMILY_LINES:
            lines = _lines(row, PATHS, "", f"BGP_GLOBALS_AF|{key}", unknown)
            yield from ((FAMILY_LINES[family], line) for line in lines)
        else:
            unknown.append(f"BGP_GLOBALS_AF|{key}")
    yield from _networks(tables, unknown)
    for table in FAMILIES:
        for key, row in tables.get(table, NOTHING).items():
            vrf, name, family = (*key.split("|"), "", "")[:3]
            if vrf == DEFAULT_VRF and family in FAMILY_LINES:
                lines = _lines(row, ACTIVATION, f"neighbor {name} ", f"{table}|{key}", unknown)
                yield from ((FAMILY_LINES[family], line) for line in lines)
            else:
                unknown.append(f"{table}|{key}")


def _networks(tables: Tables, unknown: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the aggregates, networks and redistribution."""
    for table, line, fields in NETWORKS:
        for key, row in tables.get(table, NOTHING).items():
            vrf, _, family_prefix = key.partition("|")
            family, _, prefix = family_prefix.partition("|")
            if vrf == DEFAULT_VRF and family in FAMILY_LINES:
                options = _lines(row, fields, "", f"{table}|{key}", unknown)
                yield FAMILY_LINES[family], " ".join([line, prefix, *options])
            else:
                unknown.append(f"{table}|{key}")
    for key, row in tables.get("ROUTE_REDISTRIBUTE", NOTHING).items():
        vrf, protocol, _, family = (*key.split("|"), "", "", "")[:4]
        if vrf == DEFAULT_VRF and f"{family}_unicast" in FAMILY_LINES:
            options = _lines(row, {"route_map": "route-map {}"}, "", f"ROUTE_REDISTRIBUTE|{key}", unknown)
            yield FAMILY_LINES[f"{family}_unicast"], " ".join([f"redistribute {protocol}", *options])
        elif (vrf, protocol) != (DEFAULT_VRF, "connected"):
            unknown.append(f"ROUTE_REDISTRIBUTE|{key}")


def _lines(row: Row, fields: Lines, start: str, place: str, unknown: list[str]) -> Iterator[str]:
    """Yield the line of each field of a row, in the order of the fields; an unknown value is reported."""
    for field, lines in fields.items():
        value = _words(row[field]) if field in row else ""
        line = lines if isinstance(lines, str) else lines.get(value)
        if not value or (field == "allow_as_count" and row.get("allow_as_in") != "true"):
            continue
        if line is None:
            unknown.append(f"{place}|{field}: {value}")
        elif line:
            yield f"{start}{line}".format(value)
    unknown.extend(f"{place}|{field}: {row[field]}" for field in row.keys() - fields.keys())


def _words(value: str) -> str:
    """Join the items of a value that is a list."""
    return " ".join(json.loads(value)) if value.startswith("[") else value.replace(",", " ")

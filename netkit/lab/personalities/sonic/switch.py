"""The switch state of CONFIG_DB: QoS, ports, VLANs, services, and FRR's configuration as of frrcfgd or frr.conf."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.lab.personalities.sonic.tables import Row, Value, View, natural, parts, text
from netkit.lab.state import (
    CODE_POINTS,
    PRIORITIES,
    EcnState,
    FilterRule,
    GnmiState,
    PortState,
    QosState,
    SchedulerState,
    SnmpState,
    SnmpV3User,
    SwitchState,
    VlanState,
    WatchdogState,
)

FORWARDING_LINES = frozenset({"no fpm use-next-hop-groups", "fpm address 127.0.0.1"})
"""Lines for zebra's FPM module, which programs the ASIC. The lab forwards in the kernel and does not load it."""


def realisable(text: str, *, has_bfd: bool) -> str:
    """Drop the lines for the switch chip, and BFD if its daemon does not run."""
    return "".join(f"{line}\n" for line in _lines(text, has_bfd=has_bfd))


def _lines(text: str, *, has_bfd: bool) -> Iterator[str]:
    is_bfd = False
    for line in text.splitlines():
        if line == "bfd":
            is_bfd = True
        if not (is_bfd and not has_bfd) and line.rstrip() not in FORWARDING_LINES:
            yield line
        if line == "exit":
            is_bfd = False


HEAD = (
    "frr defaults traditional",
    "log syslog informational",
    "log facility local4",
    "service integrated-vtysh-config",
    # With nexthop objects, zebra permanently loses routes once the kernel drops the nexthops of a failed link.
    "no zebra nexthop kernel enable",
    "ip nht resolve-via-default",
    "ipv6 nht resolve-via-default",
)
WORDS = {"IPv4": "ip", "IPv6": "ipv6"}
"""Mode of a prefix set → FRR's word. It decides for route maps too: there is no other field that frrcfgd reads."""
FIRST_WITH_ACTIVATE = 202505
"""Earlier branches inverted `admin_status: up` in an address family."""


def generated_frr_conf(tables: View, branch: int, hostname: str) -> str:
    """Generate frr.conf from the BGP tables, as frrcfgd does."""
    lines = [*HEAD[:1], f"hostname {hostname}", *HEAD[1:], "!"]
    lines += [*_static_routes(tables), *_prefix_lists(tables), *_route_maps(tables), *_router(tables, branch)]
    return "".join(f"{line}\n" for line in lines)


def _rows(tables: View, table: str) -> Iterator[tuple[tuple[str, ...], Row]]:
    for key, row in sorted(tables.get(table, {}).items(), key=lambda entry: natural(entry[0])):
        yield parts(key), dict(row)


def _static_routes(tables: View) -> Iterator[str]:
    for (_, prefix), row in _rows(tables, "STATIC_ROUTE"):
        vias = ["blackhole"] if row.get("blackhole") == "true" else str(row.get("nexthop", "")).split(",")
        yield from (f"ip route {prefix} {via}" for via in vias)


def _prefix_lists(tables: View) -> Iterator[str]:
    for (name, number, prefix, lengths), row in _rows(tables, "PREFIX"):
        word = WORDS.get(text(tables, "PREFIX_SET", name, "mode"), "")
        if word and "action" in row and (word == "ipv6") == (":" in prefix):
            low, _, high = lengths.partition("..")
            span = f" ge {low} le {high}" if high else ""
            yield f"{word} prefix-list {name} seq {number} {row['action']} {prefix}{span}"
    yield "!"


def _route_maps(tables: View) -> Iterator[str]:
    for (name, number), row in _rows(tables, "ROUTE_MAP"):
        if "route_operation" in row:
            yield f"route-map {name} {row['route_operation']} {number}"
            if "match_prefix_set" in row:
                listed = str(row["match_prefix_set"])
                word = WORDS.get(text(tables, "PREFIX_SET", listed, "mode"), "ip")
                yield f" match {word} address prefix-list {listed}"
            if "set_local_pref" in row:
                yield f" set local-preference {row['set_local_pref']}"
            if "set_community_inline" in row:
                yield f" set community {' '.join(row['set_community_inline'])}"
            yield from ("exit", "!")


def _router(tables: View, branch: int) -> Iterator[str]:
    row = dict(tables.get("BGP_GLOBALS", {}).get("default", {}))
    if "local_asn" not in row:
        return
    yield f"router bgp {row['local_asn']}"
    yield from _instance(row)
    for (_, group), settings in _rows(tables, "BGP_PEER_GROUP"):
        yield f" neighbor {group} peer-group"
        if "asn" in settings or "peer_type" in settings:
            yield f" neighbor {group} remote-as {settings.get('asn') or settings['peer_type']}"
        yield from _peer(group, settings)
    for (_, peer), settings in _rows(tables, "BGP_NEIGHBOR"):
        yield from _neighbor(peer, settings)
    yield from ("!", *_family(tables, branch, "ipv4"))
    if any(key.endswith("|ipv6_unicast") for key in tables.get("BGP_GLOBALS_AF", {})):
        yield from ("!", *_family(tables, branch, "ipv6"))
    yield from ("exit", "!")


def _instance(row: Row) -> Iterator[str]:
    if "router_id" in row:
        yield f" bgp router-id {row['router_id']}"
    if row.get("log_nbr_state_changes") == "true":
        yield " bgp log-neighbor-changes"
    if "default_ipv4_unicast" in row:
        yield f" {'' if row['default_ipv4_unicast'] == 'true' else 'no '}bgp default ipv4-unicast"
    if row.get("graceful_restart_enable") == "true":
        yield " bgp graceful-restart"
    if row.get("graceful_shutdown") == "true":
        yield " bgp graceful-shutdown"
    if row.get("load_balance_mp_relax") == "true":
        yield " bgp bestpath as-path multipath-relax"
    if "keepalive" in row and "holdtime" in row:
        yield f" timers bgp {row['keepalive']} {row['holdtime']}"


def _neighbor(peer: str, row: Row) -> Iterator[str]:
    remote = row.get("asn") or row.get("peer_type")
    word = "" if "." in peer or ":" in peer else "interface "
    if "peer_group_name" in row:
        yield f" neighbor {peer} {word}peer-group {row['peer_group_name']}"
        if remote:
            yield f" neighbor {peer} remote-as {remote}"
    elif remote:
        yield f" neighbor {peer} {word}remote-as {remote}"
    else:
        return
    yield from _peer(peer, row)
    if "local_addr" in row:
        yield f" neighbor {peer} update-source {row['local_addr']}"


def _peer(name: str, row: Row) -> Iterator[str]:
    if row.get("name"):
        yield f" neighbor {name} description {row['name']}"
    if row.get("admin_status") == "down":
        yield f" neighbor {name} shutdown"
    if row.get("bfd") == "true":
        yield f" neighbor {name} bfd"
    if "keepalive" in row and "holdtime" in row:
        yield f" neighbor {name} timers {row['keepalive']} {row['holdtime']}"
    if "conn_retry" in row:
        yield f" neighbor {name} timers connect {row['conn_retry']}"
    if row.get("capability_ext_nexthop") == "true":
        yield f" neighbor {name} capability extended-nexthop"


def _family(tables: View, branch: int, version: str) -> Iterator[str]:
    name = f"{version}_unicast"
    yield f" address-family {version} unicast"
    for (_, family, prefix), row in _rows(tables, "BGP_GLOBALS_AF_AGGREGATE_ADDR"):
        if family != name:
            continue
        words = [
            word for word, leaf in (("as-set", "as_set"), ("summary-only", "summary_only")) if row.get(leaf) == "true"
        ]
        yield " ".join([f"  aggregate-address {prefix}", *words])
    for (_, protocol, _, family), row in _rows(tables, "ROUTE_REDISTRIBUTE"):
        if family == version:
            yield " ".join([f"  redistribute {protocol}", *(f"route-map {one}" for one in row.get("route_map", []))])
    for table in ("BGP_PEER_GROUP_AF", "BGP_NEIGHBOR_AF"):
        for (_, peer, family), row in _rows(tables, table):
            if family == name:
                yield from _peer_family(peer, row, branch)
    for (_, family), row in _rows(tables, "BGP_GLOBALS_AF"):
        if family != name:
            continue
        if "max_ebgp_paths" in row:
            yield f"  maximum-paths {row['max_ebgp_paths']}"
        if "max_ibgp_paths" in row:
            yield f"  maximum-paths ibgp {row['max_ibgp_paths']}"
    yield " exit-address-family"


def _peer_family(peer: str, row: Row, branch: int) -> Iterator[str]:
    if "admin_status" in row:
        is_active = row["admin_status"] == "up" and branch >= FIRST_WITH_ACTIVATE
        yield f"  {'' if is_active else 'no '}neighbor {peer} activate"
    if "max_prefix_limit" in row:
        yield f"  neighbor {peer} maximum-prefix {row['max_prefix_limit']}"
    for leaf, direction in (("route_map_in", "in"), ("route_map_out", "out")):
        yield from (f"  neighbor {peer} route-map {name} {direction}" for name in row.get(leaf, []))
    if row.get("allow_as_in") == "true":
        yield f"  neighbor {peer} allowas-in"


GREEN = frozenset({"ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all"})
"""Without policers all packets are green."""
LOSSLESS_POOL = "ingress_lossless_pool"
DYNAMIC_PARAMETERS = ("LOSSLESS_TRAFFIC_PATTERN", "DEFAULT_LOSSLESS_BUFFER_PARAMETER")


def qos(tables: View, port: str) -> QosState:
    rows = {int(parts(key)[1]): row for key, row in tables.get("QUEUE", {}).items() if parts(key)[0] == port}
    queues = dict(sorted(rows.items()))
    global_map = text(tables, "PORT_QOS_MAP", "global", "dscp_to_tc_map")
    dscp_map = _map(tables, "DSCP_TO_TC_MAP", port, "dscp_to_tc_map", global_map)
    pfc_enabled = [int(one) for one in text(tables, "PORT_QOS_MAP", port, "pfc_enable").split(",") if one]
    return QosState(
        priority_of_dscp=() if dscp_map is None else tuple(dscp_map.get(dscp, 0) for dscp in range(CODE_POINTS)),
        class_of_priority=_class_of_priority(tables, port),
        pfc_priorities=frozenset(priority for priority in pfc_enabled if _is_lossless(tables, port, priority)),
        ecn=_ecn(tables, queues),
        schedulers=_schedulers(tables, queues),
        watchdog=_watchdog(tables, port),
        cable_length_m=cable_length_m(tables, port),
    )


def _map(tables: View, table: str, port: str, leaf: str, fallback: str = "") -> dict[int, int] | None:
    name = text(tables, "PORT_QOS_MAP", port, leaf, fallback)
    row = tables.get(table, {}).get(name)
    return None if row is None else {int(key): int(str(value)) for key, value in row.items()}


def _class_of_priority(tables: View, port: str) -> tuple[int, ...]:
    found = _map(tables, "TC_TO_QUEUE_MAP", port, "tc_to_queue_map") or {}
    return tuple(found.get(priority, priority) for priority in range(PRIORITIES))


def _is_lossless(tables: View, port: str, priority: int) -> bool:
    """Whether PFC is effective: the priority group has headroom, and a pause stops the queue the packets leave by."""
    group = (_map(tables, "TC_TO_PRIORITY_GROUP_MAP", port, "tc_to_pg_map") or {}).get(priority, 0)
    queue = (_map(tables, "MAP_PFC_PRIORITY_TO_QUEUE", port, "pfc_to_queue_map") or {}).get(priority)
    is_dynamic = text(tables, "DEVICE_METADATA", "localhost", "buffer_model") == "dynamic"
    # Only ASICs with the dynamic buffer model use this map; there it must name the same group.
    pfc_group = (_map(tables, "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", port, "pfc_to_pg_map") or {}).get(priority)
    return (
        queue == _class_of_priority(tables, port)[priority]
        and (not is_dynamic or pfc_group == group)
        and _has_headroom(tables, port, group)
    )


def _has_headroom(tables: View, port: str, group: int) -> bool:
    for key, row in tables.get("BUFFER_PG", {}).items():
        name, groups = parts(key)
        first, _, last = groups.partition("-")
        if name != port or not int(first) <= group <= int(last or first):
            continue
        if row["profile"] == "NULL":
            # The dynamic buffer model computes the headroom from these.
            has_parameters = all(tables.get(table) for table in DYNAMIC_PARAMETERS)
            has_pool = LOSSLESS_POOL in tables.get("BUFFER_POOL", {})
            return has_parameters and has_pool and cable_length_m(tables, port) > 0
        profile = tables["BUFFER_PROFILE"][str(row["profile"])]
        return profile["pool"] == LOSSLESS_POOL and int(str(profile.get("xoff", "0"))) > 0
    return False


def _ecn(tables: View, queues: Mapping[int, Mapping[str, Value]]) -> dict[int, EcnState]:
    found = {}
    for queue, row in queues.items():
        profile = tables.get("WRED_PROFILE", {}).get(str(row.get("wred_profile", "")), {})
        low, high = profile.get("green_min_threshold"), profile.get("green_max_threshold")
        if profile.get("ecn") in GREEN and low is not None and high is not None:
            probability = int(str(profile.get("green_drop_probability", "100")))
            found[queue] = EcnState(int(str(low)), int(str(high)), probability)
    return found


def _schedulers(tables: View, queues: Mapping[int, Mapping[str, Value]]) -> dict[int, SchedulerState]:
    rows = {queue: tables["SCHEDULER"][str(row["scheduler"])] for queue, row in queues.items() if row.get("scheduler")}
    weights = {queue: int(str(row.get("weight", "1"))) for queue, row in rows.items() if row.get("type") != "STRICT"}
    total = sum(weights.values())
    return {
        queue: SchedulerState("weighted", round(100 * weights[queue] / total))
        if queue in weights
        else SchedulerState("strict")
        for queue in rows
    }


def _watchdog(tables: View, port: str) -> WatchdogState | None:
    row = tables.get("PFC_WD", {}).get(port, {})
    # orchagent ignores a row without a detection time; the watchdog runs only where the port enables it.
    if "detection_time" not in row or not text(tables, "PORT_QOS_MAP", port, "pfcwd_sw_enable"):
        return None
    return WatchdogState(int(str(row["detection_time"])), int(str(row.get("restoration_time", "0"))))


def cable_length_m(tables: View, port: str) -> float:
    """The configured cable length; 0 if there is none."""
    for row in tables.get("CABLE_LENGTH", {}).values():
        if port in row:
            return float(str(row[port]).removesuffix("m"))
    return 0.0


DEFAULT_MTU_BYTES = 9100
DEFAULT_HOSTNAME = "sonic"
GNMI_PORT, FIRST_WITH_GNMI = 8080, 202311
OWN_FILE_MODES = frozenset({"split", "split-unified"})


@dataclass(frozen=True, slots=True)
class SonicDeclaredState:
    """The switch state, and the routed ports without addresses, on which SONiC disables IPv6."""

    state: SwitchState
    ports_without_ipv6: frozenset[str]


def declared_state(tables: View, frr_conf: str, branch: int) -> SonicDeclaredState:
    """The state that valid tables and frr.conf describe."""
    hostname = text(tables, "DEVICE_METADATA", "localhost", "hostname", DEFAULT_HOSTNAME)
    vlan_of = {parts(key)[1]: _vlan_number(parts(key)[0]) for key in tables.get("VLAN_MEMBER", {})}
    ports = tuple(_port(tables, name, vlan_of.get(name, 0)) for name in sorted(tables.get("PORT", {}), key=natural))
    state = SwitchState(
        hostname=hostname,
        ports=ports,
        vlans=tuple(_vlan(tables, name) for name in sorted(tables.get("VLAN", {}), key=natural)),
        loopback_addresses=tuple(
            parts(key)[1] for key in sorted(tables.get("LOOPBACK_INTERFACE", {}), key=natural) if "|" in key
        ),
        frr=_frr(tables, frr_conf, branch, hostname),
        snmp=_snmp(tables),
        gnmi=_gnmi(tables, branch),
        has_lldp=text(tables, "FEATURE", "lldp", "state", "enabled") == "enabled",
        access=_access(tables),
    )
    link_local = {
        name for name, row in tables.get("INTERFACE", {}).items() if row.get("ipv6_use_link_local_only") == "enable"
    }
    without_ipv6 = (port.name for port in ports if not (port.access_vlan or port.addresses or port.name in link_local))
    return SonicDeclaredState(state, frozenset(without_ipv6))


def _port(tables: View, name: str, vlan: int) -> PortState:
    row = tables["PORT"][name]
    return PortState(
        name=name,
        is_enabled=row.get("admin_status") == "up",
        mtu_bytes=int(str(row.get("mtu", DEFAULT_MTU_BYTES))),
        addresses=_addresses(tables, "INTERFACE", name),
        access_vlan=vlan,
        description=str(row.get("description", "")),
        alias=str(row.get("alias", "")),
        speed_gbps=int(str(row["speed"])) // 1000,
        fec=str(row.get("fec", "")),
        qos=qos(tables, name),
        rules=tuple(_rules(tables, name)),
    )


def _rules(tables: View, port: str) -> Iterator[FilterRule]:
    """Yield the rules of the L3 access lists of a port, the highest priority first."""
    lists = {name for name, row in tables.get("ACL_TABLE", {}).items() if row["type"] == "L3"}
    bound = {name for name in lists if port in tables["ACL_TABLE"][name].get("ports", [])}
    rows = [row for key, row in tables.get("ACL_RULE", {}).items() if parts(key)[0] in bound]
    for row in sorted(rows, key=lambda one: -int(str(one["PRIORITY"]))):
        ends = (str(row.get(end, "")) for end in ("SRC_IP", "DST_IP"))
        yield FilterRule(row.get("PACKET_ACTION") != "DROP", *ends)


def _addresses(tables: View, table: str, name: str) -> tuple[str, ...]:
    return tuple(parts(key)[1] for key in sorted(tables.get(table, {})) if key.startswith(f"{name}|"))


def _vlan_number(name: str) -> int:
    return int(name.removeprefix("Vlan"))


def _vlan(tables: View, name: str) -> VlanState:
    row = tables["VLAN"][name]
    return VlanState(
        number=_vlan_number(name),
        interface=name,
        addresses=_addresses(tables, "VLAN_INTERFACE", name),
        mtu_bytes=int(str(row.get("mtu", DEFAULT_MTU_BYTES))),
        is_enabled=row.get("admin_status", "up") == "up",
    )


def _frr(tables: View, frr_conf: str, branch: int, hostname: str) -> str:
    mode = text(tables, "DEVICE_METADATA", "localhost", "docker_routing_config_mode", "separated")
    has_framework = text(tables, "DEVICE_METADATA", "localhost", "frr_mgmt_framework_config") == "true"
    if mode in OWN_FILE_MODES:
        # The container starts bfdd only together with frrcfgd.
        return realisable(frr_conf, has_bfd=has_framework)
    if mode == "unified" and has_framework:
        return generated_frr_conf(tables, branch, hostname)
    return f"frr defaults traditional\nhostname {hostname}\n"


def _gnmi(tables: View, branch: int) -> GnmiState | None:
    """The gNMI server if it is configured. Real images serve gNMI even without configuration."""
    table = "GNMI" if branch >= FIRST_WITH_GNMI else "TELEMETRY"
    if "gnmi" not in tables.get(table, {}):
        return None
    certificates = tables[table].get("certs", {})
    return GnmiState(
        port=int(text(tables, table, "gnmi", "port") or GNMI_PORT),
        has_tls={"server_crt", "server_key"} <= set(certificates),
        has_authentication=text(tables, table, "gnmi", "user_auth") == "password",
    )


SERVICES = {"ssh": "SSH", "snmp": "SNMP", "gnmi": "EXTERNAL_CLIENT"}


def _access(tables: View) -> dict[str, tuple[str, ...]]:
    """The permitted sources of each service. If any list of the control plane exists, all other packets are dropped."""
    lists = {name: row for name, row in tables.get("ACL_TABLE", {}).items() if row["type"] == "CTRLPLANE"}
    found: dict[str, list[str]] = {service: [] for service in SERVICES if lists}
    for key, row in tables.get("ACL_RULE", {}).items():
        services = lists.get(parts(key)[0], {}).get("services", [])
        for service, word in SERVICES.items():
            if {word, "ANY"} & set(services) and row.get("PACKET_ACTION") == "ACCEPT" and "SRC_IP" in row:
                found[service].append(str(row["SRC_IP"]))
    return {service: tuple(networks) for service, networks in found.items()}


def _snmp(tables: View) -> SnmpState | None:
    users = tuple(
        SnmpV3User(name, str(row["SNMP_USER_AUTH_PASSWORD"]), str(row["SNMP_USER_ENCRYPTION_PASSWORD"]))
        for name, row in sorted(tables.get("SNMP_USER", {}).items())
        if row["SNMP_USER_TYPE"] == "Priv"
    )
    found = SnmpState(
        users=users,
        communities=tuple(sorted(tables.get("SNMP_COMMUNITY", {}))),
        location=text(tables, "SNMP", "LOCATION", "Location"),
        contact=text(tables, "SNMP", "CONTACT", "Contact"),
    )
    return None if found == SnmpState() else found

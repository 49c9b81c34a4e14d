"""How a port treats traffic, from the many tables that say it."""

from dataclasses import dataclass

from netkit.lab.personalities.sonic import frrcfgd
from netkit.lab.personalities.sonic.tables import View, natural, parts, text
from netkit.lab.state import (
    CODE_POINTS,
    PRIORITIES,
    EcnState,
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

GREEN = frozenset({"ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all"})
"""Nothing colours packets in the lab, as in a fabric without policers: all of them are green."""
LOSSLESS_POOL = "ingress_lossless_pool"


def qos(tables: View, port: str) -> QosState:
    """Return the state of one port."""
    queues = _queues(tables, port)
    return QosState(
        priority_of_dscp=_priority_of_dscp(tables, port),
        class_of_priority=_class_of_priority(tables, port),
        pfc_priorities=frozenset(
            priority for priority in _pfc_enabled(tables, port) if _is_lossless(tables, port, priority)
        ),
        ecn={queue: found for queue in queues if (found := _ecn(tables, port, queue))},
        schedulers=_schedulers(tables, queues),
        watchdog=_watchdog(tables, port),
        cable_length_m=cable_length_m(tables, port),
    )


def _queues(tables: View, port: str) -> dict[int, str]:
    """Return the queues of a port that have a row, with its key."""
    found = {int(parts(key)[1]): key for key in tables.get("QUEUE", {}) if parts(key)[0] == port}
    return dict(sorted(found.items()))


def _map(tables: View, table: str, port: str, leaf: str, fallback: str = "") -> dict[int, int] | None:
    name = text(tables, "PORT_QOS_MAP", port, leaf, fallback)
    row = tables.get(table, {}).get(name)
    return None if row is None else {int(key): int(str(value)) for key, value in row.items()}


def _priority_of_dscp(tables: View, port: str) -> tuple[int, ...]:
    everywhere = text(tables, "PORT_QOS_MAP", "global", "dscp_to_tc_map")
    found = _map(tables, "DSCP_TO_TC_MAP", port, "dscp_to_tc_map", everywhere)
    return () if found is None else tuple(found.get(dscp, 0) for dscp in range(CODE_POINTS))


def _class_of_priority(tables: View, port: str) -> tuple[int, ...]:
    found = _map(tables, "TC_TO_QUEUE_MAP", port, "tc_to_queue_map") or {}
    return tuple(found.get(priority, priority) for priority in range(PRIORITIES))


def _pfc_enabled(tables: View, port: str) -> list[int]:
    enabled = text(tables, "PORT_QOS_MAP", port, "pfc_enable")
    return [int(priority) for priority in enabled.split(",") if priority]


def _is_lossless(tables: View, port: str, priority: int) -> bool:
    """Whether PFC holds: packets reach a group with headroom, and a pause reaches the queue they leave by."""
    group = (_map(tables, "TC_TO_PRIORITY_GROUP_MAP", port, "tc_to_pg_map") or {}).get(priority, 0)
    queue = (_map(tables, "MAP_PFC_PRIORITY_TO_QUEUE", port, "pfc_to_queue_map") or {}).get(priority)
    is_dynamic = text(tables, "DEVICE_METADATA", "localhost", "buffer_model") == "dynamic"
    # Only the chips of the dynamic model take this map; there it must lead to the same group.
    named = (_map(tables, "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", port, "pfc_to_pg_map") or {}).get(priority)
    return (
        queue == _class_of_priority(tables, port)[priority]
        and (not is_dynamic or named == group)
        and _has_headroom(tables, port, group)
    )


def _has_headroom(tables: View, port: str, group: int) -> bool:
    for key, row in tables.get("BUFFER_PG", {}).items():
        name, groups = parts(key)
        if name == port and _spans(groups, group):
            profile = str(row["profile"])
            return _is_computable(tables, port) if profile == "NULL" else _is_lossless_profile(tables, profile)
    return False


def _spans(span: str, number: int) -> bool:
    first, _, last = span.partition("-")
    return int(first) <= number <= int(last or first)


def _is_computable(tables: View, port: str) -> bool:
    """Whether the dynamic model has all it needs to compute a headroom."""
    needed = ("LOSSLESS_TRAFFIC_PATTERN", "DEFAULT_LOSSLESS_BUFFER_PARAMETER")
    return (
        all(tables.get(table) for table in needed)
        and LOSSLESS_POOL in tables.get("BUFFER_POOL", {})
        and cable_length_m(tables, port) > 0
    )


def _is_lossless_profile(tables: View, name: str) -> bool:
    row = tables["BUFFER_PROFILE"][name]
    return row["pool"] == LOSSLESS_POOL and int(str(row.get("xoff", "0"))) > 0


def _ecn(tables: View, port: str, queue: int) -> EcnState | None:
    name = text(tables, "QUEUE", f"{port}|{queue}", "wred_profile")
    row = tables.get("WRED_PROFILE", {}).get(name, {})
    low, high = row.get("green_min_threshold"), row.get("green_max_threshold")
    if row.get("ecn") not in GREEN or low is None or high is None:
        return None
    return EcnState(int(str(low)), int(str(high)), int(str(row.get("green_drop_probability", "100"))))


def _schedulers(tables: View, queues: dict[int, str]) -> dict[int, SchedulerState]:
    named = {queue: text(tables, "QUEUE", key, "scheduler") for queue, key in queues.items()}
    rows = {queue: tables["SCHEDULER"][name] for queue, name in named.items() if name}
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
    # Without a detection time the daemon ignores the row; without the port's own leaf the watchdog does not run there.
    if "detection_time" not in row or not text(tables, "PORT_QOS_MAP", port, "pfcwd_sw_enable"):
        return None
    return WatchdogState(int(str(row["detection_time"])), int(str(row.get("restoration_time", "0"))))


def cable_length_m(tables: View, port: str) -> float:
    """Return the length of a port's cable as configured; 0 where there is none."""
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
    """A switch's state, and the ports on which SONiC keeps IPv6 off: routed ones without any address."""

    state: SwitchState
    ports_without_ipv6: frozenset[str]


def told(tables: View, frr_conf: str, branch: int) -> SonicDeclaredState:
    """Return what valid tables and the frr.conf beside them tell a switch to be."""
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
    )
    without = frozenset(port.name for port in ports if not port.access_vlan and not _has_ipv6(tables, port))
    return SonicDeclaredState(state, without)


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
    )


def _addresses(tables: View, table: str, name: str) -> tuple[str, ...]:
    return tuple(parts(key)[1] for key in sorted(tables.get(table, {})) if key.startswith(f"{name}|"))


def _has_ipv6(tables: View, port: PortState) -> bool:
    return bool(port.addresses) or text(tables, "INTERFACE", port.name, "ipv6_use_link_local_only") == "enable"


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
        # The container starts bfdd only beside frrcfgd.
        return frrcfgd.realisable(frr_conf, has_bfd=has_framework)
    if mode == "unified" and has_framework:
        return frrcfgd.frr_conf(tables, branch, hostname)
    return f"frr defaults traditional\nhostname {hostname}\n"


def _gnmi(tables: View, branch: int) -> GnmiState | None:
    """Return how gNMI is served. Images serve it without being told to; the lab does not."""
    table = "GNMI" if branch >= FIRST_WITH_GNMI else "TELEMETRY"
    if "gnmi" not in tables.get(table, {}):
        return None
    certificates = tables[table].get("certs", {})
    return GnmiState(
        port=int(text(tables, table, "gnmi", "port") or GNMI_PORT),
        has_tls={"server_crt", "server_key"} <= set(certificates),
        has_authentication=text(tables, table, "gnmi", "user_auth") == "password",
    )


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

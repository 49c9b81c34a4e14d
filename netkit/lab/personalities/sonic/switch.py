"""The switch state of CONFIG_DB: QoS, ports, VLANs, routing and services."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.lab.personalities.sonic import frrcfgd
from netkit.lab.personalities.sonic.tables import Value, View, natural, parts, text
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
        return frrcfgd.realisable(frr_conf, has_bfd=has_framework)
    if mode == "unified" and has_framework:
        return frrcfgd.frr_conf(tables, branch, hostname)
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

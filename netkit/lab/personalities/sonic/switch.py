"""CONFIG_DB and frr.conf → what the switch is told to be."""

from dataclasses import dataclass

from netkit.lab.personalities.sonic import frr_text, frrcfgd
from netkit.lab.personalities.sonic.qos import qos
from netkit.lab.personalities.sonic.tables import View, natural, parts, text
from netkit.lab.state import GnmiState, PortState, SnmpState, SnmpUser, SwitchState, VlanState

DEFAULT_MTU_BYTES = 9100
DEFAULT_HOSTNAME = "sonic"
GNMI_PORT, FIRST_WITH_GNMI = 8080, 202311
OWN_FILE_MODES = frozenset({"split", "split-unified"})


@dataclass(frozen=True, slots=True)
class Told:
    """A switch's state, and the ports on which SONiC keeps IPv6 off: routed ones without any address."""

    state: SwitchState
    ports_without_ipv6: frozenset[str]


def told(tables: View, frr_conf: str, branch: int) -> Told:
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
    return Told(state, without)


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
        return frr_text.realisable(frr_conf, has_bfd=has_framework)
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
        asks_who=text(tables, table, "gnmi", "user_auth") == "password",
    )


def _snmp(tables: View) -> SnmpState | None:
    users = tuple(
        SnmpUser(name, str(row["SNMP_USER_AUTH_PASSWORD"]), str(row["SNMP_USER_ENCRYPTION_PASSWORD"]))
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

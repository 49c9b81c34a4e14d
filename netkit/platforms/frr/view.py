"""Values for the templates of plain Linux with FRR."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from netkit.design.fabric import ExternalPort, Fabric, Port, Switch
from netkit.design.policy import PrefixList, announced, prefix_lists
from netkit.platforms.frr.dialects import FrrDialect, dialect
from netkit.render.output import Artifact

PEER_TIERS = {
    ("leaf", "up"): "SPINES",
    ("spine", "down"): "LEAVES",
    ("spine", "up"): "CORES",
    ("core", "down"): "SPINES",
}


@dataclass(frozen=True, slots=True)
class RouteMap:
    """A route map that permits one prefix list and denies everything else."""

    name: str
    prefix_list: str
    communities: tuple[str, ...] = ()
    local_preference: int | None = None
    version: int = 4
    """Of IP."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The route maps of a peer group, or of one interface that differs from its group."""

    name: str
    inbound: str
    outbound: str


@dataclass(frozen=True, slots=True)
class FrrNeighbor:
    """A BGP neighbour on a port: unnumbered, or by address."""

    interface: str
    group: str
    asn: int
    description: str
    address: str = ""
    """Of the neighbour; empty, as the next: unnumbered."""
    own_address: str = ""
    """FRR 8.4 starts no BFD without it."""


@dataclass(frozen=True, slots=True)
class FrrRouting:
    """Routing values beyond the design. A switch without fabric ports has no BGP, and everything is empty."""

    prefix_lists: tuple[PrefixList, ...] = ()
    route_maps: tuple[RouteMap, ...] = ()
    groups: tuple[Policy, ...] = ()
    neighbors: tuple[FrrNeighbor, ...] = ()
    drained_interfaces: tuple[str, ...] = ()
    neighbor_policies: tuple[Policy, ...] = ()
    external: tuple[ExternalPort, ...] = ()


def routing(fabric: Fabric, switch: Switch, dialect: FrrDialect) -> FrrRouting:
    """Build the routing of a switch, with neighbours in FRR's own order: by group, then by port, then by address."""
    roles = sorted({port.role for port in switch.fabric_ports}, key=lambda role: PEER_TIERS[switch.role, role])
    if not roles:
        return FrrRouting()
    tiers: dict[str, str] = {role: PEER_TIERS[switch.role, role] for role in roles}
    ports = [port for role in roles for port in switch.fabric_ports if port.role == role]
    ports.sort(
        key=lambda port: (roles.index(port.role), int(IPv4Address(port.peer_address)) if port.peer_address else -1)
    )
    drained = [port for port in ports if port.peer in switch.drain_neighbors]
    by_route_map = drained if dialect.neighbor_drain == "route-map" else []
    by_command = drained if dialect.neighbor_drain == "command" else []
    maps = _route_maps(fabric, switch, tiers, frozenset(port.role for port in by_route_map))
    return FrrRouting(
        prefix_lists=tuple(prefix_lists(fabric, switch)),
        route_maps=tuple(_both_versions(switch, maps)),
        groups=tuple(Policy(tier, f"FROM-{tier}", f"TO-{tier}") for tier in tiers.values()),
        neighbors=tuple(
            FrrNeighbor(
                port.name,
                tiers[port.role],
                port.peer_asn,
                port.description,
                port.peer_address,
                port.address.partition("/")[0],
            )
            for port in ports
        ),
        drained_interfaces=tuple(port.neighbor for port in by_command),
        neighbor_policies=tuple(
            Policy(port.neighbor, f"FROM-{tiers[port.role]}-DRAINED", f"TO-{tiers[port.role]}-DRAINED")
            for port in by_route_map
        ),
        external=tuple(sorted(switch.external, key=lambda port: IPv4Address(port.peer))),
    )


def _route_maps(fabric: Fabric, switch: Switch, tiers: dict[str, str], drained: frozenset[str]) -> Iterator[RouteMap]:
    """Yield the route maps: leaves announce only their own routes by default, spines and cores everything."""
    outbound = announced(fabric, switch)
    yield RouteMap("CONNECTED", "CONNECTED")
    for role, tier in tiers.items():
        yield RouteMap(f"FROM-{tier}", "FABRIC")
        yield RouteMap(f"TO-{tier}", outbound)
        if role in drained:
            yield RouteMap(f"FROM-{tier}-DRAINED", "FABRIC", local_preference=0)
            yield RouteMap(f"TO-{tier}-DRAINED", outbound, communities=("graceful-shutdown", "additive"))
    for port in switch.external:
        yield RouteMap(port.inbound, port.inbound)
        yield RouteMap(port.outbound, port.outbound)


def _both_versions(switch: Switch, maps: Iterable[RouteMap]) -> Iterator[RouteMap]:
    """Yield the route maps of the fabric's own routes for IPv6 too, where it has them."""
    maps = tuple(maps)
    yield from maps
    for one in maps if switch.loopback_v6 else ():
        if one.prefix_list in {"CONNECTED", "FABRIC", "LOCAL"}:
            yield replace(one, name=f"{one.name}-V6", prefix_list=f"{one.prefix_list}-V6", version=6)


MANAGEMENT_VRF = "mgmt"
MANAGEMENT_PORT = "eth0"
MANAGEMENT_TABLE = 1001
# A MAC that ages out before its ARP entry causes flooding, of lossless traffic too. Linux re-resolves a neighbour at
# most 1.5 times the base reachable time after the last confirmation, and once more after the delay.
MAC_AGEING_S = 1800
REACHABLE_MS = 600_000
# fmt: off
DAEMONS = (
    "bgpd", "ospfd", "ospf6d", "ripd", "ripngd", "isisd", "pimd", "pim6d", "ldpd",
    "nhrpd", "eigrpd", "babeld", "sharpd", "pbrd", "bfdd", "fabricd", "vrrpd", "pathd",
)
# fmt: on
ROUTING_DAEMONS = frozenset({"bgpd", "bfdd"})
ALWAYS_RUNNING = ("zebra", "staticd")


@dataclass(frozen=True, slots=True)
class FrrInterface:
    """A port in netplan."""

    name: str
    description: str
    mtu_bytes: int
    link_local: str
    address: str | None
    address_v6: str | None = None


@dataclass(frozen=True, slots=True)
class FrrBridge:
    """The host VLAN: a bridge of all host ports, untagged, with the gateway on it."""

    name: str
    mtu_bytes: int
    gateway: str
    ports: tuple[str, ...]
    ageing_s: int
    gateway_v6: str = ""


@dataclass(frozen=True, slots=True)
class FrrDaemon:
    """An FRR daemon and whether it runs."""

    name: str
    state: str


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    words = dialect(switch.version)
    plan = routing(fabric, switch, words)
    running = ROUTING_DAEMONS if plan.groups else frozenset[str]()
    services = fabric.services
    bridge = None
    if switch.vlan is not None:
        members = switch.host_ports
        mtu_bytes = min((port.profile.mtu_bytes for port in members), default=switch.mtu_bytes)
        names = tuple(port.name for port in members)
        gateways = (switch.vlan.gateway, names, MAC_AGEING_S, switch.vlan.gateway_v6)
        bridge = FrrBridge(f"vlan{switch.vlan.number}", mtu_bytes, *gateways)
    context = {
        **_common_values(fabric, switch),
        "routing": plan,
        "ports": (*map(_interface, switch.ports), *map(_external, switch.external)),
        "bridge": bridge,
        "daemons": tuple(FrrDaemon(name, "yes" if name in running else "no") for name in DAEMONS),
        "options": (*ALWAYS_RUNNING, *words.managed_daemons, *(name for name in DAEMONS if name in running)),
        "reachable_ms": REACHABLE_MS,
    }
    yield Artifact("frr.conf", "frr/frr.conf.j2", context)
    yield Artifact("daemons", "frr/daemons.j2", context)
    yield Artifact("netplan.yaml", "frr/netplan.yaml.j2", context)
    yield Artifact("sysctl.conf", "frr/sysctl.conf.j2", context)
    yield Artifact("lldpd.conf", "frr/lldpd.conf.j2", context)
    if services.ntp:
        yield Artifact("chrony.conf", "frr/chrony.conf.j2", context)
    if services.syslog:
        yield Artifact("rsyslog.conf", "frr/rsyslog.conf.j2", context)
    for snmp in services.snmp:
        if snmp.auth_secret and snmp.priv_secret:
            yield Artifact("snmpd.conf", "frr/snmpd.conf.j2", {**context, "snmp": snmp})


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield a cloud-init seed: name, account and management address; none for a switch without one."""
    if switch.management:
        logins = tuple(login for login in fabric.services.login if login.password_hash_secret)
        context = {**_common_values(fabric, switch), "logins": logins}
        for name in ("meta-data", "user-data", "network-config"):
            yield Artifact(name, f"frr/{name}.j2", context)


def _common_values(fabric: Fabric, switch: Switch) -> dict[str, object]:
    """The values of every template. The VRF applies to switches with a management address."""
    return {
        "fabric": fabric,
        "switch": switch,
        # Some parsers of YAML want quotes around colons.
        "nameservers": tuple(f'"{one}"' if ":" in one else one for one in fabric.services.dns),
        "management_port": MANAGEMENT_PORT,
        "vrf": MANAGEMENT_VRF,
        "vrf_table": MANAGEMENT_TABLE,
    }


def _external(port: ExternalPort) -> FrrInterface:
    return FrrInterface(port.name, port.peer_name, port.mtu_bytes, "[]", port.address)


def _interface(port: Port) -> FrrInterface:
    # BGP unnumbered needs link-local addresses, as does IPv6 to find hosts.
    address, address_v6 = port.address or None, port.address_v6 or None
    is_unnumbered = port.role != "host" and not address
    link_local = "[ipv6]" if address_v6 or is_unnumbered else "[]"
    return FrrInterface(port.name, port.description, port.profile.mtu_bytes, link_local, address, address_v6)

"""Plain Linux with FRR: everything its files need, decided."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, ManagementAddress, Port, Snmp, Switch
from netkit.platforms.frr.dialects import dialect
from netkit.render.artifact import Artifact
from netkit.render.views.block import Block, block, when_text
from netkit.render.views.frr_routing import routing

MANAGEMENT_VRF = "mgmt"
MANAGEMENT_PORT = "eth0"
MANAGEMENT_TABLE = 1001
# A MAC that ages out before its ARP entry means flooding, also of what should be lossless. Linux asks for a neighbour
# again at most 1.5 times the base after it last heard of it, and once more after the delay.
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
class Interface:
    """A port as netplan sees it."""

    name: str
    description: str
    mtu_bytes: int
    link_local: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bridge:
    """The host VLAN: a bridge of all host ports, untagged, with the gateway on it."""

    name: str
    mtu_bytes: int
    gateway: str
    ports: tuple[str, ...]
    ageing_s: int


@dataclass(frozen=True, slots=True)
class Management:
    """The management port in its VRF, and the resolvers reached through it."""

    port: str
    vrf: str
    table: int
    address: ManagementAddress
    resolvers: Block[str]


@dataclass(frozen=True, slots=True)
class Service:
    """A service that reaches out, or is reached, through the management VRF where there is one."""

    hostname: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Daemon:
    """An FRR daemon and whether it runs."""

    name: str
    state: str


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield the files of a Linux switch."""
    words = dialect(switch.version)
    plan = routing(fabric, switch, words)
    running = ROUTING_DAEMONS if plan.instances else frozenset[str]()
    service = Service(switch.name, (MANAGEMENT_VRF,) if switch.management else ())
    ports = tuple(_interfaces(switch))
    yield Artifact("frr.conf", "frr/frr.conf.j2", {"switch": switch, "ports": ports, "routing": plan})
    daemons = tuple(Daemon(name, "yes" if name in running else "no") for name in DAEMONS)
    options = (*ALWAYS_RUNNING, *words.managed_daemons, *(name for name in DAEMONS if name in running))
    yield Artifact("daemons", "frr/daemons.j2", {"daemons": daemons, "options": options})
    yield Artifact("netplan.yaml", "frr/netplan.yaml.j2", _netplan(fabric, switch, ports))
    yield Artifact("sysctl.conf", "frr/sysctl.conf.j2", {"reachable_ms": REACHABLE_MS})
    yield Artifact("lldpd.conf", "frr/lldpd.conf.j2", {"service": service, "management_port": MANAGEMENT_PORT})
    yield from _services(fabric, switch, service)


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield a cloud-init seed: name, account and management address; none for a switch without one."""
    if switch.management:
        logins = tuple(login for login in fabric.services.login if login.password_hash_secret)
        context = {"switch": switch, "logins": logins, "timezone": fabric.services.timezone}
        yield Artifact("meta-data", "frr/meta-data.j2", context)
        yield Artifact("user-data", "frr/user-data.j2", context)
        yield Artifact("network-config", "frr/network-config.j2", {"management": _management(fabric, switch)})


def _interfaces(switch: Switch) -> Iterator[Interface]:
    for port in switch.ports:
        yield Interface(port.name, port.description, port.profile.mtu_bytes, *_addressing(port))


def _addressing(port: Port) -> tuple[str, tuple[str, ...]]:
    """Return which link-local addresses a port has, and its own: BGP unnumbered needs the first, hosts the second."""
    if port.profile.role != "host":
        return "[ipv6]", ()
    return "[]", when_text(port.address)


def _netplan(fabric: Fabric, switch: Switch, ports: tuple[Interface, ...]) -> dict[str, object]:
    return {
        "switch": switch,
        "management": _management(fabric, switch),
        "ports": ports,
        "bridges": block(tuple(_bridges(switch))),
    }


def _management(fabric: Fabric, switch: Switch) -> tuple[Management, ...]:
    if not switch.management:
        return ()
    resolvers = block(fabric.services.dns)
    return (Management(MANAGEMENT_PORT, MANAGEMENT_VRF, MANAGEMENT_TABLE, switch.management, resolvers),)


def _bridges(switch: Switch) -> Iterator[Bridge]:
    if switch.vlan:
        members = switch.host_ports
        mtu_bytes = min((port.profile.mtu_bytes for port in members), default=switch.mtu_bytes)
        names = tuple(port.name for port in members)
        yield Bridge(f"vlan{switch.vlan.number}", mtu_bytes, switch.vlan.gateway, names, MAC_AGEING_S)


def _services(fabric: Fabric, switch: Switch, service: Service) -> Iterator[Artifact]:
    wanted = fabric.services
    if wanted.ntp:
        yield Artifact("chrony.conf", "frr/chrony.conf.j2", {"service": service, "servers": wanted.ntp})
    if wanted.syslog:
        yield Artifact("rsyslog.conf", "frr/rsyslog.conf.j2", {"service": service, "servers": wanted.syslog})
    for snmp in wanted.snmp:
        if snmp.auth_secret and snmp.priv_secret:
            yield Artifact("snmpd.conf", "frr/snmpd.conf.j2", _snmp(switch, snmp, service))


def _snmp(switch: Switch, snmp: Snmp, service: Service) -> dict[str, object]:
    listen = tuple(f"udp:{switch.management.address}@{device}:161" for device in service.devices if switch.management)
    return {
        "service": service,
        "snmp": snmp,
        "listen": listen or ("udp:161",),
        "location": when_text(snmp.location),
        "contact": when_text(snmp.contact),
    }

"""Values for EOS's templates; those for QoS are in `view_qos`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.design.fabric import (
    ExternalPort,
    Fabric,
    Login,
    ManagementAddress,
    Port,
    PortProfile,
    Snmp,
    Switch,
    SyslogServer,
    Vlan,
)
from netkit.design.policy import PrefixList, announced, prefix_lists
from netkit.platforms.eos import INTERNAL_VLANS, view_qos
from netkit.platforms.eos.dialects import TIMEZONES, EosDialect, EosHardware, dialect, hardware
from netkit.render.output import Artifact

MANAGEMENT_INTERFACE, MANAGEMENT_VRF = "Management1", "MGMT"
# By default EOS ages out MACs after 300 s and ARP entries after four hours: in between, traffic to a silent host
# floods, lossless class included. ARP must be refreshed before the MAC ages out. Same figures as on other platforms.
MAC_AGEING_S, ARP_TIMEOUT_S = 1800, 1080
# Limit on flooding to unknown MACs: the minimum of EOS, in percent of the port speed.
UNKNOWN_UNICAST_PERCENT = "0.01"
FEC_KEYWORDS = {"rs": "reed-solomon", "fc": "fire-code"}
# Neighbours of one direction share a peer group, named after the remote tier.
GROUP_NAMES = {
    ("leaf", "up"): "SPINES",
    ("spine", "down"): "LEAVES",
    ("spine", "up"): "CORES",
    ("core", "down"): "SPINES",
}
SYSLOG_OPTIONS = {"udp": "", "tcp": " protocol tcp"}


@dataclass(frozen=True, slots=True)
class EosInterface:
    """A fabric or host port: unnumbered, routed with an address, or in the host VLAN."""

    name: str
    description: str
    speed: str
    fec: str
    access_vlan: int | None
    routed: bool
    address: str | None
    unnumbered: bool
    qos_profile: str | None
    mtu_bytes: int
    access_list: str = ""
    address_v6: str | None = None


@dataclass(frozen=True, slots=True)
class EosNeighbor:
    """A BGP neighbour on a port: unnumbered, or by address."""

    port: str
    group: str
    asn: int
    description: str
    address: str
    """Of the neighbour; empty: unnumbered."""


@dataclass(frozen=True, slots=True)
class Bgp:
    """The BGP process; a switch without neighbours has none."""

    groups: tuple[str, ...]
    neighbors: tuple[EosNeighbor, ...]
    inbound: str
    outbound: str
    allowas_in: bool
    aggregates: tuple[str, ...]
    summaries: tuple[str, ...]
    external: tuple[ExternalPort, ...]
    prefix_lists: tuple[PrefixList, ...]


@dataclass(frozen=True, slots=True)
class NeighborDrain:
    """A maintenance unit around the ports towards one neighbour."""

    name: str
    ports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Drains: the switch, single neighbours, or both."""

    system: bool
    neighbors: tuple[NeighborDrain, ...]


@dataclass(frozen=True, slots=True)
class SyslogTarget:
    """A collector; UDP is EOS's default, which it does not print."""

    server: SyslogServer
    options: str


@dataclass(frozen=True, slots=True)
class NtpServer:
    """A time server; the first is preferred."""

    address: str
    options: str


@dataclass(frozen=True, slots=True)
class SnmpUser:
    """SNMPv3 access."""

    snmp: Snmp
    location: str
    contact: str


@dataclass(frozen=True, slots=True)
class Permitted:
    """A rule of a standard access list."""

    number: int
    source: str


@dataclass(frozen=True, slots=True)
class EosView:
    """All values of one switch."""

    words: EosDialect
    notes: tuple[str, ...]
    logins: tuple[Login, ...]
    management: ManagementAddress | None
    allowed: tuple[Permitted, ...]
    in_vrf: str
    syslog: tuple[SyslogTarget, ...]
    syslog_source: str | None
    dns: tuple[str, ...]
    ntp: tuple[NtpServer, ...]
    snmp: tuple[SnmpUser, ...]
    timezone: str
    vlans: tuple[Vlan, ...]
    interfaces: tuple[EosInterface, ...]
    qos: view_qos.EosQos
    adaptive_routing: bool
    bgp: Bgp | None
    maintenance: Maintenance | None
    pfc_is_own_section: bool
    internal_vlans: tuple[int, int] = (INTERNAL_VLANS[0], INTERNAL_VLANS[-1])
    mac_ageing_s: int = MAC_AGEING_S
    arp_timeout_s: int = ARP_TIMEOUT_S
    unknown_unicast_percent: str = UNKNOWN_UNICAST_PERCENT


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    yield Artifact("eos.cfg", "eos/eos.cfg.j2", {"view": build(fabric, switch), "switch": switch, "fabric": fabric})


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield the startup-config that makes a new switch reachable; none without a management address."""
    if switch.management:
        yield Artifact("startup-config", "eos/startup-config.j2", {"view": build(fabric, switch), "switch": switch})


def build(fabric: Fabric, switch: Switch) -> EosView:
    words, chip, services = dialect(switch.version), hardware(switch.model), fabric.services
    qos = view_qos.build(fabric.lossless, switch, chip)
    logins = tuple(login for login in services.login if login.password_hash_secret)
    notes = list(_chip_notes(switch, chip, qos))
    if switch.management is None:
        notes.insert(0, "no management address in the intent: replacing the configuration removes Management1")
    if not logins:
        notes.insert(0, "no services.login in the intent: replacing the configuration removes every account")
    # 4.32 refuses a source interface beside a TCP collector; the VRF has only one interface anyway.
    has_tcp = any(server.protocol == "tcp" for server in services.syslog)
    has_source = bool(switch.management and services.syslog) and (words.syslog_source_takes_tcp or not has_tcp)
    return EosView(
        words=words,
        notes=tuple(notes),
        logins=logins,
        management=switch.management,
        allowed=tuple(_permitted(switch.management.allowed)) if switch.management else (),
        in_vrf=f" vrf {MANAGEMENT_VRF}" if switch.management else "",
        syslog=tuple(SyslogTarget(server, SYSLOG_OPTIONS[server.protocol]) for server in services.syslog),
        syslog_source=words.syslog_source if has_source else None,
        dns=services.dns,
        ntp=tuple(NtpServer(one, "iburst" if index else "prefer iburst") for index, one in enumerate(services.ntp)),
        snmp=tuple(
            SnmpUser(snmp, snmp.location, snmp.contact)
            for snmp in services.snmp
            if snmp.auth_secret and snmp.priv_secret
        ),
        timezone=TIMEZONES.get(services.timezone, services.timezone),
        vlans=(switch.vlan,) if switch.vlan else (),
        interfaces=tuple(_interfaces(switch, chip)),
        qos=qos,
        adaptive_routing=switch.adaptive_routing,
        bgp=_bgp(fabric, switch) if switch.fabric_ports else None,
        maintenance=_maintenance(switch),
        pfc_is_own_section=words.pfc_is_own_section,
    )


def _permitted(networks: Iterable[str]) -> Iterator[Permitted]:
    for index, network in enumerate(networks, 1):
        address, _, length = network.partition("/")
        yield Permitted(10 * index, f"host {address}" if length == "32" else network)


def _chip_notes(switch: Switch, chip: EosHardware, qos: view_qos.EosQos) -> Iterator[str]:
    """Yield what to verify on the first switch of a model before relying on the file."""
    if not chip.queue_keyword_is_verified:
        yield f"unverified on {switch.model.name}: {chip.queue_keyword}; check: show run all | include tx-queue"
    yield f"unverified on {switch.model.name}: qos map traffic-class to priority-group; check: show qos maps"
    if mmu := qos.mmu:
        yield f"unverified on {switch.model.name}: the MMU profile; check: show platform trident mmu queue status"
        wanted = mmu.headroom_bytes * len(switch.ports)
        pool = mmu.headroom_pool_bytes
        if pool is not None and pool < wanted:
            yield f"headroom pool: {pool} bytes; {len(switch.ports)} ports pausing at once would need {wanted}"
    for number in qos.overshadowed:
        yield f"check strict queue {number}: EOS may serve it by weight, as a weighted queue has a higher number"
    if switch.vlan:
        yield f"unverified on {switch.model.name}: storm-control unknown-unicast"


def _interfaces(switch: Switch, chip: EosHardware) -> Iterator[EosInterface]:
    vlan = switch.vlan.number if switch.vlan else None
    last: PortProfile | None = None
    speed, fec, qos_profile = "", "", ""
    for port in switch.ports:
        if port.profile is not last:  # ports of one kind are adjacent and share their profile
            last = port.profile
            speed, fec = chip.speed_keyword(last.split), FEC_KEYWORDS[last.fec]
            qos_profile = view_qos.profile_name(last.speed_gbps)
        access = vlan if port.role == "host" else None
        yield EosInterface(
            name=port.name,
            description=port.description,
            speed=speed,
            fec=fec,
            access_vlan=access,
            routed=access is None,
            address=port.address or None,
            unnumbered=port.role != "host" and not port.address,
            qos_profile=qos_profile,
            mtu_bytes=switch.mtu_bytes,
            address_v6=port.address_v6 or None,
        )
    for outside in switch.external:
        yield EosInterface(
            name=outside.name,
            description=outside.peer_name,
            speed=chip.speed_keyword(outside.split),
            fec=FEC_KEYWORDS[outside.fec],
            access_vlan=None,
            routed=True,
            address=outside.address,
            unnumbered=False,
            qos_profile=None,
            mtu_bytes=outside.mtu_bytes,
            access_list=outside.access_list,
        )


def _bgp(fabric: Fabric, switch: Switch) -> Bgp:
    ports = switch.fabric_ports
    names = {
        direction: GROUP_NAMES[(switch.role, direction)] for direction in dict.fromkeys(port.role for port in ports)
    }
    return Bgp(
        groups=tuple(sorted(names.values())),
        neighbors=tuple(
            EosNeighbor(port.name, names[port.role], port.peer_asn, port.description, port.peer_address)
            for port in ports
        ),
        inbound="RM-FABRIC",
        outbound=f"RM-{announced(fabric, switch)}",
        allowas_in=fabric.routing.allowas_in,
        aggregates=switch.aggregates,
        summaries=switch.summaries,
        external=switch.external,
        prefix_lists=tuple(prefix_lists(fabric, switch)),
    )


def _maintenance(switch: Switch) -> Maintenance | None:
    """Build the drains.

    A neighbour is drained through the interfaces towards it: a BGP group accepts addresses and peer groups, but an
    unnumbered neighbour has no address, and moving it to a separate peer group would reset the session.
    """
    towards: dict[str, list[Port]] = {name: [] for name in switch.drain_neighbors}
    for port in switch.fabric_ports:
        if port.peer in towards:
            towards[port.peer].append(port)
    drains = tuple(
        NeighborDrain(f"DRAIN-{name}", tuple(port.name for port in ports)) for name, ports in towards.items() if ports
    )
    return Maintenance(switch.drain, drains) if switch.drain or drains else None

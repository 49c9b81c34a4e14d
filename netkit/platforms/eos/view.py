"""EOS: everything eos.cfg needs, decided. The lossless half is in `eos_qos`."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Login, ManagementAddress, Port, PortProfile, Snmp, Switch, SyslogServer, Vlan
from netkit.design.policy import PrefixList, announced, prefix_lists
from netkit.platforms.eos import INTERNAL_VLANS, view_qos
from netkit.platforms.eos.dialects import EosDialect, EosHardware, dialect, hardware
from netkit.render.artifact import Artifact

MANAGEMENT_INTERFACE, MANAGEMENT_VRF = "Management1", "MGMT"
# EOS forgets MACs after 300 s and ARP entries after four hours: in between, traffic to a silent host floods, lossless
# class included. ARP must be refreshed before the MAC ages. The same two figures as on the other platforms.
MAC_AGEING_S, ARP_TIMEOUT_S = 1800, 1080
# What a host may still flood when a MAC is unknown all the same: the least EOS can say, in percent of the port speed.
UNKNOWN_UNICAST_PERCENT = "0.01"
FEC_KEYWORDS = {"rs": "reed-solomon", "fc": "fire-code"}
# Neighbours of one direction share a peer group, named after the tier at the other end.
GROUP_NAMES = {
    ("leaf", "up"): "SPINES",
    ("spine", "down"): "LEAVES",
    ("spine", "up"): "CORES",
    ("core", "down"): "SPINES",
}
SYSLOG_OPTIONS = {"udp": "", "tcp": " protocol tcp"}
EOS_TIMEZONES = {"Etc/UTC": "UTC"}


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
    qos_profile: str


@dataclass(frozen=True, slots=True)
class EosNeighbor:
    """A BGP neighbour on an unnumbered port."""

    port: str
    group: str
    asn: int


@dataclass(frozen=True, slots=True)
class Bgp:
    """The BGP process; a switch without neighbours has none."""

    groups: tuple[str, ...]
    neighbors: tuple[EosNeighbor, ...]
    inbound: str
    outbound: str
    allowas_in: bool
    aggregates: tuple[str, ...]
    prefix_lists: tuple[PrefixList, ...]


@dataclass(frozen=True, slots=True)
class NeighborDrain:
    """A maintenance unit around the ports towards one neighbour."""

    name: str
    ports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What is drained: the whole switch, single neighbours, or both."""

    system: bool
    neighbors: tuple[NeighborDrain, ...]


@dataclass(frozen=True, slots=True)
class SyslogTarget:
    """A collector; UDP is what EOS assumes and does not print."""

    server: SyslogServer
    options: str


@dataclass(frozen=True, slots=True)
class NtpServer:
    """A time server; the first is preferred."""

    address: str
    options: str


@dataclass(frozen=True, slots=True)
class SnmpUser:
    """SNMPv3 access, with the secrets named."""

    snmp: Snmp
    location: str
    contact: str


@dataclass(frozen=True, slots=True)
class EosView:
    """All of one switch."""

    words: EosDialect
    notes: tuple[str, ...]
    logins: tuple[Login, ...]
    management: ManagementAddress | None
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
    """Yield eos.cfg."""
    yield Artifact("eos.cfg", "eos/eos.cfg.j2", {"view": build(fabric, switch), "switch": switch, "fabric": fabric})


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield the startup-config that makes a factory-fresh switch reachable; none without a management address."""
    if switch.management:
        yield Artifact("startup-config", "eos/startup-config.j2", {"view": build(fabric, switch), "switch": switch})


def build(fabric: Fabric, switch: Switch) -> EosView:
    """Return the view of a switch."""
    words, chip, services = dialect(switch.version), hardware(switch.model), fabric.services
    qos = view_qos.build(fabric.lossless, switch, chip)
    return EosView(
        words=words,
        notes=(*_lockout_notes(fabric, switch), *_chip_notes(switch, chip, qos)),
        logins=tuple(login for login in services.login if login.password_hash_secret),
        management=switch.management,
        in_vrf=f" vrf {MANAGEMENT_VRF}" if switch.management else "",
        syslog=tuple(SyslogTarget(server, SYSLOG_OPTIONS[server.protocol]) for server in services.syslog),
        syslog_source=_syslog_source(fabric, switch, words),
        dns=services.dns,
        ntp=tuple(_ntp_servers(services.ntp)),
        snmp=tuple(
            SnmpUser(snmp, snmp.location, snmp.contact)
            for snmp in services.snmp
            if snmp.auth_secret and snmp.priv_secret
        ),
        timezone=EOS_TIMEZONES.get(services.timezone, services.timezone),
        vlans=(switch.vlan,) if switch.vlan else (),
        interfaces=tuple(_interfaces(switch, chip)),
        qos=qos,
        adaptive_routing=switch.adaptive_routing,
        bgp=_bgp(fabric, switch) if switch.fabric_ports else None,
        maintenance=_maintenance(switch),
        pfc_is_own_section=words.pfc_is_own_section,
    )


def _lockout_notes(fabric: Fabric, switch: Switch) -> Iterator[str]:
    """Yield what a replace would take away because the intent does not name it."""
    if not any(login.password_hash_secret for login in fabric.services.login):
        yield "no services.login in the intent: replacing the configuration removes every account"
    if switch.management is None:
        yield "no management address in the intent: replacing the configuration removes Management1"


def _chip_notes(switch: Switch, chip: EosHardware, qos: view_qos.EosQos) -> Iterator[str]:
    """Yield what an engineer should check on the first switch of a kind before trusting the file."""
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


def _syslog_source(fabric: Fabric, switch: Switch, words: EosDialect) -> str | None:
    """Return the source line's keyword; 4.32 refuses it beside a TCP collector, and the VRF has but one interface."""
    servers = fabric.services.syslog
    has_tcp = any(server.protocol == "tcp" for server in servers)
    is_wanted = bool(switch.management and servers) and (words.syslog_source_takes_tcp or not has_tcp)
    return words.syslog_source if is_wanted else None


def _ntp_servers(addresses: tuple[str, ...]) -> Iterator[NtpServer]:
    for index, address in enumerate(addresses):
        yield NtpServer(address, "iburst" if index else "prefer iburst")


def _interfaces(switch: Switch, chip: EosHardware) -> Iterator[EosInterface]:
    vlan = switch.vlan.number if switch.vlan else None
    shared: dict[PortProfile, tuple[str, str, str]] = {}
    last, words = None, ("", "", "")
    for port in switch.ports:
        if port.profile is not last:
            last = port.profile
            words = shared.get(last) or shared.setdefault(last, _profile_words(last, chip))
        access = vlan if port.role == "host" else None
        yield EosInterface(
            name=port.name,
            description=port.description,
            speed=words[0],
            fec=words[1],
            access_vlan=access,
            routed=access is None,
            address=port.address or None,
            unnumbered=port.role != "host",
            qos_profile=words[2],
        )


def _profile_words(profile: PortProfile, chip: EosHardware) -> tuple[str, str, str]:
    return chip.speed_keyword(profile.split), FEC_KEYWORDS[profile.fec], view_qos.profile_name(profile.speed_gbps)


def _bgp(fabric: Fabric, switch: Switch) -> Bgp:
    ports = switch.fabric_ports
    names = {
        direction: GROUP_NAMES[(switch.role, direction)] for direction in dict.fromkeys(port.role for port in ports)
    }
    return Bgp(
        groups=tuple(sorted(names.values())),
        neighbors=tuple(EosNeighbor(port.name, names[port.role], port.peer_asn) for port in ports),
        inbound="RM-FABRIC",
        outbound=f"RM-{announced(fabric, switch)}",
        allowas_in=fabric.routing.allowas_in,
        aggregates=switch.aggregates,
        prefix_lists=tuple(prefix_lists(fabric, switch)),
    )


def _maintenance(switch: Switch) -> Maintenance | None:
    """Return what is drained.

    A neighbour is drained through the interfaces towards it: a BGP group takes addresses and peer groups, but an
    unnumbered neighbour has no address of its own, and moving it to a peer group of its own would reset the session.
    """
    towards: dict[str, list[Port]] = {name: [] for name in switch.drain_neighbors}
    for port in switch.fabric_ports:
        if port.peer in towards:
            towards[port.peer].append(port)
    drains = tuple(
        NeighborDrain(f"DRAIN-{name}", tuple(port.name for port in ports)) for name, ports in towards.items() if ports
    )
    return Maintenance(switch.drain, drains) if switch.drain or drains else None

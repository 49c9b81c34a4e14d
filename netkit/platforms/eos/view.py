"""Values for EOS's templates; those for QoS are in `view_qos`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.design.fabric import (
    Access,
    AccessPort,
    ExternalPort,
    Fabric,
    Login,
    ManagementAddress,
    Port,
    PortProfile,
    Snmp,
    Switch,
    SyslogServer,
)
from netkit.design.networks import PEER_VLAN
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
BY_ADDRESS = "-IPV4"
"""Of the groups of sessions by address in a fabric whose other sessions are unnumbered."""
# Both ends of the link between a pair, which leaves neither switch, and its LAG: LAGs of hosts have lower numbers.
PEER_ADDRESSES, PEER_LAG, PEER_GROUP = ("169.254.0.0", "169.254.0.1"), 1000, "MLAG"
GATEWAY_MAC = "00:1c:73:00:00:99"  # one for all gateways of a pair, and the same on both: that of Arista's examples
SYSLOG_OPTIONS = {"udp": "", "tcp": " protocol tcp"}


@dataclass(frozen=True, slots=True)
class Switchport:
    """The VLANs of a port: one, or those of a trunk."""

    untagged: int
    """0: none."""
    allowed: str = ""
    """Of a trunk: with that without a tag; empty: all."""
    is_trunk: bool = False
    trunk_group: str = ""
    """Of the link between a pair."""


@dataclass(frozen=True, slots=True)
class EosLag:
    """A port channel."""

    number: int
    description: str
    switchport: Switchport
    mlag: int | None


@dataclass(frozen=True, slots=True)
class EosPair:
    """The other switch of a pair, and the link to it."""

    partner: str
    domain: str
    peer: str
    backup: str
    has_session: bool
    vlan: int = PEER_VLAN
    lag: int = PEER_LAG


@dataclass(frozen=True, slots=True)
class EosVlan:
    """A VLAN, with the address of the switch in it if it has one."""

    number: int
    name: str
    address: str
    address_v6: str = ""
    virtual_address: str = ""
    """What both switches of a pair answer for."""
    trunk_group: str = ""
    """Of the VLAN between a pair: no other trunk carries it."""


@dataclass(frozen=True, slots=True)
class EosInterface:
    """A port: unnumbered, routed with an address, switched, or a member of a LAG."""

    name: str
    description: str
    speed: str
    fec: str
    switchport: Switchport | None
    routed: bool
    address: str | None
    unnumbered: bool
    qos_profile: str | None
    mtu_bytes: int | None
    """None: the port is switched, and takes what the chip does."""
    access_list: str = ""
    address_v6: str | None = None
    lag: int = 0


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
    unnumbered: tuple[str, ...]
    """The groups of unnumbered sessions, whose routes have next hops of IPv6."""
    neighbors: tuple[EosNeighbor, ...]
    inbound: str
    outbound: str
    allowas_in: bool
    aggregates: tuple[str, ...]
    summaries: tuple[str, ...]
    external: tuple[ExternalPort, ...]
    prefix_lists: tuple[PrefixList, ...]
    partner: EosPair | None
    """The other switch of a pair, if they exchange what they learn from outside."""


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
    vlans: tuple[EosVlan, ...]
    lags: tuple[EosLag, ...]
    pair: EosPair | None
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
    gateway_mac: str = GATEWAY_MAC


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    yield Artifact("eos.cfg", "eos/eos.cfg.j2", {"view": build(fabric, switch), "switch": switch, "fabric": fabric})


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield the startup-config that makes a new switch reachable; none without a management address."""
    if switch.management:
        yield Artifact("startup-config", "eos/startup-config.j2", {"view": build(fabric, switch), "switch": switch})


def build(fabric: Fabric, switch: Switch) -> EosView:
    words, chip, services = dialect(switch.version), hardware(switch.model), fabric.services
    qos, pair = view_qos.build(fabric.lossless, switch, chip), _pair(switch)
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
        vlans=tuple(_vlans(switch)),
        lags=tuple(_lags(switch.access, pair)) if switch.access else (),
        pair=pair,
        interfaces=tuple(_interfaces(switch, chip)),
        qos=qos,
        adaptive_routing=switch.adaptive_routing,
        bgp=_bgp(fabric, switch, pair),
        maintenance=_maintenance(switch),
        pfc_is_own_section=words.pfc_is_own_section,
    )


def _permitted(networks: Iterable[str]) -> Iterator[Permitted]:
    for index, network in enumerate(networks, 1):
        address, _, length = network.partition("/")
        yield Permitted(10 * index, f"host {address}" if length == "32" else network)


def _chip_notes(switch: Switch, chip: EosHardware, qos: view_qos.EosQos) -> Iterator[str]:
    """Yield what to verify on the first switch of a model before relying on the file."""
    if switch.access:
        if switch.access.pair:
            yield f"unverified on {switch.model.name}: MLAG; check: show mlag config-sanity"
        return
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


def _pair(switch: Switch) -> EosPair | None:
    access = switch.access
    if access is None or access.pair is None:
        return None
    pair = access.pair
    return EosPair(pair.partner, access.network, PEER_ADDRESSES[pair.is_first], pair.backup, pair.has_session)


def _vlans(switch: Switch) -> Iterator[EosVlan]:
    if vlan := switch.vlan:
        yield EosVlan(vlan.number, vlan.name, vlan.gateway, vlan.gateway_v6)
    if access := switch.access:
        for one in access.vlans:
            yield EosVlan(one.number, one.name, one.address, virtual_address=one.gateway.partition("/")[0])
        if access.pair:
            address = f"{PEER_ADDRESSES[not access.pair.is_first]}/31"
            yield EosVlan(PEER_VLAN, PEER_GROUP, address, trunk_group=PEER_GROUP)


def _lags(access: Access, pair: EosPair | None) -> Iterator[EosLag]:
    for lag in access.lags:
        yield EosLag(lag.number, lag.peer, _switchport(lag.ports[0]), lag.number if pair else None)
    if pair:
        yield EosLag(pair.lag, pair.partner, Switchport(0, is_trunk=True, trunk_group=PEER_GROUP), None)


def _switchport(port: AccessPort) -> Switchport:
    """The VLANs of a port; a trunk drops what comes without a tag unless it allows that VLAN too."""
    allowed = {*port.tagged, port.untagged} - {0}
    return Switchport(port.untagged, ",".join(map(str, sorted(allowed))) if port.tagged else "", bool(port.tagged))


def _interfaces(switch: Switch, chip: EosHardware) -> Iterator[EosInterface]:
    bridged = Switchport(switch.vlan.number) if switch.vlan else None
    last: PortProfile | None = None
    speed, fec, qos_profile = "", "", ""
    for port in switch.ports:
        if port.profile is not last:  # ports of one kind are adjacent and share their profile
            last = port.profile
            speed, fec = chip.speed_keyword(last.split), FEC_KEYWORDS[last.fec]
            qos_profile = view_qos.profile_name(last.speed_gbps)
        switchport = bridged if port.role == "host" else None
        yield EosInterface(
            name=port.name,
            description=port.description,
            speed=speed,
            fec=fec,
            switchport=switchport,
            routed=switchport is None,
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
            switchport=None,
            routed=True,
            address=outside.address,
            unnumbered=False,
            qos_profile=None,
            mtu_bytes=outside.mtu_bytes,
            access_list=outside.access_list,
        )
    for attached in switch.access.ports if switch.access else ():
        lag = PEER_LAG if attached.kind == "peer" else attached.lag
        yield EosInterface(
            name=attached.name,
            description=attached.description,
            speed=chip.speed_keyword(attached.split),
            fec=FEC_KEYWORDS[attached.fec],
            switchport=None if lag else _switchport(attached),
            routed=False,
            address=None,
            unnumbered=False,
            qos_profile=None,
            mtu_bytes=None,
            lag=lag,
        )


def _bgp(fabric: Fabric, switch: Switch, pair: EosPair | None) -> Bgp | None:
    ports, partner = switch.fabric_ports, pair if pair and pair.has_session else None
    if not (ports or partner or (switch.access and switch.external)):
        return None
    names = {
        direction: GROUP_NAMES[(switch.role, direction)] for direction in dict.fromkeys(port.role for port in ports)
    }
    by_address = "" if fabric.link_pool else BY_ADDRESS
    neighbors = tuple(
        EosNeighbor(
            port.name,
            f"{names[port.role]}{by_address if port.peer_address else ''}",
            port.peer_asn,
            port.description,
            port.peer_address,
        )
        for port in ports
    )
    return Bgp(
        groups=tuple(sorted({one.group for one in neighbors})),
        unnumbered=tuple(sorted({one.group for one in neighbors if not one.address})),
        neighbors=neighbors,
        inbound="RM-FABRIC",
        outbound=f"RM-{announced(fabric, switch)}",
        allowas_in=fabric.routing.allowas_in,
        aggregates=switch.aggregates,
        summaries=switch.summaries,
        external=switch.external,
        prefix_lists=tuple(prefix_lists(fabric, switch)),
        partner=partner,
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

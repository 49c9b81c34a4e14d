"""NVUE: everything startup.yaml needs, decided."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, ManagementAddress, Port, Snmp, Switch, SyslogServer, Vlan
from netkit.design.policy import PrefixList, announced, prefix_lists
from netkit.design.traffic import EcnThresholds, LosslessProfile
from netkit.platforms.nvue.dialects import Dialect, dialect
from netkit.render.artifact import Artifact
from netkit.render.views.block import Block, block, when, when_text

# What `qos roce mode lossless` sets by itself (Cumulus Linux user guide, RDMA over Converged Ethernet); only
# what differs from it is rendered, so that netkit does not fight the mode.
# The mode keeps its traffic classes wherever the priorities go: RoCE is class 3, CNP class 6, the rest class 0.
MODE_ROCE_CLASS, MODE_CNP_CLASS, MODE_REST_CLASS = 3, 6, 0
MODE_CLASSES = {3: MODE_ROCE_CLASS, 6: MODE_CNP_CLASS}
MODE_ECN = EcnThresholds(150_000, 1_500_000, 100)
MODE_WEIGHTS = (50, 50)
FLOOD_PPS = 100  # unknown unicast of a host port: enough to find a host again, too little to fill a lossless queue
MAC_AGEING_S = 1800  # above Cumulus Linux's ARP refresh of 1080 s, so that a MAC never ages before its ARP entry


@dataclass(frozen=True, slots=True)
class BrokenOutCage:
    """A cage with its breakout."""

    name: str
    breakout: str


@dataclass(frozen=True, slots=True)
class Interface:
    """One port; empty tuples leave a block out."""

    name: str
    description: str
    access: tuple[int, ...]
    address: tuple[str, ...]
    speed: tuple[int, ...]
    adaptive_routing: tuple[bool, ...]
    ecn_profile: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EcnProfile:
    """ECN thresholds other than the RoCE mode's own."""

    name: str
    thresholds: EcnThresholds


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A BGP neighbour on an unnumbered port."""

    port: str
    asn: int
    is_draining: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One traffic class of the egress scheduler: weighted or strict."""

    traffic_class: int
    weight: tuple[int, ...]
    strict: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Qos:
    """The device-wide QoS that differs from the RoCE mode."""

    cable_m: int
    roce_class: int
    lossy_percent: int
    schedulers: Block[Scheduler]
    priority_to_class: Block[tuple[int, int]]
    dscps: Block[tuple[int, int]]
    pfc_priority: tuple[int, ...]
    ecn_profiles: Block[EcnProfile]


@dataclass(frozen=True, slots=True)
class SnmpUser:
    """SNMPv3 access, with the secrets named."""

    snmp: Snmp
    location: tuple[str, ...]
    contact: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServiceTree:
    """The services at one place of the tree: older releases have some under `service`, newer ones under `system`."""

    dns: Block[str]
    lldp: tuple[bool, ...]
    ntp: Block[str]
    snmp: tuple[SnmpUser, ...]
    syslog: Block[SyslogServer]


@dataclass(frozen=True, slots=True)
class View:
    """All of one switch."""

    words: Dialect
    management: tuple[ManagementAddress, ...]
    vrf_under_ip: tuple[bool, ...]
    vrf_on_interface: tuple[bool, ...]
    vlans: tuple[Vlan, ...]
    ageing_s: int
    flood_pps: int
    cages: tuple[BrokenOutCage, ...]
    interfaces: tuple[Interface, ...]
    qos: Qos
    prefix_lists: tuple[PrefixList, ...]
    announced: str
    neighbors: Block[Neighbor]
    aggregates: tuple[str, ...]
    bgp: tuple[bool, ...]
    draining: tuple[bool, ...]
    adaptive_routing: tuple[bool, ...]
    allowas_in: tuple[bool, ...]
    bfd_on_group: tuple[bool, ...]
    bfd_profile: tuple[bool, ...]
    service: tuple[ServiceTree, ...]
    system: ServiceTree
    date_time_zone: tuple[str, ...]
    timezone: tuple[str, ...]


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield startup.yaml."""
    view = build(fabric, switch)
    yield Artifact(
        "startup.yaml", "nvue/startup.yaml.j2", {"view": view, "switch": switch, "fabric": fabric, "words": view.words}
    )


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield the script Cumulus Linux runs on its first boot; none for a switch without a management address."""
    if switch.management:
        words = dialect(switch.version)
        context = {
            "switch": switch,
            "management": switch.management,
            "fabric": fabric,
            "words": words,
            # The factory's DHCP client would give eth0 a second address, a name and a default route.
            "dhcp_is_address": when(words.vrf_is_under_ip),
            "dhcp_is_client": when(not words.vrf_is_under_ip),
        }
        yield Artifact("ztp.sh", "nvue/ztp.sh.j2", context)


def build(fabric: Fabric, switch: Switch) -> View:
    """Return the view of a switch."""
    words = dialect(switch.version)
    profiles = _ecn_profiles(switch)
    sessions = switch.fabric_ports
    neighbors = tuple(
        Neighbor(port.name, port.peer_asn, when(port.peer in switch.drain_neighbors)) for port in sessions
    )
    service, system = _services(fabric, words)
    return View(
        words=words,
        management=(switch.management,) if switch.management else (),
        vrf_under_ip=when(words.vrf_is_under_ip),
        vrf_on_interface=when(not words.vrf_is_under_ip),
        vlans=(switch.vlan,) if switch.vlan else (),
        ageing_s=MAC_AGEING_S,
        flood_pps=FLOOD_PPS,
        cages=tuple(
            BrokenOutCage(f"swp{cage.number}", f"{cage.split.ports}x") for cage in switch.cages if cage.split.ports > 1
        ),
        interfaces=tuple(_interfaces(switch, {profile.thresholds: profile.name for profile in profiles})),
        qos=_qos(fabric.lossless, switch, profiles),
        prefix_lists=tuple(prefix_lists(fabric, switch)),
        announced=announced(fabric, switch),
        neighbors=block(neighbors),
        aggregates=switch.aggregates,
        bgp=when(bool(sessions)),
        draining=when(switch.drain),
        adaptive_routing=when(switch.adaptive_routing),
        allowas_in=when(fabric.routing.allowas_in),
        bfd_on_group=when(bool(sessions) and words.bfd_on_peer_group),
        bfd_profile=when(bool(sessions) and not words.bfd_on_peer_group),
        service=service,
        system=system,
        date_time_zone=(fabric.services.timezone,) if words.has_date_time else (),
        timezone=() if words.has_date_time else (fabric.services.timezone,),
    )


def _services(fabric: Fabric, words: Dialect) -> tuple[tuple[ServiceTree, ...], ServiceTree]:
    """Return what stands under `service` (nothing in newer releases) and what under `system`."""
    services = fabric.services
    snmp = tuple(
        SnmpUser(snmp, when_text(snmp.location), when_text(snmp.contact))
        for snmp in services.snmp
        if snmp.auth_secret and snmp.priv_secret
    )
    dns, ntp, syslog = block(services.dns), block(services.ntp), block(services.syslog)
    older = ServiceTree(
        dns=dns if words.service_ntp else (),
        lldp=when(words.service_ntp),
        ntp=ntp if words.service_ntp else (),
        snmp=snmp if words.service_snmp else (),
        syslog=syslog if words.service_syslog else (),
    )
    newer = ServiceTree(
        dns=() if words.service_ntp else dns,
        lldp=when(not words.service_ntp),
        ntp=() if words.service_ntp else ntp,
        snmp=() if words.service_snmp else snmp,
        syslog=() if words.service_syslog else syslog,
    )
    return ((older,) if words.service_ntp else ()), newer


def _interfaces(switch: Switch, profiles: dict[EcnThresholds, str]) -> Iterator[Interface]:
    access = (switch.vlan.number,) if switch.vlan else ()
    adaptive = when(switch.adaptive_routing)
    for port in switch.ports:
        is_host = port.role == "host"
        profile = profiles.get(port.profile.ecn)
        yield Interface(
            name=port.name,
            description=port.description,
            access=access if is_host else (),
            address=(port.address,) if port.address else (),
            speed=_forced_speed(switch, port),
            adaptive_routing=() if is_host else adaptive,
            ecn_profile=(profile,) if profile else (),
        )


def _forced_speed(switch: Switch, port: Port) -> tuple[int, ...]:
    """Return the speed where it does not follow from the breakout, or where the model cannot negotiate it."""
    split = port.profile.split
    fastest = max(other.ports * other.speed_gbps for other in switch.model.splits)
    follows = split.ports * split.speed_gbps == fastest
    must_force = bool(switch.model.platforms.get("nvue", {}).get("force_speed"))
    return (split.speed_gbps,) if must_force or not follows else ()


def _ecn_profiles(switch: Switch) -> tuple[EcnProfile, ...]:
    found = {port.profile.ecn: port.speed_gbps for port in switch.ports if port.profile.ecn != MODE_ECN}
    return tuple(
        EcnProfile(f"ecn-{speed}g", thresholds) for thresholds, speed in sorted(found.items(), key=lambda item: item[1])
    )


def _qos(lossless: LosslessProfile, switch: Switch, profiles: tuple[EcnProfile, ...]) -> Qos:
    longest = max((port.profile.cable.length_m for port in switch.ports), default=1)
    roce, cnp, rest = lossless.roce, lossless.cnp, lossless.best_effort
    classes = {roce.priority: MODE_ROCE_CLASS, cnp.priority: MODE_CNP_CLASS}
    wanted = tuple((priority, classes.get(priority, MODE_REST_CLASS)) for priority in range(8))
    schedulers = (
        Scheduler(MODE_REST_CLASS, (rest.weight,), ()),
        Scheduler(MODE_ROCE_CLASS, (roce.weight,), ()),
        Scheduler(MODE_CNP_CLASS, (), (True,)),
    )
    return Qos(
        cable_m=math.ceil(longest),
        roce_class=MODE_ROCE_CLASS,
        lossy_percent=100 - lossless.pool_percent,
        schedulers=block(schedulers if (rest.weight, roce.weight) != MODE_WEIGHTS else ()),
        priority_to_class=block(
            tuple(
                (priority, traffic)
                for priority, traffic in wanted
                if traffic != MODE_CLASSES.get(priority, MODE_REST_CLASS)
            )
        ),
        dscps=block(
            tuple((dscp, priority) for dscp, priority in enumerate(lossless.dscp_to_priority) if priority != dscp // 8)
        ),
        pfc_priority=(roce.priority,) if MODE_CLASSES.get(roce.priority) != MODE_ROCE_CLASS else (),
        ecn_profiles=block(profiles),
    )

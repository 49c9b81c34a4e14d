"""The values that the templates of NVUE need."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from netkit.design.fabric import ExternalPort, Fabric, Snmp, Switch, SwitchPair
from netkit.design.policy import PrefixList, announced, prefix_lists
from netkit.design.traffic import EcnThresholds, LosslessProfile
from netkit.hardware import Split
from netkit.platforms.nvue import dialects
from netkit.platforms.nvue.dialects import CLASSES, CNP_CLASS, REST_CLASS, ROCE_CLASS, WEIGHTS, NvueDialect, dialect
from netkit.render.output import Artifact

MODE_ECN = EcnThresholds(dialects.ECN_MIN_BYTES, dialects.ECN_MAX_BYTES, dialects.ECN_PERCENT)
FLOOD_PPS = 100  # unknown unicast of a host port: enough to relearn a host, too little to fill a lossless queue
SERVED = (("tcp", 22), ("udp", 161), ("tcp", 443), ("tcp", 8765), ("tcp", 9339))
"""SSH, SNMP, HTTPS, NVUE's API and gNMI."""
ITSELF = "127.0.0.1/32"
MAC_AGEING_S = 1800  # above Cumulus Linux's ARP refresh of 1080 s, so that a MAC never ages before its ARP entry


@dataclass(frozen=True, slots=True)
class BrokenOutCage:
    """A cage with its breakout."""

    name: str
    breakout: str


@dataclass(frozen=True, slots=True)
class NvueInterface:
    """One port."""

    name: str
    description: str
    access: int | None
    address: str | None
    speed: int | None
    adaptive_routing: bool
    ecn_profile: str | None
    mtu_bytes: int
    qos: Literal["lossless", "lossy", "none"]
    """None: of a switch without QoS, which has but lossy traffic."""
    tagged: tuple[int, ...] = ()
    access_list: str = ""
    address_v6: str | None = None


@dataclass(frozen=True, slots=True)
class NvueEcnProfile:
    """ECN thresholds other than the RoCE mode's own."""

    name: str
    thresholds: EcnThresholds


@dataclass(frozen=True, slots=True)
class NvueNeighbor:
    """A BGP neighbour on a port: unnumbered, or by address."""

    port: str
    asn: int
    is_draining: bool
    address: str = ""
    """Of the neighbour; empty: unnumbered."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One traffic class of the egress scheduler: weighted, or strict without a weight."""

    traffic_class: int
    weight: int | None


@dataclass(frozen=True, slots=True)
class NvueQos:
    """The device-wide QoS that differs from the RoCE mode."""

    cable_m: int
    roce_class: int
    lossy_percent: int
    schedulers: tuple[Scheduler, ...]
    priority_to_class: tuple[tuple[int, int], ...]
    dscps: tuple[tuple[int, int], ...]
    pfc_priority: int | None
    ecn_profiles: tuple[NvueEcnProfile, ...]


@dataclass(frozen=True, slots=True)
class AccessRule:
    """A rule of the access list of the control plane."""

    number: int
    action: str
    protocol: str
    port: int
    source: str


@dataclass(frozen=True, slots=True)
class NvueView:
    """Values of one switch that neither the design nor the dialect of its release has."""

    words: NvueDialect
    ageing_s: int
    flood_pps: int
    cages: tuple[BrokenOutCage, ...]
    interfaces: tuple[NvueInterface, ...]
    qos: NvueQos
    prefix_lists: tuple[PrefixList, ...]
    announced: str
    neighbors: tuple[NvueNeighbor, ...]
    bridged_vlans: tuple[int, ...]
    pair: SwitchPair | None
    """The other switch, of a pair that hosts see as one."""
    snmp: tuple[Snmp, ...]
    access: tuple[AccessRule, ...]
    edges: tuple[ExternalPort, ...]
    """Ports with an access list."""


def artifacts(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    view = build(fabric, switch)
    yield Artifact(
        "startup.yaml", "nvue/startup.yaml.j2", {"view": view, "switch": switch, "fabric": fabric, "words": view.words}
    )


def ztp(fabric: Fabric, switch: Switch) -> Iterator[Artifact]:
    """Yield the script that Cumulus Linux runs on first boot; none without a management address."""
    if switch.management:
        context = {"switch": switch, "fabric": fabric, "words": dialect(switch.version)}
        yield Artifact("ztp.sh", "nvue/ztp.sh.j2", context)


def build(fabric: Fabric, switch: Switch) -> NvueView:
    ecn = {port.profile.ecn: port.speed_gbps for port in switch.ports if port.profile.ecn != MODE_ECN}
    profiles = tuple(
        NvueEcnProfile(f"ecn-{speed}g", thresholds)
        for thresholds, speed in sorted(ecn.items(), key=lambda item: item[1])
    )
    vlans = switch.access.vlans if switch.access else ()
    return NvueView(
        words=dialect(switch.version),
        ageing_s=MAC_AGEING_S,
        flood_pps=FLOOD_PPS,
        cages=tuple(
            BrokenOutCage(f"swp{cage.number}", f"{cage.split.ports}x") for cage in switch.cages if cage.split.ports > 1
        ),
        interfaces=tuple(_interfaces(switch, {profile.thresholds: profile.name for profile in profiles})),
        qos=_qos(fabric.lossless, switch, profiles),
        prefix_lists=tuple(prefix_lists(fabric, switch)),
        announced=announced(fabric, switch),
        neighbors=tuple(
            NvueNeighbor(port.name, port.peer_asn, port.peer in switch.drain_neighbors, port.peer_address)
            for port in switch.fabric_ports
        ),
        bridged_vlans=(switch.vlan.number,) if switch.vlan else tuple(vlan.number for vlan in vlans),
        pair=switch.access.pair if switch.access else None,
        snmp=tuple(snmp for snmp in fabric.services.snmp if snmp.auth_secret and snmp.priv_secret),
        access=tuple(_access(switch.management.allowed)) if switch.management else (),
        edges=tuple(sorted((port for port in switch.external if port.denied), key=lambda one: one.access_list)),
    )


def _access(networks: tuple[str, ...]) -> Iterator[AccessRule]:
    """Yield the rules of each service: permit the networks and the switch, deny all others; other packets pass."""
    for base, (protocol, port) in enumerate(SERVED if networks else (), 1):
        for index, source in enumerate((ITSELF, *networks), 1):
            yield AccessRule(1000 * base + 10 * index, "permit", protocol, port, source)
        yield AccessRule(1000 * base + 990, "deny", protocol, port, "")


def _interfaces(switch: Switch, profiles: dict[EcnThresholds, str]) -> Iterator[NvueInterface]:
    for port in switch.ports:
        is_host = port.role == "host"
        yield NvueInterface(
            name=port.name,
            description=port.description,
            access=switch.vlan.number if switch.vlan and is_host else None,
            address=port.address or None,
            address_v6=port.address_v6 or None,
            speed=_forced_speed(switch, port.profile.split),
            adaptive_routing=switch.adaptive_routing and not is_host,
            ecn_profile=profiles.get(port.profile.ecn),
            mtu_bytes=switch.mtu_bytes,
            qos="lossless",
        )
    for outside in switch.external:
        yield NvueInterface(
            name=outside.name,
            description=outside.peer_name,
            access=None,
            address=outside.address,
            speed=_forced_speed(switch, outside.split),
            adaptive_routing=False,
            ecn_profile=None,
            mtu_bytes=outside.mtu_bytes,
            qos="none" if switch.access else "lossy",
            access_list=outside.access_list,
        )
    for attached in switch.access.ports if switch.access else ():
        is_bridged = attached.kind != "peer" and not attached.lag
        yield NvueInterface(
            name=attached.name,
            description=attached.description,
            access=attached.untagged or None if is_bridged else None,
            address=None,
            speed=_forced_speed(switch, attached.split),
            adaptive_routing=False,
            ecn_profile=None,
            mtu_bytes=switch.mtu_bytes,
            qos="none",
            tagged=attached.tagged if is_bridged else (),
        )


def _forced_speed(switch: Switch, split: Split) -> int | None:
    """The speed of a port where it does not follow from the breakout, or the model cannot negotiate it."""
    fastest = max(other.ports * other.speed_gbps for other in switch.model.splits)
    must_force = bool(switch.model.platforms.get("nvue", {}).get("force_speed"))
    return split.speed_gbps if must_force or split.ports * split.speed_gbps != fastest else None


def _qos(lossless: LosslessProfile, switch: Switch, profiles: tuple[NvueEcnProfile, ...]) -> NvueQos:
    longest = max((port.profile.cable.length_m for port in switch.ports), default=1)
    roce, cnp, rest = lossless.roce, lossless.cnp, lossless.best_effort
    classes = {roce.priority: ROCE_CLASS, cnp.priority: CNP_CLASS}
    intended = ((priority, classes.get(priority, REST_CLASS)) for priority in range(8))
    schedulers = (
        Scheduler(REST_CLASS, rest.weight),
        Scheduler(ROCE_CLASS, roce.weight),
        Scheduler(CNP_CLASS, None),
    )
    return NvueQos(
        cable_m=math.ceil(longest),
        roce_class=ROCE_CLASS,
        lossy_percent=100 - lossless.pool_percent,
        schedulers=schedulers if {REST_CLASS: rest.weight, ROCE_CLASS: roce.weight} != WEIGHTS else (),
        priority_to_class=tuple(
            (priority, traffic) for priority, traffic in intended if traffic != CLASSES.get(priority, REST_CLASS)
        ),
        dscps=tuple(
            (dscp, priority) for dscp, priority in enumerate(lossless.dscp_to_priority) if priority != dscp // 8
        ),
        pfc_priority=roce.priority if CLASSES.get(roce.priority) != ROCE_CLASS else None,
        ecn_profiles=profiles,
    )

"""The cables of a fabric by their ends, and the real input of the model at each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from netkit.design.fabric import Cable, Fabric
from netkit.design.traffic import LosslessProfile
from netkit.lab.reading import TrafficReading
from netkit.lab.state import PRIORITIES, PortState, WatchdogState


@dataclass(frozen=True, slots=True)
class KernelPort:
    """The kernel's view of a switch or host port at one moment."""

    is_enabled: bool = True
    is_up: bool = True
    mtu_bytes: int = 1500
    carrier_changes: int = 0
    traffic: TrafficReading = field(default_factory=TrafficReading)
    ecn_marked_packets: int = 0
    """Packets nftables marked CE at egress; all of them belong to the RoCE queue."""
    is_crowded: bool = False
    """Whether more RoCE packets leave now than the port's speed allows."""
    mac: str = ""
    queue_packets: tuple[int, ...] = ()
    """Packets nftables counted at egress by queue; empty for a port without rules, such as a host's."""
    queue_bytes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NicTraffic:
    """What the traffic process counted for one NIC since it booted: real packets only."""

    cnp_sent: int = 0
    cnp_handled: int = 0
    cnp_ignored: int = 0
    ecn_marked_packets: int = 0
    """RoCE packets that arrived with CE set."""
    rx_roce_packets: int = 0
    rx_roce_bytes: int = 0
    tx_roce_packets: int = 0
    tx_roce_bytes: int = 0
    rx_cnp_packets: int = 0
    """CNPs that arrived, handled or not."""
    out_of_sequence: int = 0
    """Gaps in the packet sequence numbers this NIC received."""
    packet_seq_err: int = 0
    """Negative acknowledgements that this NIC received."""
    duplicate_requests: int = 0
    rx_priority_packets: tuple[int, ...] = ()
    tx_priority_packets: tuple[int, ...] = ()
    """Packets by priority, eight entries, or none if not counted."""


@dataclass(frozen=True, slots=True)
class NicSettings:
    """A NIC's settings as left by the host tools; the model uses PFC, trust and adaptive routing."""

    pfc_priorities: frozenset[int] = frozenset()
    priority_of_dscp: tuple[int, ...] = ()
    """64 entries, or none if the NIC trusts the priority tag instead of the DSCP."""
    np_enabled: frozenset[int] = frozenset()
    """Priorities on which CE marks are answered with CNPs."""
    rp_enabled: frozenset[int] = frozenset()
    """Priorities on which CNPs slow the sender down."""
    cnp_dscp: int = 0
    cnp_priority: int = 0
    adaptive_retransmission: bool = False
    roce_adaptive_routing: bool = False


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """One end of a cable by its names in the design: a switch port or a host NIC."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True, slots=True)
class CableDirection:
    """One direction of a cable. The receiver of the data is the sender of pauses."""

    index: int
    sender: LinkEnd
    receiver: LinkEnd
    speed_gbps: int
    cable: Cable
    is_of_rails: bool = True
    """Whether it carries the modelled job; networks beside the rails carry real packets alone."""

    @property
    def opposite(self) -> int:
        """The index of the other direction of the same cable."""
        return self.index ^ 1


class FabricWiring:
    """All cable directions of a fabric, with an index by sending end."""

    def __init__(self, fabric: Fabric) -> None:
        directions: list[CableDirection] = []
        for link in fabric.cables():
            left, right = LinkEnd(link.device, link.port), LinkEnd(link.peer, link.peer_port)
            cable = link.speed_gbps, link.cable, link.kind in {"host", "spine", "core"}
            directions.append(CableDirection(len(directions), left, right, *cable))
            directions.append(CableDirection(len(directions), right, left, *cable))
        self.directions = tuple(directions)
        self.outgoing: Mapping[LinkEnd, CableDirection] = {direction.sender: direction for direction in directions}
        self.ends: Mapping[str, tuple[LinkEnd, ...]] = {
            **{host.name: tuple(LinkEnd(host.name, name) for name in host.cabled) for host in fabric.hosts},
            **{
                switch.name: tuple(LinkEnd(switch.name, port.name) for port in switch.cabled)
                for switch in fabric.switches
            },
        }

    def incoming(self, end: LinkEnd) -> CableDirection:
        return self.directions[self.outgoing[end].opposite]

    def peer(self, end: LinkEnd) -> LinkEnd:
        return self.outgoing[end].receiver


RANGE = 2**64


def draw(*names: str | int) -> float:
    """A number in [0, 1) derived from names."""
    return number(*names) / RANGE


def between(low: float, high: float, *names: str | int) -> float:
    """A number between two bounds, derived from names."""
    return low + (high - low) * draw(*names)


def number(*names: str | int) -> int:
    """A 64-bit number derived from names."""
    text = "\0".join(map(str, names)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


DETECTION_MS = 300
RESTORATION_MS = 600
"""A switch's default times."""


@dataclass(frozen=True, slots=True)
class LinkSide:
    """The settings of one end that the model uses."""

    pfc_priorities: frozenset[int]
    data_priority: int
    """The priority of RoCE data: 0 at a port that does not trust the DSCP."""
    cnp_priority: int
    class_of_priority: tuple[int, ...] = tuple(range(PRIORITIES))
    watchdog: WatchdogState | None = None
    is_enabled: bool = True
    speed_gbps: int = 0
    fec: str = ""
    adaptive_routing: bool = False
    is_marking: bool = False
    """Whether queued RoCE data is marked with CE."""

    @property
    def is_lossless(self) -> bool:
        """Whether RoCE data may be paused here."""
        return self.data_priority in self.pfc_priorities

    def respects(self, receiver: "LinkSide") -> bool:
        """Whether this end pauses when the other end asks it to."""
        return self.data_priority == receiver.data_priority and self.is_lossless


def of_port(state: PortState, profile: LosslessProfile) -> LinkSide:
    qos, watchdog = state.qos, state.qos.watchdog
    if watchdog is not None:
        detection_ms = watchdog.detection_ms or DETECTION_MS
        watchdog = WatchdogState(detection_ms, watchdog.restoration_ms or RESTORATION_MS)
    data_priority = _priority(qos.priority_of_dscp, profile.data_dscp)
    ecn = qos.ecn.get(qos.class_of_priority[data_priority])
    return LinkSide(
        pfc_priorities=qos.pfc_priorities,
        data_priority=data_priority,
        cnp_priority=_priority(qos.priority_of_dscp, profile.cnp_dscp),
        class_of_priority=qos.class_of_priority,
        watchdog=watchdog,
        is_enabled=state.is_enabled,
        speed_gbps=state.speed_gbps,
        fec=state.fec,
        adaptive_routing=state.adaptive_routing,
        is_marking=ecn is not None and ecn.probability_percent > 0,
    )


def of_nic(settings: NicSettings, profile: LosslessProfile) -> LinkSide:
    return LinkSide(
        pfc_priorities=settings.pfc_priorities,
        data_priority=_priority(settings.priority_of_dscp, profile.data_dscp),
        cnp_priority=settings.cnp_priority,
    )


def _priority(priority_of_dscp: tuple[int, ...], dscp: int) -> int:
    return priority_of_dscp[dscp] if priority_of_dscp else 0

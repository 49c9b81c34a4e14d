"""What is real and goes into the model: the kernel's view of a port, and what the traffic of a NIC counted."""

from dataclasses import dataclass, field

from netkit.lab.reading import TrafficReading


@dataclass(frozen=True, slots=True)
class KernelPort:
    """A port of a switch or host as the kernel shows it at one moment."""

    is_enabled: bool = True
    is_up: bool = True
    mtu_bytes: int = 1500
    carrier_changes: int = 0
    traffic: TrafficReading = field(default_factory=TrafficReading)
    ecn_marked_packets: int = 0
    """Packets nftables marked CE on the way out; all of them belong to the RoCE queue."""
    is_crowded: bool = False
    """Whether more RoCE packets leave just now than stand for the speed of the port."""
    mac: str = ""
    queue_packets: tuple[int, ...] = ()
    """Packets nftables saw leave by each of the eight queues; none of a port without rules, such as a host's."""
    queue_bytes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NicTraffic:
    """What the traffic programs of a host counted for one NIC since it booted. Real packets, every one of them."""

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
    """CNPs that arrived, whatever became of them."""
    out_of_sequence: int = 0
    """Gaps in the packet sequence numbers this NIC received."""
    packet_seq_err: int = 0
    """Negative acknowledgements that came back to this NIC."""
    duplicate_requests: int = 0
    rx_priority_packets: tuple[int, ...] = ()
    tx_priority_packets: tuple[int, ...] = ()
    """Packets per priority, all eight or none, when the programs tell them apart."""


@dataclass(frozen=True, slots=True)
class NicSettings:
    """How a host's NIC is set, as the host tools left it; the model reads PFC, trust and adaptive routing from it."""

    pfc_priorities: frozenset[int] = frozenset()
    priority_of_dscp: tuple[int, ...] = ()
    """64 entries, or none when the NIC trusts the priority tag instead of the DSCP."""
    np_enabled: frozenset[int] = frozenset()
    """Priorities on which CE marks are answered with CNPs."""
    rp_enabled: frozenset[int] = frozenset()
    """Priorities on which CNPs slow the sender down."""
    cnp_dscp: int = 0
    cnp_priority: int = 0
    adaptive_retransmission: bool = False
    roce_adaptive_routing: bool = False

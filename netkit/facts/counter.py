"""Counters, flat by name and place, so that deltas, snapshots and the store do not depend on their meaning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from netkit.facts.qos import Buffer

Counters = Mapping[str, Mapping[str, int]]
"""Name → place → count. A place is a port, or `port/n` for a priority, a queue or a bin of it."""
Scope = Literal["port", "priority", "queue", "bin"]


@dataclass(frozen=True, slots=True)
class CounterKind:
    """What a counter counts."""

    scope: Scope
    unit: Literal["bytes", "packets", "frames", "events", "microseconds", "codewords", "bits"]
    text: str
    bits: int = 64
    """Minimum width; some devices wrap later."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters of a device at one time."""

    at_s: float
    counters: Counters = field(default_factory=dict)
    boot: str = ""
    """Boot ID of the device, if samples are from different boots; else empty."""
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    """`port/priority` → queue occupancy and its peak, if the device exposes them with its counters."""


def place(port: str, number: int | str) -> str:
    """Name the place of a priority, a queue or a bin of a port."""
    return f"{port}/{number}"


def parts(numbered: str) -> tuple[str, int]:
    """Split the place of a priority, a queue or a bin; not valid for plain ports, whose names have slashes too."""
    port, _, number = numbered.rpartition("/")
    return port, int(number)


COUNTERS: Mapping[str, CounterKind] = {
    # Of every port and NIC
    "rx_bytes": CounterKind("port", "bytes", "received"),
    "tx_bytes": CounterKind("port", "bytes", "sent"),
    "rx_packets": CounterKind("port", "packets", "received"),
    "tx_packets": CounterKind("port", "packets", "sent"),
    "rx_errors": CounterKind("port", "packets", "received damaged"),
    "tx_errors": CounterKind("port", "packets", "not sent because of an error"),
    "rx_drops": CounterKind("port", "packets", "received and discarded"),
    "tx_drops": CounterKind("port", "packets", "discarded before they were sent"),
    "carrier_changes": CounterKind("port", "events", "times the link went down or up"),
    "link_downs": CounterKind("port", "events", "times the link went down"),
    # PFC, by priority
    "rx_pause": CounterKind("priority", "frames", "pauses received: the other end is congested"),
    "tx_pause": CounterKind("priority", "frames", "pauses sent: this end is congested"),
    "port_rx_pause": CounterKind("port", "frames", "pauses received, all priorities together", 32),
    "port_tx_pause": CounterKind("port", "frames", "pauses sent, all priorities together", 32),
    "rx_pause_us": CounterKind("priority", "microseconds", "time it was paused by the other end"),
    "tx_pause_us": CounterKind("priority", "microseconds", "time it paused the other end"),
    "buffer_drops": CounterKind("priority", "packets", "received and lost for lack of buffer: the headroom overflowed"),
    "port_buffer_drops": CounterKind("port", "packets", "received and lost for lack of buffer, of all priorities"),
    "priority_rx_packets": CounterKind("priority", "packets", "received on the priority"),
    "priority_tx_packets": CounterKind("priority", "packets", "sent on the priority"),
    # Queues
    "queue_tx_packets": CounterKind("queue", "packets", "sent from the queue"),
    "queue_tx_bytes": CounterKind("queue", "bytes", "sent from the queue"),
    "queue_drops": CounterKind("queue", "packets", "tail drops of the queue"),
    "queue_ecn_marked": CounterKind("queue", "packets", "marked with CE on egress"),
    "ecn_marked": CounterKind("port", "packets", "marked with CE on egress, all queues together"),
    # PFC watchdog, by priority
    "watchdog_detected": CounterKind("priority", "events", "storms that the watchdog detected"),
    "watchdog_restored": CounterKind("priority", "events", "storms that are over"),
    "watchdog_drops": CounterKind("priority", "packets", "dropped by the watchdog"),
    # FEC
    "fec_corrected": CounterKind("port", "codewords", "repaired"),
    "fec_uncorrectable": CounterKind("port", "codewords", "uncorrectable: packets are lost"),
    "fec_symbol_errors": CounterKind("port", "events", "wrong symbols"),
    "fec_bin": CounterKind("bin", "codewords", "codewords with this many wrong symbols"),
    "corrected_bits": CounterKind("port", "bits", "wrong before FEC and corrected"),
    "received_bits": CounterKind("port", "bits", "received, good or bad"),
    # RoCE of a NIC
    "cnp_sent": CounterKind("port", "packets", "CNPs this NIC sent because packets arrived with CE"),
    "cnp_handled": CounterKind("port", "packets", "CNPs that arrived and slowed a sender down"),
    "cnp_ignored": CounterKind("port", "packets", "CNPs that arrived and were ignored"),
    "ecn_received": CounterKind("port", "packets", "RoCE packets that arrived with CE"),
    "out_of_sequence": CounterKind("port", "packets", "arrived out of order: loss, or spraying", 32),
    "packet_seq_err": CounterKind("port", "packets", "requested again by a receiver", 32),
    "local_ack_timeout": CounterKind("port", "events", "timeouts of a sender waiting for an answer", 32),
    "retries_exceeded": CounterKind("port", "events", "queue pairs that gave up", 32),
    "rnr_retries_exceeded": CounterKind("port", "events", "queue pairs whose receiver was never ready", 32),
    "out_of_buffer": CounterKind("port", "packets", "arrived with no receive work posted", 32),
    "adaptive_retransmits": CounterKind("port", "events", "retransmissions before a timeout", 32),
    "duplicate_requests": CounterKind("port", "packets", "duplicates received by a responder", 32),
    "slow_restart_cnps": CounterKind("port", "packets", "CNPs sent for loss instead of CE", 32),
    "icrc_errors": CounterKind("port", "packets", "with a wrong invariant CRC"),
    "rdma_rx_bytes": CounterKind("port", "bytes", "received by RDMA"),
    "rdma_tx_bytes": CounterKind("port", "bytes", "sent by RDMA"),
    "pause_storm_warnings": CounterKind("port", "events", "times the NIC paused its switch for long"),
    "pause_storm_errors": CounterKind("port", "events", "times the NIC stopped an endless pause"),
    "pci_stalls": CounterKind("port", "events", "seconds in which PCIe delayed received packets"),
}

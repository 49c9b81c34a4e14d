"""Readings of a device's hardware at one moment: the one source of every NOS command, SNMP table and host tool.

`SOURCES` lists which fields are read from the kernel and which come from the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Source = Literal["veth", "nftables", "traffic", "model"]


@dataclass(frozen=True, slots=True)
class PriorityReading:
    """PFC counters of one priority: frames, and how long they paused traffic."""

    rx_pause: int = 0
    tx_pause: int = 0
    rx_pause_us: int = 0
    tx_pause_us: int = 0


@dataclass(frozen=True, slots=True)
class QueueReading:
    """One egress queue."""

    tx_packets: int = 0
    tx_bytes: int = 0
    dropped_packets: int = 0
    ecn_marked_packets: int = 0
    occupancy_bytes: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BufferReading:
    """One ingress priority group."""

    occupancy_bytes: int = 0
    peak_bytes: int = 0
    headroom_bytes: int = 0
    headroom_peak_bytes: int = 0
    dropped_packets: int = 0


@dataclass(frozen=True, slots=True)
class WatchdogReading:
    """The PFC watchdog of one queue."""

    is_stormed: bool = False
    storms_detected: int = 0
    storms_restored: int = 0
    dropped_packets: int = 0


@dataclass(frozen=True, slots=True)
class FecReading:
    """Forward error correction. The histogram counts codewords by the number of corrected symbols, from 0."""

    mode: str = ""
    corrected_codewords: int = 0
    uncorrectable_codewords: int = 0
    pre_fec_ber: float = 0.0
    effective_ber: float = 0.0
    histogram: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModuleThresholds:
    """A module's own warning and alarm thresholds."""

    alarm_low: float
    warning_low: float
    warning_high: float
    alarm_high: float


@dataclass(frozen=True, slots=True)
class LaneReading:
    """One lane of a module. Optical power is in dBm; a dark lane reads -40."""

    rx_dbm: float
    tx_dbm: float
    bias_ma: float


@dataclass(frozen=True, slots=True)
class TransceiverReading:
    """A transceiver or cable in a cage. Copper has neither optical lanes nor thresholds."""

    kind: Literal["optic", "active", "copper"]
    identifier: str
    vendor: str
    part: str
    serial: str
    firmware: str
    revision: str
    media: str
    length_m: float
    temperature_c: float
    voltage_v: float
    lanes: tuple[LaneReading, ...]
    temperature_limits: ModuleThresholds | None
    voltage_limits: ModuleThresholds | None
    rx_limits: ModuleThresholds | None
    tx_limits: ModuleThresholds | None
    bias_limits: ModuleThresholds | None
    first_lane: int = 1
    """The port's first lane in a module it shares with another port."""


@dataclass(frozen=True, slots=True)
class TrafficReading:
    """Counters of a whole port."""

    rx_bytes: int = 0
    rx_packets: int = 0
    rx_dropped: int = 0
    rx_errors: int = 0
    tx_bytes: int = 0
    tx_packets: int = 0
    tx_dropped: int = 0
    tx_errors: int = 0


@dataclass(frozen=True, slots=True)
class SwitchPortReading:
    """Everything readable from a switch port."""

    name: str
    is_enabled: bool
    is_up: bool
    speed_gbps: int
    mtu_bytes: int
    carrier_changes: int
    link_up_s: float
    traffic: TrafficReading
    priorities: tuple[PriorityReading, ...]
    queues: tuple[QueueReading, ...]
    buffers: tuple[BufferReading, ...]
    watchdogs: tuple[WatchdogReading, ...]
    fec: FecReading
    module: TransceiverReading | None
    adaptive_routing: bool
    mac: str


@dataclass(frozen=True, slots=True)
class NicReading:
    """Everything readable from a host NIC. Counter names are those of the real driver."""

    interface: str
    rdma: str
    pci: str
    mac: str
    is_up: bool
    speed_gbps: int
    mtu_bytes: int
    carrier_changes: int
    link_up_s: float
    firmware: str
    driver: str
    part: str
    traffic: TrafficReading
    hw_counters: Mapping[str, int]
    port_counters: Mapping[str, int]
    ethtool: Mapping[str, int]
    fec: FecReading
    module: TransceiverReading | None


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "is_up": "veth",
        "mtu_bytes": "veth",
        "carrier_changes": "veth",
        "traffic": "veth",
        "queues.ecn_marked_packets": "nftables",
        "hw_counters.np_cnp_sent": "traffic",
        "hw_counters.np_ecn_marked_roce_packets": "traffic",
        "hw_counters.rp_cnp_handled": "traffic",
        "hw_counters.rp_cnp_ignored": "traffic",
        "speed_gbps": "model",
        "priorities": "model",
        "buffers": "model",
        "watchdogs": "model",
        "fec": "model",
        "module": "model",
    }
)
"""The source of each field; unlisted fields come from the model."""

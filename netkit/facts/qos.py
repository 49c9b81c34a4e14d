"""Live QoS, in the same words for a switch port and a host NIC, so that both ends of a cable can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ecn:
    """When a queue marks."""

    is_on: bool
    min_bytes: int | None = None
    max_bytes: int | None = None
    probability_percent: float | None = None


@dataclass(frozen=True, slots=True)
class PortQos:
    """QoS of one port or NIC; None where the device does not tell."""

    trust: str = ""
    """`dscp`, `pcp` or as the device says it; empty when it does not tell."""
    dscp_to_priority: Mapping[int, int] | None = None
    pfc_rx: frozenset[int] | None = None
    """Priorities on which pauses of the other end are heeded."""
    pfc_tx: frozenset[int] | None = None
    """Priorities on which this end sends pauses."""
    is_global_pause: bool | None = None
    weights: Mapping[int, int] | None = None
    """Traffic class → percent of ETS."""
    strict: frozenset[int] | None = None
    """Traffic classes that are served first."""
    priority_to_class: Mapping[int, int] | None = None
    ecn: Mapping[int, Ecn] | None = None
    """Traffic class → ECN; a class that is not there does not mark."""
    headroom_bytes: Mapping[int, int] | None = None
    """Lossless priority → headroom of its buffer."""
    xoff_bytes: Mapping[int, int] | None = None
    cable_m: float | None = None
    """The cable length the headroom was made for."""
    cnp_dscp: int | None = None
    """Of a NIC: what its CNPs leave with."""
    cnp_priority: int | None = None
    data_tos: int | None = None
    """Of a NIC: the traffic class byte its RoCE data leaves with, where it is forced."""
    cm_tos: int | None = None
    """Of a NIC: the traffic class byte of what RDMA-CM sets up."""
    ecn_notifies: frozenset[int] | None = None
    """Of a NIC: priorities on which it answers CE with CNPs."""
    ecn_reacts: frozenset[int] | None = None
    """Of a NIC: priorities on which CNPs slow it down."""
    priority_to_buffer: Mapping[int, int] | None = None
    """Of a NIC: the receive buffer of each priority."""


@dataclass(frozen=True, slots=True)
class Watchdog:
    """The PFC watchdog of a port and priority."""

    is_on: bool
    is_stormed: bool = False
    detection_ms: int | None = None
    restoration_ms: int | None = None
    action: str = ""


@dataclass(frozen=True, slots=True)
class Buffer:
    """How full a queue or a priority group is or was."""

    used_bytes: int | None = None
    peak_bytes: int | None = None
    """The most since somebody cleared it; netkit clears nothing."""
    headroom_peak_bytes: int | None = None
    """The same of the headroom of its priority group."""

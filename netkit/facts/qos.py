"""Operational QoS, in the same form for switch ports and host NICs, so that both ends of a cable are comparable."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ecn:
    """ECN marking of a queue."""

    is_on: bool
    min_bytes: int | None = None
    max_bytes: int | None = None
    probability_percent: float | None = None


@dataclass(frozen=True, slots=True)
class PortQos:
    """QoS of one port or NIC; None where the device does not expose it."""

    trust: str = ""
    """`dscp`, `pcp`, or the device's own word; empty if unknown."""
    dscp_to_priority: Mapping[int, int] | None = None
    pfc_rx: frozenset[int] | None = None
    """Priorities on which received pauses are honoured."""
    pfc_tx: frozenset[int] | None = None
    """Priorities on which pauses are sent."""
    is_global_pause: bool | None = None
    weights: Mapping[int, int] | None = None
    """Traffic class → ETS weight in percent."""
    strict: frozenset[int] | None = None
    """Traffic classes with strict priority."""
    priority_to_class: Mapping[int, int] | None = None
    ecn: Mapping[int, Ecn] | None = None
    """Traffic class → ECN; classes that are missing do not mark."""
    headroom_bytes: Mapping[int, int] | None = None
    """Lossless priority → headroom of its buffer."""
    xoff_bytes: Mapping[int, int] | None = None
    cable_m: float | None = None
    """The cable length the headroom is configured for."""
    cnp_dscp: int | None = None
    """NIC: the DSCP of its CNPs."""
    cnp_priority: int | None = None
    data_tos: int | None = None
    """NIC: the forced traffic class byte of its RoCE data."""
    cm_tos: int | None = None
    """NIC: the traffic class byte of RDMA-CM connections."""
    ecn_notifies: frozenset[int] | None = None
    """NIC: priorities on which it answers CE with CNPs."""
    ecn_reacts: frozenset[int] | None = None
    """NIC: priorities on which CNPs reduce its rate."""
    priority_to_buffer: Mapping[int, int] | None = None
    """NIC: the receive buffer of each priority."""


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
    """Occupancy of a queue or priority group."""

    used_bytes: int | None = None
    peak_bytes: int | None = None
    """The peak since it was last cleared; netkit never clears it."""
    headroom_peak_bytes: int | None = None
    """The peak of its priority group's headroom."""

"""How one NIC is set right now: what the tools changed since it was powered up, and what its firmware keeps."""

from dataclasses import dataclass

PRIORITIES = 8
CODE_POINTS = 64
Eight = tuple[int, ...]
CODE_POINT_DEFAULTS = tuple(dscp // 8 for dscp in range(CODE_POINTS))
BUFFER_BYTES = (130944, 130944, 0, 0, 0, 0, 0, 0)
MAX_BUFFER_BYTES = 2069280


@dataclass(frozen=True, slots=True)
class NicState:
    """The volatile settings of a NIC: gone with a reboot, a driver reload or a reset of the card."""

    is_os_controlled: bool = False
    trust: str = "pcp"
    priority_of_dscp: tuple[int, ...] = CODE_POINT_DEFAULTS
    pfc: Eight = (0,) * PRIORITIES
    buffer_of_priority: Eight = (0,) * PRIORITIES
    buffer_bytes: Eight = BUFFER_BYTES
    class_of_priority: Eight = (1, 0, 2, 3, 4, 5, 6, 7)
    algorithms: tuple[str, ...] = ("vendor",) * PRIORITIES
    weights_percent: Eight = (0,) * PRIORITIES
    rate_limits_gbps: Eight = (0,) * PRIORITIES
    cable_length_m: int = 7
    rx_pause: bool = True
    tx_pause: bool = True
    autonegotiation: bool = True
    fec: str = "auto"
    features: tuple[tuple[str, bool], ...] = ()
    adaptive_retransmission: bool = True
    adaptive_routing_forced: bool = False

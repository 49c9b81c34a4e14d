"""How one end of a cable treats RoCE, whoever told it: a switch port by its state, a NIC by its settings."""

from dataclasses import dataclass

from netkit.design.traffic import LosslessProfile
from netkit.lab.model.inputs import NicSettings
from netkit.lab.state import PRIORITIES, PortState, QosState, WatchdogState

DETECTION_MS = 300
RESTORATION_MS = 600
"""What a switch uses when its configuration leaves the times to it."""


@dataclass(frozen=True, slots=True)
class Side:
    """What the model needs to know of one end."""

    pfc_priorities: frozenset[int]
    data_priority: int
    """Where RoCE data lands: a port that does not trust the DSCP puts it into priority 0."""
    cnp_priority: int
    class_of_priority: tuple[int, ...] = tuple(range(PRIORITIES))
    watchdog: WatchdogState | None = None
    is_enabled: bool = True
    speed_gbps: int = 0
    fec: str = ""
    adaptive_routing: bool = False
    is_marking: bool = False
    """Whether RoCE data that waits here is marked with CE."""

    @property
    def is_lossless(self) -> bool:
        """Return whether RoCE data may be paused here."""
        return self.data_priority in self.pfc_priorities

    def heeds(self, receiver: "Side") -> bool:
        """Return whether this end stands still when the other end asks it to."""
        return self.data_priority == receiver.data_priority and self.is_lossless


def of_port(state: PortState, profile: LosslessProfile) -> Side:
    """Return the side a switch port is."""
    qos = state.qos
    return Side(
        pfc_priorities=qos.pfc_priorities,
        data_priority=_priority(qos.priority_of_dscp, profile.data_dscp),
        cnp_priority=_priority(qos.priority_of_dscp, profile.cnp_dscp),
        class_of_priority=qos.class_of_priority,
        watchdog=_timed(qos.watchdog),
        is_enabled=state.is_enabled,
        speed_gbps=state.speed_gbps,
        fec=state.fec,
        adaptive_routing=state.adaptive_routing,
        is_marking=_is_marking(qos, _priority(qos.priority_of_dscp, profile.data_dscp)),
    )


def of_nic(settings: NicSettings, profile: LosslessProfile) -> Side:
    """Return the side a host NIC is."""
    return Side(
        pfc_priorities=settings.pfc_priorities,
        data_priority=_priority(settings.priority_of_dscp, profile.data_dscp),
        cnp_priority=settings.cnp_priority,
    )


def _priority(priority_of_dscp: tuple[int, ...], dscp: int) -> int:
    return priority_of_dscp[dscp] if priority_of_dscp else 0


def _is_marking(qos: QosState, data_priority: int) -> bool:
    ecn = qos.ecn.get(qos.class_of_priority[data_priority])
    return ecn is not None and ecn.probability_percent > 0


def _timed(watchdog: WatchdogState | None) -> WatchdogState | None:
    if watchdog is None:
        return None
    return WatchdogState(watchdog.detection_ms or DETECTION_MS, watchdog.restoration_ms or RESTORATION_MS)

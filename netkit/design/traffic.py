"""The types of the lossless profile: classes of traffic, and the numbers that keep one of them lossless."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """One class of traffic. Its priority is also its traffic class, queue and priority group everywhere."""

    name: str
    priority: int
    dscps: tuple[int, ...]
    is_lossless: bool
    is_strict: bool
    weight: int
    shape_percent: int | None


@dataclass(frozen=True, slots=True)
class WatchdogTimers:
    """PFC watchdog times, all from one poll interval."""

    poll_ms: int
    detection_polls: int
    restoration_polls: int
    action: str

    @property
    def detection_ms(self) -> int:
        """How long a queue is paused before it counts as stuck."""
        return self.poll_ms * self.detection_polls

    @property
    def restoration_ms(self) -> int:
        """How long a stuck queue must stay quiet before it is lossless again."""
        return self.poll_ms * self.restoration_polls


@dataclass(frozen=True, slots=True)
class LosslessProfile:
    """What switches and hosts must agree on, in one object."""

    roce: TrafficClass
    cnp: TrafficClass
    best_effort: TrafficClass
    data_dscp: int
    cnp_dscp: int
    dscp_to_priority: tuple[int, ...]
    watchdog: WatchdogTimers
    pool_percent: int

    @property
    def classes(self) -> tuple[TrafficClass, ...]:
        return tuple(sorted((self.best_effort, self.roce, self.cnp), key=lambda traffic: traffic.priority))

    @property
    def lossless_priorities(self) -> tuple[int, ...]:
        """The priorities that PFC protects from loss."""
        return tuple(traffic.priority for traffic in self.classes if traffic.is_lossless)

    @property
    def priority_to_class(self) -> tuple[int, ...]:
        """For each of the eight priorities, the priority of the class that carries it."""
        own = {self.roce.priority, self.cnp.priority}
        return tuple(priority if priority in own else self.best_effort.priority for priority in range(8))

    @property
    def tos(self) -> int:
        """The traffic class byte of RoCE data: the DSCP and ECT(0)."""
        return (self.data_dscp << 2) | 2


@dataclass(frozen=True, slots=True)
class EcnThresholds:
    """Where marking starts, where it is certain, and its probability in between."""

    min_bytes: int
    max_bytes: int
    probability_percent: int
    min_unit: str = "bytes"
    """The unit that a NOS with several writes it in."""
    max_unit: str = "bytes"


@dataclass(frozen=True, slots=True)
class Headroom:
    """Buffer for what still arrives after a pause was sent."""

    size_bytes: int
    xoff_bytes: int
    xon_bytes: int
    xon_offset_bytes: int | None
    origin: Literal["intent", "vendor", "formula"]
    table_cable_m: float | None

"""The PFC watchdog of a port: when it took a pause for a storm, and when it let go again."""

from dataclasses import dataclass, field

from netkit.lab.state import WatchdogState

MS = 1000


@dataclass
class Trip:
    """One storm at one queue, from its beginning."""

    began_s: float
    times: WatchdogState
    ended_s: float | None = None

    def is_detected(self, now_s: float) -> bool:
        """Whether the storm lasted long enough to be taken for one."""
        detected_s = self.began_s + self.times.detection_ms / MS
        return detected_s <= (now_s if self.ended_s is None else min(now_s, self.ended_s))

    def is_restored(self, now_s: float) -> bool:
        """Whether the queue is lossless again."""
        ended_s = self.ended_s
        return ended_s is not None and self.is_detected(now_s) and ended_s + self.times.restoration_ms / MS <= now_s


@dataclass
class Watch:
    """All storms of one port."""

    trips: list[Trip] = field(default_factory=list)

    def note(self, times: WatchdogState | None, now_s: float) -> None:
        """Note that a storm rages, with the watchdog's times, or that none does."""
        raging = self.trips[-1] if self.trips and self.trips[-1].ended_s is None else None
        if times is None and raging:
            raging.ended_s = now_s
        elif times is not None and not raging:
            self.trips.append(Trip(now_s, times))

    def counts(self, now_s: float) -> tuple[int, int]:
        """Return how many storms were detected, and of how many the queue was restored."""
        detected = sum(trip.is_detected(now_s) for trip in self.trips)
        return detected, sum(trip.is_restored(now_s) for trip in self.trips)

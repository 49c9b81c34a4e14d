"""How a sender reacts to congestion notifications: DCQCN, with its times and steps scaled to the lab.

A notification cuts the rate by half of the congestion estimate and raises that estimate. Each quiet period lowers the
estimate and recovers the rate: first half-way back to where it was cut, five times, then by a fixed step beyond.
"""

from dataclasses import dataclass

GAIN = 1 / 16
FAST_RECOVERIES = 5
RECOVERY_S = 0.25
"""One quiet period. A NIC's is about 300 µs; a lab flow sends that much less often."""
STEP_SHARE = 1 / 20
LEAST_SHARE = 1 / 100


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate of one flow, as shares of the rate it was started with."""

    current: float = 1.0
    target: float = 1.0
    congestion: float = 1.0
    quiet_periods: int = 0

    def cut(self) -> "Rate":
        """Return the rate after a notification."""
        slower = max(LEAST_SHARE, self.current * (1 - self.congestion / 2))
        return Rate(slower, self.current, (1 - GAIN) * self.congestion + GAIN, 0)

    def recover(self) -> "Rate":
        """Return the rate after a period without one."""
        quiet = self.quiet_periods + 1
        target = self.target if quiet <= FAST_RECOVERIES else min(1.0, self.target + STEP_SHARE)
        faster = (self.current + target) / 2
        # Halving a distance never closes it: what is within a hundredth has arrived.
        current = target if target - faster < LEAST_SHARE else faster
        return Rate(current, target, (1 - GAIN) * self.congestion, quiet)

    @property
    def is_full(self) -> bool:
        """Return whether nothing is left to recover."""
        return self.current >= 1.0

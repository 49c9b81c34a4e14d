"""Counts of one way: rates while nothing changes, added up whenever something does."""

from typing import NamedTuple

from netkit.lab.model.flow import Flow

MICRO = 1e6
STALL_SHARE = 0.05
"""A receiver that asks for pauses longer than this part of the time is stalled: a NIC waits for its PCIe bus."""


class Totals(NamedTuple):
    """What one way has counted so far."""

    packets: float = 0
    bytes: float = 0
    pauses: float = 0
    asked_us: float = 0
    held_us: float = 0
    drops: float = 0
    lossy_drops: float = 0
    watchdog_drops: float = 0
    stalled_s: float = 0
    """How long the receiver asked for pauses much of the time."""
    marks: float = 0


class Meter:
    """The counts of one way. Reading changes nothing; only `turn` does, when the flow becomes another."""

    __slots__ = ("_rates", "_since_s", "_totals", "flow", "headroom_peak", "priority", "queue_peak")

    def __init__(self, started_s: float) -> None:
        self._since_s = started_s
        self._totals = Totals()
        self._rates = Totals()
        self.flow = Flow()
        self.priority = 0
        """The priority that was last paused on this way."""
        self.queue_peak = 0.0
        self.headroom_peak = 0.0

    def turn(self, flow: Flow, now_s: float) -> None:
        """Add up what was counted until now, and go on with another flow."""
        now_s = max(now_s, self._since_s)
        self._totals = self.at(now_s)
        self._since_s = now_s
        self.flow = flow
        self._rates = _rates(flow)
        self.priority = flow.priority if flow.pauses_ps else self.priority
        self.queue_peak = max(self.queue_peak, flow.queue_fill)
        self.headroom_peak = max(self.headroom_peak, flow.headroom_fill)

    def at(self, now_s: float) -> Totals:
        """Return the counts at a moment."""
        past_s = max(now_s - self._since_s, 0.0)
        return Totals._make(total + rate * past_s for total, rate in zip(self._totals, self._rates, strict=True))


def _rates(flow: Flow) -> Totals:
    return Totals(
        flow.packets_ps,
        flow.bytes_ps,
        flow.pauses_ps,
        flow.asked_share * MICRO,
        flow.held_share * MICRO,
        flow.drops_ps,
        flow.lossy_drops_ps,
        flow.watchdog_drops_ps,
        float(flow.asked_share > STALL_SHARE),
        flow.marks_ps,
    )

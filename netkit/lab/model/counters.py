"""Counters of one cable direction: constant rates, accumulated at each change, and how each end displays them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from netkit.lab.model.wiring import CableDirection, LinkSide, between

Reading = TypeVar("Reading")


class EndCounters(Generic[Reading]):
    """How one end displays its counters. A reset takes effect at the next read."""

    __slots__ = ("_bits", "_left", "_offsets", "is_stuck", "is_to_reset", "is_to_wrap", "kept")

    def __init__(self) -> None:
        self._offsets: tuple[int, ...] = ()
        self._bits = 0
        self._left = 0
        self.is_to_reset = False
        self.is_to_wrap = False
        self.is_stuck = False
        self.kept: Reading | None = None
        """The reading of a stuck end when it got stuck."""

    def wrap(self, bits: int, left: int) -> None:
        """At the next read, put every non-zero counter `left` below the end of its range."""
        self._bits, self._left, self.is_to_wrap = bits, left, True

    def displayed(self, counts: Sequence[int]) -> Sequence[int]:
        if self.is_to_wrap:
            start = 2**self._bits - self._left
            self._offsets = tuple(count - start if count else 0 for count in counts)
            self.is_to_wrap = False
        elif self.is_to_reset:
            self._offsets, self._bits = tuple(counts), 0
        self.is_to_reset = False
        if not self._offsets:
            return counts
        limit = 2 ** (self._bits or 64)
        return [(count - offset) % limit for count, offset in zip(counts, self._offsets, strict=True)]


PACKET_BYTES = 4158
"""A RoCE packet at a path MTU of 4096, with its headers."""
BITS = 8
GIGA = 1e9
PAUSE_S = 8e-6
"""How long one pause of a healthy fabric stops traffic."""
IGNORED_REPEATS = 3
"""A pause that is ignored is repeated."""
MARKED_FILL, MARKS_PS = 0.3, 0.8
"""The fill from which a queue marks, and the rate: enough to be visible, too little to cause CNPs."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """The effect of a storm on one direction: how the data's receiver asks for pauses, and what fills."""

    pauses_ps: float = 0
    share: float = 0
    """Share of time the receiver requests a pause, 0 to 1."""
    queue_fill: float = 0
    headroom_fill: float = 0
    burst_ms: float = 0
    """How long a pause lasts without a gap."""


@dataclass(frozen=True, slots=True)
class TrafficLoad:
    """Rates per second, shares of time, and fill levels from 0 to 1."""

    packets_ps: float = 0
    bytes_ps: float = 0
    pauses_ps: float = 0
    asked_share: float = 0
    """Share of time the receiver requests a pause."""
    held_share: float = 0
    """Share of time the sender is paused."""
    drops_ps: float = 0
    lossy_drops_ps: float = 0
    """Drops of a receiver without PFC for the data, which also drops at egress."""
    watchdog_drops_ps: float = 0
    queue_fill: float = 0
    headroom_fill: float = 0
    priority: int = 0
    has_tripped: bool = False
    marks_ps: float = 0


def quiet(direction: CableDirection) -> Pressure:
    """The low background pressure of a healthy fabric, similar in both directions."""
    name = str(min(direction.sender, direction.receiver, key=str))
    pauses = between(0.4, 2.5, "pauses", name) * between(0.9, 1.1, "pauses", str(direction.sender))
    fill = between(0.005, 0.02, "queue", str(direction.sender))
    return Pressure(pauses, pauses * PAUSE_S, fill, between(0.01, 0.04, "headroom", str(direction.receiver)))


def load(direction: CableDirection) -> float:
    """The share of bandwidth the modelled job uses: a steady, evenly spread load."""
    return between(0.30, 0.32, "load", str(direction.sender))


def flow(
    direction: CableDirection, sender: LinkSide | None, receiver: LinkSide | None, pressure: Pressure, *, is_up: bool
) -> TrafficLoad:
    """The traffic under some pressure, given how both ends are set; an end not yet configured takes no part."""
    if not is_up or not all(side is None or side.is_enabled for side in (sender, receiver)):
        return TrafficLoad(priority=receiver.data_priority if receiver else 0)
    bytes_ps = load(direction) * direction.speed_gbps * GIGA / BITS
    if sender is None or receiver is None:
        return _moving(TrafficLoad(queue_fill=pressure.queue_fill), bytes_ps)
    is_paused = receiver.is_lossless and sender.respects(receiver)
    traffic = (_paused if is_paused else _unpaused)(bytes_ps, sender, receiver, pressure)
    is_marking = sender.is_marking and traffic.queue_fill >= MARKED_FILL
    return replace(traffic, marks_ps=MARKS_PS) if is_marking else traffic


def has_tripped(sender: LinkSide, pressure: Pressure) -> bool:
    """Whether the sender's watchdog detects a storm."""
    return sender.watchdog is not None and pressure.burst_ms >= sender.watchdog.detection_ms


def _paused(bytes_ps: float, sender: LinkSide, receiver: LinkSide, pressure: Pressure) -> TrafficLoad:
    share = min(pressure.share, 1.0)
    tripped = has_tripped(sender, pressure)
    traffic = TrafficLoad(
        pauses_ps=pressure.pauses_ps,
        asked_share=share,
        held_share=0.0 if tripped else share,
        watchdog_drops_ps=bytes_ps / PACKET_BYTES * share if tripped else 0.0,
        queue_fill=0.0 if tripped else pressure.queue_fill,
        headroom_fill=pressure.headroom_fill,
        priority=receiver.data_priority,
        has_tripped=tripped,
    )
    return _moving(traffic, bytes_ps * (1 - share))


def _unpaused(bytes_ps: float, sender: LinkSide, receiver: LinkSide, pressure: Pressure) -> TrafficLoad:
    """The flow where at most one end has PFC for the data: congestion drops what PFC would have paused."""
    share = min(pressure.share, 1.0)
    is_pausing = receiver.is_lossless
    lost_ps = bytes_ps / PACKET_BYTES * share if is_pausing or sender.is_lossless else 0.0
    traffic = TrafficLoad(
        pauses_ps=pressure.pauses_ps * IGNORED_REPEATS if is_pausing else 0.0,
        asked_share=share if is_pausing else 0.0,
        drops_ps=lost_ps,
        lossy_drops_ps=0.0 if is_pausing else lost_ps,
        queue_fill=pressure.queue_fill,
        headroom_fill=1.0 if is_pausing else 0.0,
        priority=receiver.data_priority,
    )
    return _moving(traffic, bytes_ps)


def _moving(traffic: TrafficLoad, bytes_ps: float) -> TrafficLoad:
    return replace(traffic, packets_ps=bytes_ps / PACKET_BYTES, bytes_ps=bytes_ps)


MICRO = 1e6
STALL_SHARE = 0.05
"""A receiver that requests pauses for a larger share of time is stalled: a NIC waits for its PCIe bus."""


class Totals(NamedTuple):
    """The counters of one direction."""

    packets: float = 0
    bytes: float = 0
    pauses: float = 0
    asked_us: float = 0
    held_us: float = 0
    drops: float = 0
    lossy_drops: float = 0
    watchdog_drops: float = 0
    stalled_s: float = 0
    """How long the receiver was stalled."""
    marks: float = 0


class CounterMeter:
    """Accumulates the counters of one direction. Only `turn`, at a change of flow, modifies it."""

    __slots__ = ("_rates", "_since_s", "_totals", "flow", "headroom_peak", "priority", "queue_peak")

    def __init__(self, started_s: float) -> None:
        self._since_s = started_s
        self._totals = Totals()
        self._rates = Totals()
        self.flow = TrafficLoad()
        self.priority = 0
        """The priority that was last paused in this direction."""
        self.queue_peak = 0.0
        self.headroom_peak = 0.0

    def turn(self, flow: TrafficLoad, now_s: float) -> None:
        """Accumulate until now, and continue with another flow."""
        now_s = max(now_s, self._since_s)
        self._totals = self.at(now_s)
        self._since_s = now_s
        self.flow = flow
        self._rates = _rates(flow)
        self.priority = flow.priority if flow.pauses_ps else self.priority
        self.queue_peak = max(self.queue_peak, flow.queue_fill)
        self.headroom_peak = max(self.headroom_peak, flow.headroom_fill)

    def at(self, now_s: float) -> Totals:
        past_s = max(now_s - self._since_s, 0.0)
        return Totals._make(total + rate * past_s for total, rate in zip(self._totals, self._rates, strict=True))


def _rates(flow: TrafficLoad) -> Totals:
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

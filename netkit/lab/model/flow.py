"""What moves on one way of a cable while nothing changes: data, pauses, losses, and how full the buffers are."""

from dataclasses import dataclass, replace

from netkit.lab.model.seed import between
from netkit.lab.model.side import Side
from netkit.lab.model.wiring import Way

PACKET_BYTES = 4158
"""A RoCE packet at a path MTU of 4096, with its headers."""
BITS = 8
GIGA = 1e9
PAUSE_S = 8e-6
"""How long one pause of a healthy fabric holds traffic up."""
IGNORED_REPEATS = 3
"""A pause nobody heeds is sent again and again."""
MARKED_FILL, MARKS_PS = 0.3, 0.8
"""From which fill on a queue marks, and how much: enough to be seen, far too little to call for CNPs of its own."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """What a storm does to one way: how the receiver of the data asks for pauses, and what piles up."""

    pauses_ps: float = 0
    share: float = 0
    """Part of the time a pause is asked for, 0 to 1."""
    queue_fill: float = 0
    headroom_fill: float = 0
    burst_ms: float = 0
    """How long a pause lasts without a gap."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Rates by the second, shares of time, and fill levels from 0 to 1."""

    packets_ps: float = 0
    bytes_ps: float = 0
    pauses_ps: float = 0
    asked_share: float = 0
    """Part of the time the receiver asks for a pause."""
    held_share: float = 0
    """Part of the time the sender stands still."""
    drops_ps: float = 0
    lossy_drops_ps: float = 0
    """Those of a receiver that has no PFC for the data, which drops on its way out as well."""
    watchdog_drops_ps: float = 0
    queue_fill: float = 0
    headroom_fill: float = 0
    priority: int = 0
    has_tripped: bool = False
    marks_ps: float = 0


def quiet(way: Way) -> Pressure:
    """Return the little pressure every way of a healthy fabric is under, about the same both ways."""
    name = str(min(way.sender, way.receiver, key=str))
    pauses = between(0.4, 2.5, "pauses", name) * between(0.9, 1.1, "pauses", str(way.sender))
    fill = between(0.005, 0.02, "queue", str(way.sender))
    return Pressure(pauses, pauses * PAUSE_S, fill, between(0.01, 0.04, "headroom", str(way.receiver)))


def load(way: Way) -> float:
    """Return the part of a way's bandwidth the modelled job takes: a steady one, evenly spread."""
    return between(0.30, 0.32, "load", str(way.sender))


def flow(way: Way, sender: Side | None, receiver: Side | None, pressure: Pressure, *, is_up: bool) -> Flow:
    """Return what moves under some pressure, given how both ends are set; an end not told yet does not take part."""
    if not is_up or not all(side is None or side.is_enabled for side in (sender, receiver)):
        return Flow(priority=receiver.data_priority if receiver else 0)
    bytes_ps = load(way) * way.speed_gbps * GIGA / BITS
    if sender is None or receiver is None:
        return _moving(Flow(queue_fill=pressure.queue_fill), bytes_ps)
    if receiver.is_lossless and sender.heeds(receiver):
        return _marked(sender, _paused(bytes_ps, sender, receiver, pressure))
    return _marked(sender, _unheeded(bytes_ps, sender, receiver, pressure))


def _marked(sender: Side, shown: Flow) -> Flow:
    is_marking = sender.is_marking and shown.queue_fill >= MARKED_FILL
    return replace(shown, marks_ps=MARKS_PS) if is_marking else shown


def has_tripped(sender: Side, pressure: Pressure) -> bool:
    """Return whether the sender's watchdog takes a pause for a storm."""
    return sender.watchdog is not None and pressure.burst_ms >= sender.watchdog.detection_ms


def _paused(bytes_ps: float, sender: Side, receiver: Side, pressure: Pressure) -> Flow:
    share = min(pressure.share, 1.0)
    tripped = has_tripped(sender, pressure)
    shown = Flow(
        pauses_ps=pressure.pauses_ps,
        asked_share=share,
        held_share=0.0 if tripped else share,
        watchdog_drops_ps=bytes_ps / PACKET_BYTES * share if tripped else 0.0,
        queue_fill=0.0 if tripped else pressure.queue_fill,
        headroom_fill=pressure.headroom_fill,
        priority=receiver.data_priority,
        has_tripped=tripped,
    )
    return _moving(shown, bytes_ps * (1 - share))


def _unheeded(bytes_ps: float, sender: Side, receiver: Side, pressure: Pressure) -> Flow:
    """Return the flow where at most one end has PFC for the data: congestion loses what PFC would have held."""
    share = min(pressure.share, 1.0)
    asks = receiver.is_lossless
    lost_ps = bytes_ps / PACKET_BYTES * share if asks or sender.is_lossless else 0.0
    shown = Flow(
        pauses_ps=pressure.pauses_ps * IGNORED_REPEATS if asks else 0.0,
        asked_share=share if asks else 0.0,
        drops_ps=lost_ps,
        lossy_drops_ps=0.0 if asks else lost_ps,
        queue_fill=pressure.queue_fill,
        headroom_fill=1.0 if asks else 0.0,
        priority=receiver.data_priority,
    )
    return _moving(shown, bytes_ps)


def _moving(shown: Flow, bytes_ps: float) -> Flow:
    packets_ps = bytes_ps / PACKET_BYTES
    return replace(shown, packets_ps=packets_ps, bytes_ps=bytes_ps)

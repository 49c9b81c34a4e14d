"""What the storms that rage do to every way they reach, given who has PFC and a watchdog on."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from netkit.design.fabric import Fabric, Host
from netkit.lab.faults.fault import Fault
from netkit.lab.model.flow import Pressure, has_tripped
from netkit.lab.model.side import Side
from netkit.lab.model.storm import Hop, Spread
from netkit.lab.model.wiring import End, Way, Wiring

STORMS = frozenset({"pause-storm", "watchdog-trip"})
RATE_LEFT = 0.8
SHARE_LEFT = 0.7
"""What is left of the pauses, and of the time they take, one hop further from the origin."""
HEADROOM_IN_STORM = 0.6
ENDLESS_MS = 1e9
INCAST_BURST_MS = 20.0
INCAST = Pressure(2000.0, 0.5, 1.0, HEADROOM_IN_STORM, INCAST_BURST_MS)
SideOf = Callable[[End], Side | None]


@dataclass
class Weather:
    """The pressure on every way a storm reaches."""

    fabric: Fabric
    wiring: Wiring
    side_of: SideOf
    _spreads: dict[End, tuple[Hop, ...]] = field(default_factory=dict)

    def under(self, active: Iterable[Fault], crowded: Iterable[End] = ()) -> Mapping[int, Pressure]:
        """Return the pressure by way for the storms among the active faults, and where many send to one NIC."""
        found: dict[int, Pressure] = {}
        storms = [self._of(fault) for fault in active if fault.name in STORMS]
        for way, pressure in chain(*storms, *(self._of_incast(self.wiring.peer(target)) for target in crowded)):
            found[way.index] = merged(found.get(way.index), pressure)
        return found

    def _of_incast(self, egress: End) -> Iterator[tuple[Way, Pressure]]:
        """Yield what no mark slows down: it piles up at the egress until pauses hold it."""
        side = self.side_of(egress)
        if side is None or side.is_marking or not side.is_lossless:
            return
        yield self.wiring.way_out[egress], Pressure(queue_fill=1.0)
        yield from self._upstream(egress, INCAST)

    def _of(self, fault: Fault) -> Iterator[tuple[Way, Pressure]]:
        end = End(fault.device, fault.port)
        is_endless = fault.name == "watchdog-trip"
        burst_ms = ENDLESS_MS if is_endless else fault.number("burst_ms")
        share = 1.0 if is_endless else fault.number("share")
        asked = Pressure(fault.number("pauses_per_s"), share, 1.0, HEADROOM_IN_STORM, burst_ms)
        is_host = isinstance(self.fabric.device(end.device), Host)
        egress = self.wiring.peer(end) if is_host else end
        way = self.wiring.way_out[egress]
        if is_host or is_endless:
            yield way, asked
            if not self._is_held(way, asked):
                return
        else:
            yield way, Pressure(queue_fill=1.0)
        yield from self._upstream(egress, asked)

    def _upstream(self, egress: End, asked: Pressure) -> Iterator[tuple[Way, Pressure]]:
        congested = {egress.device}
        for hop in self._hops(egress):
            if hop.way.receiver.device not in congested:
                continue
            pressure = _weaker(asked, hop.depth + 1)
            yield hop.way, pressure
            if self._is_held(hop.way, pressure):
                congested.add(hop.way.sender.device)

    def _is_held(self, way: Way, pressure: Pressure) -> bool:
        """Whether the sender stands still, so that what it was to send piles up there."""
        sender, receiver = self.side_of(way.sender), self.side_of(way.receiver)
        if sender is None or receiver is None or not (sender.is_enabled and receiver.is_enabled):
            return False
        return receiver.is_lossless and sender.heeds(receiver) and not has_tripped(sender, pressure)

    def _hops(self, egress: End) -> tuple[Hop, ...]:
        if egress not in self._spreads:
            self._spreads[egress] = Spread(self.fabric, self.wiring, egress).hops
        return self._spreads[egress]


def _weaker(pressure: Pressure, hops: int) -> Pressure:
    left = SHARE_LEFT**hops
    return replace(
        pressure,
        pauses_ps=pressure.pauses_ps * RATE_LEFT**hops,
        share=pressure.share * left,
        queue_fill=pressure.queue_fill * left,
        burst_ms=pressure.burst_ms * left,
    )


def merged(one: Pressure | None, other: Pressure) -> Pressure:
    """Return the greater of two pressures on one way."""
    if one is None:
        return other
    return Pressure(
        max(one.pauses_ps, other.pauses_ps),
        max(one.share, other.share),
        max(one.queue_fill, other.queue_fill),
        max(one.headroom_fill, other.headroom_fill),
        max(one.burst_ms, other.burst_ms),
    )

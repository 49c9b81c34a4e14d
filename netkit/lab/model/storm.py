"""Pause storms: how one spreads against the data, what it does to each link, and when a watchdog steps in."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from netkit.design.fabric import Fabric, Host, Port, Switch
from netkit.lab.faults.fault import InjectedFault
from netkit.lab.model.counters import Pressure, has_tripped
from netkit.lab.model.wiring import CableDirection, FabricWiring, LinkEnd, LinkSide, draw
from netkit.lab.state import WatchdogState

LEAVES_DRAWN_IN = 2
SENDERS_PER_LEAF = 2


class Hop(NamedTuple):
    """A paused direction, and how many hops its receiver is from the origin."""

    direction: CableDirection
    depth: int


class _Step(NamedTuple):
    device: str
    is_downward: bool
    """Whether the data leaves this switch towards hosts, so that it may have come from above."""


@dataclass(frozen=True)
class Spread:
    """A storm whose data leaves through one egress port of a switch."""

    fabric: Fabric
    wiring: FabricWiring
    egress: LinkEnd

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """Every direction a storm may reach, nearest first; whether it does depends on PFC along the path."""
        steps = self._steps()
        found = [
            Hop(self.wiring.incoming(LinkEnd(step.device, port.name)), depth)
            for step, depth in steps.items()
            for port in self._ingress(step)
            if (port.peer, port.peer_port) in self._senders
            or steps.get(_Step(port.peer, port.role == "up")) == depth + 1
        ]
        # Keep the hops that lead back to a sender: nothing else holds data for the origin.
        on_path: set[str] = set()
        kept = []
        for hop in sorted(found, key=lambda hop: -hop.depth):
            sender = hop.direction.sender
            if sender.device in on_path or (sender.device, sender.port) in self._senders:
                on_path.add(hop.direction.receiver.device)
                kept.append(hop)
        return tuple(sorted(kept, key=lambda hop: (hop.depth, hop.direction.index)))

    def _steps(self) -> dict[_Step, int]:
        """Which switches the data may cross, and how many hops before the egress."""
        first = _Step(self.egress.device, self._port(self.egress).role != "up")
        steps, seen, queue = {first: 0}, {first.device}, [first]
        while queue:
            reached = {
                _Step(port.peer, port.role == "up"): steps[step] + 1
                for step in queue
                for port in self._ingress(step)
                if port.role != "host" and port.peer not in seen
            }
            steps.update(reached)
            seen.update(step.device for step in reached)
            queue = list(reached)
        return steps

    def _ingress(self, step: _Step) -> Iterator[Port]:
        """Yield the ports data may enter by on its path through a switch."""
        target = self._port(self.egress).peer if step.device == self.egress.device else ""
        for port in self.fabric.switch(step.device).ports:
            if port.peer != target and (step.is_downward or port.role != "up"):
                yield port

    @cached_property
    def _senders(self) -> frozenset[tuple[str, str]]:
        """The sending NICs: some on the origin's own leaf, some on leaves of its rail, or of any."""
        own = self.fabric.switch(self.egress.device)
        target = self._port(self.egress).peer
        reachable = {step.device for step in self._steps()} - {target}
        leaves = [leaf for leaf in self.fabric.tier("leaf") if leaf.name in reachable and leaf is not own]
        rail = self._rail(own, target)
        same_rail = [leaf for leaf in leaves if rail < 0 or rail in self._rails(leaf)]
        if not same_rail and self.fabric.cross_rail == "routed":
            same_rail = leaves
        same_rail.sort(key=lambda leaf: draw("drawn-in", str(self.egress), leaf.name))
        chosen = ([own] if own.role == "leaf" else []) + same_rail[:LEAVES_DRAWN_IN]
        return frozenset(sender for leaf in chosen for sender in self._senders_at(leaf, rail))

    def _senders_at(self, leaf: Switch, rail: int) -> list[tuple[str, str]]:
        own = {(self.egress.device, self.egress.port)}
        ports = [port for port in leaf.host_ports if (leaf.name, port.name) not in own]
        nics = {(port.peer, port.peer_port): self._rail_of(port) for port in ports}
        names = sorted(nics, key=lambda nic: (nics[nic] != rail, draw("sender", str(self.egress), *nic)))
        return names[:SENDERS_PER_LEAF]

    def _rails(self, leaf: Switch) -> set[int]:
        return {self._rail_of(port) for port in leaf.host_ports}

    def _rail(self, own: Switch, target: str) -> int:
        """The rail the data is for, or -1 if it is for several."""
        port = self._port(self.egress)
        if port.role == "host":
            return self._rail_of(port)
        rails = self._rails(own) if own.role == "leaf" else set()
        device = self.fabric.device(target)
        if isinstance(device, Switch) and device.role == "leaf":
            rails = self._rails(device)
        return rails.pop() if len(rails) == 1 else -1

    def _rail_of(self, port: Port) -> int:
        host = self.fabric.device(port.peer)
        nics = host.nics if isinstance(host, Host) else ()
        return next((nic.rail for nic in nics if nic.interface == port.peer_port), -1)

    def _port(self, end: LinkEnd) -> Port:
        return next(port for port in self.fabric.switch(end.device).ports if port.name == end.port)


STORMS = frozenset({"pause-storm", "watchdog-trip"})
RATE_LEFT = 0.8
SHARE_LEFT = 0.7
"""The remaining share of the pauses, and of their duration, one hop further from the origin."""
HEADROOM_IN_STORM = 0.6
ENDLESS_MS = 1e9
INCAST_BURST_MS = 20.0
INCAST = Pressure(2000.0, 0.5, 1.0, HEADROOM_IN_STORM, INCAST_BURST_MS)
SideOf = Callable[[LinkEnd], LinkSide | None]


@dataclass
class Weather:
    """The pressure on every direction a storm reaches."""

    fabric: Fabric
    wiring: FabricWiring
    side_of: SideOf
    _spreads: dict[LinkEnd, tuple[Hop, ...]] = field(default_factory=dict)

    def under(self, active: Iterable[InjectedFault], crowded: Iterable[LinkEnd] = ()) -> Mapping[int, Pressure]:
        """The pressure by direction, from the storms among the active faults and from incasts."""
        found: dict[int, Pressure] = {}
        storms = [self._of(fault) for fault in active if fault.name in STORMS]
        for direction, pressure in chain(*storms, *(self._of_incast(self.wiring.peer(target)) for target in crowded)):
            found[direction.index] = merged(found.get(direction.index), pressure)
        return found

    def _of_incast(self, egress: LinkEnd) -> Iterator[tuple[CableDirection, Pressure]]:
        """Yield the pressure of an incast that no ECN mark slows: the egress fills until pauses hold it."""
        side = self.side_of(egress)
        if side is None or side.is_marking or not side.is_lossless:
            return
        yield self.wiring.outgoing[egress], Pressure(queue_fill=1.0)
        yield from self._upstream(egress, INCAST)

    def _of(self, fault: InjectedFault) -> Iterator[tuple[CableDirection, Pressure]]:
        end = LinkEnd(fault.device, fault.port)
        is_endless = fault.name == "watchdog-trip"
        burst_ms = ENDLESS_MS if is_endless else fault.number("burst_ms")
        share = 1.0 if is_endless else fault.number("share")
        pressure = Pressure(fault.number("pauses_per_s"), share, 1.0, HEADROOM_IN_STORM, burst_ms)
        is_host = isinstance(self.fabric.device(end.device), Host)
        egress = self.wiring.peer(end) if is_host else end
        direction = self.wiring.outgoing[egress]
        if is_host or is_endless:
            yield direction, pressure
            if not self._is_held(direction, pressure):
                return
        else:
            yield direction, Pressure(queue_fill=1.0)
        yield from self._upstream(egress, pressure)

    def _upstream(self, egress: LinkEnd, origin: Pressure) -> Iterator[tuple[CableDirection, Pressure]]:
        congested = {egress.device}
        if egress not in self._spreads:
            self._spreads[egress] = Spread(self.fabric, self.wiring, egress).hops
        for hop in self._spreads[egress]:
            if hop.direction.receiver.device not in congested:
                continue
            pressure = _weaker(origin, hop.depth + 1)
            yield hop.direction, pressure
            if self._is_held(hop.direction, pressure):
                congested.add(hop.direction.sender.device)

    def _is_held(self, direction: CableDirection, pressure: Pressure) -> bool:
        """Whether the sender pauses, so that its own queue fills."""
        sender, receiver = self.side_of(direction.sender), self.side_of(direction.receiver)
        if sender is None or receiver is None or not (sender.is_enabled and receiver.is_enabled):
            return False
        return receiver.is_lossless and sender.respects(receiver) and not has_tripped(sender, pressure)


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
    """The greater of two pressures on one direction."""
    if one is None:
        return other
    return Pressure(
        max(one.pauses_ps, other.pauses_ps),
        max(one.share, other.share),
        max(one.queue_fill, other.queue_fill),
        max(one.headroom_fill, other.headroom_fill),
        max(one.burst_ms, other.burst_ms),
    )


MS = 1000


@dataclass
class QueueStorm:
    """One storm at one queue."""

    began_s: float
    times: WatchdogState
    ended_s: float | None = None

    def is_detected(self, now_s: float) -> bool:
        """Whether the storm has lasted the detection time."""
        detected_s = self.began_s + self.times.detection_ms / MS
        return detected_s <= (now_s if self.ended_s is None else min(now_s, self.ended_s))

    def is_restored(self, now_s: float) -> bool:
        """Whether the queue is lossless again."""
        ended_s = self.ended_s
        return ended_s is not None and self.is_detected(now_s) and ended_s + self.times.restoration_ms / MS <= now_s


@dataclass
class Watch:
    """All storms of one port."""

    trips: list[QueueStorm] = field(default_factory=list)

    def note(self, times: WatchdogState | None, now_s: float) -> None:
        """Record that a storm is active, with the watchdog's times, or that none is."""
        current = self.trips[-1] if self.trips and self.trips[-1].ended_s is None else None
        if times is None and current:
            current.ended_s = now_s
        elif times is not None and not current:
            self.trips.append(QueueStorm(now_s, times))

    def counts(self, now_s: float) -> tuple[int, int]:
        """How many storms were detected, and how many restored."""
        detected = sum(trip.is_detected(now_s) for trip in self.trips)
        return detected, sum(trip.is_restored(now_s) for trip in self.trips)

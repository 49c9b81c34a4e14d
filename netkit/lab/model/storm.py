"""How a pause storm spreads: from its origin against the direction of the data, switch by switch, up to the senders.

Only what leads from a few senders to the origin is drawn into it, as when a job meets one slow receiver.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from netkit.design.fabric import Fabric, Host, Port, Switch
from netkit.lab.model.seed import draw
from netkit.lab.model.wiring import End, Way, Wiring

LEAVES_DRAWN_IN = 2
SENDERS_PER_LEAF = 2


class Hop(NamedTuple):
    """A way that is paused, and how many hops its receiver is from the origin."""

    way: Way
    depth: int


class _Step(NamedTuple):
    device: str
    is_downward: bool
    """Whether the data leaves this switch downwards, so that it may have come from above."""


@dataclass(frozen=True)
class Spread:
    """The storm whose data leaves through one egress port of a switch."""

    fabric: Fabric
    wiring: Wiring
    egress: End

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """Return every way a storm may reach, nearest first; whether it does depends on who has PFC on."""
        steps = self._steps()
        found = [
            Hop(self.wiring.way_in(End(step.device, port.name)), depth)
            for step, depth in steps.items()
            for port in self._ingress(step)
            if (port.peer, port.peer_port) in self._senders
            or steps.get(_Step(port.peer, port.role == "up")) == depth + 1
        ]
        return tuple(sorted(self._leading(found), key=lambda hop: (hop.depth, hop.way.index)))

    def _leading(self, hops: list[Hop]) -> Iterator[Hop]:
        """Yield the hops that lead back to a sender: nothing else holds data for the origin."""
        useful: set[str] = set()
        for hop in sorted(hops, key=lambda hop: -hop.depth):
            sender = hop.way.sender
            if sender.device in useful or (sender.device, sender.port) in self._senders:
                useful.add(hop.way.receiver.device)
                yield hop

    def _steps(self) -> dict[_Step, int]:
        """Return which switches the data may cross, and how many hops before the egress."""
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
        """Yield the ports data may come in by on its way through a switch."""
        target = self._port(self.egress).peer if step.device == self.egress.device else ""
        for port in self.fabric.switch(step.device).ports:
            if port.peer != target and (step.is_downward or port.role != "up"):
                yield port

    @cached_property
    def _senders(self) -> frozenset[tuple[str, str]]:
        """Return the NICs that send: some on the origin's own leaf, some on leaves of its rail, or of any."""
        own = self.fabric.switch(self.egress.device)
        target = self._port(self.egress).peer
        reachable = {step.device for step in self._steps()} - {target}
        leaves = [leaf for leaf in self.fabric.tier("leaf") if leaf.name in reachable and leaf is not own]
        rail = self._rail(own, target)
        alike = [leaf for leaf in leaves if rail < 0 or rail in self._rails(leaf)]
        if not alike and self.fabric.cross_rail == "routed":
            alike = leaves
        alike.sort(key=lambda leaf: draw("drawn-in", str(self.egress), leaf.name))
        chosen = ([own] if own.role == "leaf" else []) + alike[:LEAVES_DRAWN_IN]
        return frozenset(sender for leaf in chosen for sender in self._some_of(leaf, rail))

    def _some_of(self, leaf: Switch, rail: int) -> list[tuple[str, str]]:
        own = {(self.egress.device, self.egress.port)}
        ports = [port for port in leaf.host_ports if (leaf.name, port.name) not in own]
        nics = {(port.peer, port.peer_port): self._rail_of(port) for port in ports}
        names = sorted(nics, key=lambda nic: (nics[nic] != rail, draw("sender", str(self.egress), *nic)))
        return names[:SENDERS_PER_LEAF]

    def _rails(self, leaf: Switch) -> set[int]:
        return {self._rail_of(port) for port in leaf.host_ports}

    def _rail(self, own: Switch, target: str) -> int:
        """Return the rail the data is for, or -1 when it is for several."""
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

    def _port(self, end: End) -> Port:
        return next(port for port in self.fabric.switch(end.device).ports if port.name == end.port)

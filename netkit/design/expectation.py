"""What a converged fabric looks like, from the design alone: who reaches which leaf prefix, over how many ports."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from netkit.design.fabric import Fabric, Switch


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one switch must have: sessions by port, and the number of ports in use for each leaf prefix."""

    sessions: Mapping[str, str]
    """Port → the device at the other end."""
    widths: Mapping[str, int]
    """Leaf prefix → next hops."""


class Reach:
    """Which leaf prefixes each switch of a fabric reaches, and through which of its ports."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self.below, self.beyond = cache(self._below), cache(self._beyond)

    def widths(self, switch: Switch) -> Mapping[str, int]:
        """Return the next hops of a switch for each prefix of other leaves."""
        own = switch.leaf_prefix if switch.role == "leaf" else None
        most = self._fabric.routing.max_paths
        return {prefix: min(self._ports(switch, prefix), most) for prefix in self.beyond(switch.name) if prefix != own}

    def _below(self, name: str) -> frozenset[str]:
        """Return the leaf prefixes a switch reaches by going down only, its own among them."""
        switch = self._fabric.switch(name)
        own = frozenset({switch.leaf_prefix} if switch.role == "leaf" and switch.leaf_prefix else ())
        return own.union(*(self.below(port.peer) for port in switch.fabric_ports if port.role == "down"))

    def _beyond(self, name: str) -> frozenset[str]:
        """Return what a switch reaches at all."""
        ups = (port.peer for port in self._fabric.switch(name).fabric_ports if port.role == "up")
        return self.below(name).union(*(self.beyond(peer) for peer in ups))

    def _ports(self, switch: Switch, prefix: str) -> int:
        """Return how many ports lead to a prefix: down at once where that is possible, else over whoever goes down."""
        for role, reached in (("down", self.below), ("up", self.below), ("up", self.beyond)):
            if found := sum(port.role == role and prefix in reached(port.peer) for port in switch.fabric_ports):
                return found
        return 0


def expectations(fabric: Fabric) -> Mapping[str, Expectation]:
    """Return what each switch must have once all is quiet. Drained switches lose their routes, so nothing is asked."""
    is_drained = any(switch.drain or switch.drain_neighbors for switch in fabric.switches)
    reach = Reach(fabric)
    return {
        switch.name: Expectation(
            {port.name: port.peer for port in switch.fabric_ports}, {} if is_drained else reach.widths(switch)
        )
        for switch in fabric.switches
    }

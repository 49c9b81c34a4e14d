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


def expectations(fabric: Fabric) -> Mapping[str, Expectation]:
    """Return what each switch must have once all is quiet. Drained switches lose their routes, so nothing is asked."""
    drained = {switch.name for switch in fabric.switches if switch.drain or switch.drain_neighbors}

    @cache
    def below(name: str) -> frozenset[str]:
        """Return the leaf prefixes a switch reaches by going down only, its own among them."""
        switch = fabric.switch(name)
        own = frozenset({switch.leaf_prefix} if switch.role == "leaf" and switch.leaf_prefix else ())
        return own.union(*(below(port.peer) for port in switch.fabric_ports if port.role == "down"))

    @cache
    def beyond(name: str) -> frozenset[str]:
        """Return what a switch reaches at all."""
        switch = fabric.switch(name)
        return below(name).union(*(beyond(port.peer) for port in switch.fabric_ports if port.role == "up"))

    def widths(switch: Switch) -> Mapping[str, int]:
        found = {}
        for prefix in beyond(switch.name):
            if prefix == switch.leaf_prefix and switch.role == "leaf":
                continue
            ports = [p for p in switch.fabric_ports if p.role == "down" and prefix in below(p.peer)]
            ports = ports or [p for p in switch.fabric_ports if p.role == "up" and prefix in below(p.peer)]
            ports = ports or [p for p in switch.fabric_ports if p.role == "up" and prefix in beyond(p.peer)]
            found[prefix] = min(len(ports), fabric.routing.max_paths)
        return found

    return {
        switch.name: Expectation(
            {port.name: port.peer for port in switch.fabric_ports}, {} if drained else widths(switch)
        )
        for switch in fabric.switches
    }

"""A converged fabric, from the design alone: which switch reaches which leaf prefix, over how many ports."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from netkit.design.fabric import Fabric, Switch


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one switch must have: sessions by port, and the number of next hops for each leaf prefix."""

    sessions: Mapping[str, str]
    """Port → the device at the other end."""
    widths: Mapping[str, int]
    """Leaf prefix → next hops."""


class LeafReach:
    """Which leaf prefixes each switch of a fabric reaches, and through which of its ports."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._prefixes = tuple(dict.fromkeys(leaf.leaf_prefix for leaf in fabric.tier("leaf") if leaf.leaf_prefix))
        self._same: dict[frozenset[str], frozenset[str]] = {}
        """Each set once: in a large fabric thousands of switches reach the same prefixes."""
        self.below, self.beyond = cache(self._below), cache(self._beyond)

    def widths(self, switch: Switch) -> Mapping[str, int]:
        """The number of next hops for each prefix of other leaves: straight down where possible, else up."""
        found: dict[str, int] = {}
        for role, reached in (("down", self.below), ("up", self.below), ("up", self.beyond)):
            ports = Counter(reached(port.peer) for port in switch.fabric_ports if port.role == role)
            counts: Counter[str] = Counter()
            for prefixes, count in ports.items():
                counts.update(dict.fromkeys(prefixes, count))
            found = {**counts, **found}
        own = switch.leaf_prefix if switch.role == "leaf" else None
        most = self._fabric.routing.max_paths
        return {prefix: min(found[prefix], most) for prefix in self._prefixes if prefix in found and prefix != own}

    def _below(self, name: str) -> frozenset[str]:
        """The leaf prefixes a switch reaches by going down only, including its own."""
        switch = self._fabric.switch(name)
        own = frozenset({switch.leaf_prefix} if switch.role == "leaf" and switch.leaf_prefix else ())
        return self._joined({own, *(self.below(port.peer) for port in switch.fabric_ports if port.role == "down")})

    def _beyond(self, name: str) -> frozenset[str]:
        """All leaf prefixes a switch reaches."""
        ups = (port.peer for port in self._fabric.switch(name).fabric_ports if port.role == "up")
        return self._joined({self.below(name), *(self.beyond(peer) for peer in ups)})

    def _joined(self, parts: Collection[frozenset[str]]) -> frozenset[str]:
        found = frozenset[str]().union(*parts)
        return self._same.setdefault(found, found)


class Expectations(Mapping[str, Expectation]):
    """What each switch must have once converged, computed when it is looked up."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric, self._reach = fabric, LeafReach(fabric)
        self._is_drained = has_drain(fabric)
        self._known: dict[str, Expectation] = {}

    def __getitem__(self, name: str) -> Expectation:
        found = self._known.get(name)
        if found is None:
            switch = self._fabric.switch(name)
            ports = {port.name: port.peer for port in switch.fabric_ports}
            widths = {} if self._is_drained else self._reach.widths(switch)
            found = self._known[name] = Expectation(ports, widths)
        return found

    def __iter__(self) -> Iterator[str]:
        return (switch.name for switch in self._fabric.switches)

    def __len__(self) -> int:
        return len(self._fabric.switches)


def expectations(fabric: Fabric) -> Mapping[str, Expectation]:
    """What each switch must have once converged; with a drain, no routes are expected."""
    return Expectations(fabric)


def has_drain(fabric: Fabric) -> bool:
    """Whether anything is drained."""
    return any(switch.drain or switch.drain_neighbors for switch in fabric.switches)


def ways(fabric: Fabric) -> Mapping[str, frozenset[str]]:
    """The leaves each leaf reaches, itself included, over what is not drained."""
    left = without_drains(fabric)
    reach = LeafReach(left)
    prefixes = {leaf.name: leaf.leaf_prefix for leaf in left.tier("leaf")}
    reached = {name: reach.beyond(name) for name in prefixes}
    return {
        name: frozenset({name, *(far for far, prefix in prefixes.items() if prefix in reached[name])})
        for name in prefixes
    }


def without_drains(fabric: Fabric) -> Fabric:
    """The fabric without drained ports, and so without any drain."""
    if not has_drain(fabric):
        return fabric
    drained = {switch.name for switch in fabric.switches if switch.drain}
    pairs = {frozenset({switch.name, peer}) for switch in fabric.switches for peer in switch.drain_neighbors}

    def is_left(switch: Switch, peer: str) -> bool:
        return drained.isdisjoint({switch.name, peer}) and frozenset({switch.name, peer}) not in pairs

    switches = []
    for switch in fabric.switches:
        ports = tuple(port for port in switch.ports if is_left(switch, port.peer))
        switches.append(replace(switch, ports=ports, drain=False, drain_neighbors=()))
    return replace(fabric, switches=tuple(switches))

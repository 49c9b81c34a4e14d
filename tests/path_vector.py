"""A miniature BGP, written independently of netkit's valley check: which routes does every switch accept?"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from netkit.design import Fabric

LEVEL = {"leaf": 0, "spine": 1, "core": 2}
OWN_AS_LIMIT = 3  # how often allowas-in accepts the own AS number, by default
Adjacency = frozenset[str]


@dataclass(frozen=True)
class Route:
    """A path to a leaf: the switches from the receiver on, and the AS path as received."""

    nodes: tuple[str, ...]
    as_path: tuple[int, ...]


class Network:
    """The sessions of a fabric. Parallel links count as one adjacency: they share cages, and so fail together."""

    def __init__(self, fabric: Fabric, down: Adjacency = frozenset()) -> None:
        self.fabric = fabric
        self.asn = {switch.name: switch.asn for switch in fabric.switches}
        self.level = {switch.name: LEVEL[switch.role] for switch in fabric.switches}
        self.peers: dict[str, list[str]] = {switch.name: [] for switch in fabric.switches}
        for session in fabric.sessions():
            if {session.device, session.peer} != down and session.peer not in self.peers[session.device]:
                self.peers[session.device].append(session.peer)

    def accepted(self, origin: str) -> dict[str, dict[str, Route]]:
        """For each switch and neighbor, the route to a leaf that the switch accepted after convergence."""
        held: dict[str, dict[str, Route]] = {name: {} for name in self.peers}
        for _ in range(4 * len(self.peers) + 8):
            news: dict[str, dict[str, Route]] = {name: {} for name in self.peers}
            for sender, peers in self.peers.items():
                best = Route((sender,), ()) if sender == origin else self.best(held[sender])
                if best is None or (sender != origin and not self.passes_on(sender)):
                    continue
                for peer in peers:
                    if len(best.nodes) > 1 and best.nodes[1] == peer:
                        continue
                    route = Route((peer, *best.nodes), (self.asn[sender], *best.as_path))
                    if peer != origin and self.takes(peer, route):
                        news[peer][sender] = route
            if news == held:
                return held
            held = news
        raise AssertionError("BGP did not converge")

    def best(self, routes: Mapping[str, Route]) -> Route | None:
        """The route a switch uses and advertises."""
        return min(routes.values(), key=lambda route: (len(route.as_path), route.nodes), default=None)

    def passes_on(self, name: str) -> bool:
        """Whether a switch advertises what others advertised to it."""
        return self.level[name] > 0 or self.fabric.routing.leaf_exports_all

    def takes(self, name: str, route: Route) -> bool:
        """Whether a switch accepts a route: its own AS number may appear only a limited number of times."""
        return route.as_path.count(self.asn[name]) <= (OWN_AS_LIMIT if self.fabric.routing.allowas_in else 0)

    def valleys(self, route: Route) -> Iterator[str]:
        """Yield the switches at which a path turns from down to up again."""
        for left, middle, right in zip(route.nodes, route.nodes[1:], route.nodes[2:], strict=False):
            if self.level[left] > self.level[middle] < self.level[right]:
                yield middle


def leaves(fabric: Fabric) -> list[str]:
    return [leaf.name for leaf in fabric.tier("leaf")]


def adjacencies(fabric: Fabric) -> list[Adjacency]:
    """Every pair of switches that are cabled to each other."""
    return sorted({frozenset((session.device, session.peer)) for session in fabric.sessions()}, key=sorted)


def valley_switches(fabric: Fabric) -> set[str]:
    """The switches at which some accepted path turns up again, with all links up or any one down."""
    found: set[str] = set()
    for down in (frozenset[str](), *adjacencies(fabric)):
        network = Network(fabric, down)
        for origin in leaves(fabric):
            for routes in network.accepted(origin).values():
                for route in routes.values():
                    found.update(network.valleys(route))
    return found


def unreached(fabric: Fabric, down: Adjacency = frozenset()) -> set[tuple[str, str]]:
    """The pairs of leaves between which there is no route."""
    network = Network(fabric, down)
    return {
        (name, origin)
        for origin in leaves(fabric)
        for name, routes in network.accepted(origin).items()
        if name in leaves(fabric) and name != origin and not routes
    }


def with_policy(fabric: Fabric, *, leaf_exports_all: bool, allowas_in: bool, asns: Mapping[str, int]) -> Fabric:
    """The fabric under another routing policy, without validation."""
    routing = replace(fabric.routing, leaf_exports_all=leaf_exports_all, allowas_in=allowas_in)
    switches = tuple(
        replace(
            switch,
            asn=asns.get(switch.name, switch.asn),
            ports=tuple(replace(port, peer_asn=asns.get(port.peer, port.peer_asn)) for port in switch.ports),
        )
        for switch in fabric.switches
    )
    return replace(fabric, routing=routing, switches=switches)

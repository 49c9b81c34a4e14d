"""FRR's routing, decided: what plain Linux and SONiC's frr.conf share, with `templates/frr/routing.j2` as its text."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Switch
from netkit.design.policy import PrefixList, announced, prefix_lists
from netkit.platforms.frr.dialects import FrrDialect

PEER_TIERS = {
    ("leaf", "up"): "SPINES",
    ("spine", "down"): "LEAVES",
    ("spine", "up"): "CORES",
    ("core", "down"): "SPINES",
}


@dataclass(frozen=True, slots=True)
class RouteMap:
    """A route map that lets one prefix list pass; all else is dropped."""

    name: str
    prefix_list: str
    communities: tuple[str, ...] = ()
    local_preference: int | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The route maps between us and a group of neighbours, or one interface that differs from its group."""

    name: str
    inbound: str
    outbound: str


@dataclass(frozen=True, slots=True)
class FrrNeighbor:
    """A BGP neighbour on an unnumbered port."""

    interface: str
    group: str
    asn: int
    description: str


@dataclass(frozen=True, slots=True)
class FrrRouting:
    """What routing needs beside the design. A switch without fabric ports has no BGP, and all parts are empty."""

    prefix_lists: tuple[PrefixList, ...] = ()
    route_maps: tuple[RouteMap, ...] = ()
    groups: tuple[Policy, ...] = ()
    neighbors: tuple[FrrNeighbor, ...] = ()
    drained_interfaces: tuple[str, ...] = ()
    neighbor_policies: tuple[Policy, ...] = ()


def routing(fabric: Fabric, switch: Switch, dialect: FrrDialect) -> FrrRouting:
    """Return the routing of a switch as FRR needs it, neighbours in FRR's own order: by group, then by port."""
    roles = sorted({port.role for port in switch.fabric_ports}, key=lambda role: PEER_TIERS[switch.role, role])
    if not roles:
        return FrrRouting()
    tiers: dict[str, str] = {role: PEER_TIERS[switch.role, role] for role in roles}
    ports = [port for role in roles for port in switch.fabric_ports if port.role == role]
    drained = [port for port in ports if port.peer in switch.drain_neighbors]
    by_route_map = drained if dialect.neighbor_drain == "route-map" else []
    by_command = drained if dialect.neighbor_drain == "command" else []
    return FrrRouting(
        prefix_lists=tuple(prefix_lists(fabric, switch)),
        route_maps=tuple(_route_maps(fabric, switch, tiers, frozenset(port.role for port in by_route_map))),
        groups=tuple(Policy(tier, f"FROM-{tier}", f"TO-{tier}") for tier in tiers.values()),
        neighbors=tuple(FrrNeighbor(port.name, tiers[port.role], port.peer_asn, port.description) for port in ports),
        drained_interfaces=tuple(port.name for port in by_command),
        neighbor_policies=tuple(
            Policy(port.name, f"FROM-{tiers[port.role]}-DRAINED", f"TO-{tiers[port.role]}-DRAINED")
            for port in by_route_map
        ),
    )


def _route_maps(fabric: Fabric, switch: Switch, tiers: dict[str, str], drained: frozenset[str]) -> Iterator[RouteMap]:
    """Yield what may pass: leaves announce only their own by default, spines and cores pass everything on."""
    outbound = announced(fabric, switch)
    yield RouteMap("CONNECTED", "CONNECTED")
    for role, tier in tiers.items():
        yield RouteMap(f"FROM-{tier}", "FABRIC")
        yield RouteMap(f"TO-{tier}", outbound)
        if role in drained:
            yield RouteMap(f"FROM-{tier}-DRAINED", "FABRIC", local_preference=0)
            yield RouteMap(f"TO-{tier}-DRAINED", outbound, communities=("graceful-shutdown", "additive"))

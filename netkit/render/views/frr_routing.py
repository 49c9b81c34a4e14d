"""FRR's routing, decided: what plain Linux and SONiC's frr.conf share, with `templates/frr/routing.j2` as its text."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Bfd, Fabric, Port, Switch
from netkit.design.policy import PrefixList, announced, prefix_lists
from netkit.platforms.frr.dialects import Dialect

BFD_PROFILE = "fabric"
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
    local_preferences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """A route map on the routes that come in or go out."""

    route_map: str
    direction: str


@dataclass(frozen=True, slots=True)
class PeerGroup:
    """The neighbours of one tier, and what passes between it and us."""

    name: str
    policies: tuple[Policy, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A BGP neighbour on an unnumbered port."""

    interface: str
    group: str
    asn: int
    description: str


@dataclass(frozen=True, slots=True)
class NeighborPolicy:
    """A policy of one neighbour that comes before that of its group."""

    interface: str
    policy: Policy


@dataclass(frozen=True, slots=True)
class Bgp:
    """The BGP instance."""

    asn: int
    router_id: str
    flags: tuple[str, ...]
    keepalive_s: int
    hold_s: int
    connect_s: int
    max_paths: int
    bfd_profile: str
    groups: tuple[PeerGroup, ...]
    neighbors: tuple[Neighbor, ...]
    drained_interfaces: tuple[str, ...]
    neighbor_policies: tuple[NeighborPolicy, ...]
    redistribute_map: str
    aggregates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BfdProfile:
    """Named BFD timers."""

    name: str
    timers: Bfd


@dataclass(frozen=True, slots=True)
class Routing:
    """All routing of a switch. A switch without fabric ports has none of it, and all parts are empty."""

    prefix_lists: tuple[PrefixList, ...] = ()
    route_maps: tuple[RouteMap, ...] = ()
    bfd_profiles: tuple[BfdProfile, ...] = ()
    instances: tuple[Bgp, ...] = ()


def routing(fabric: Fabric, switch: Switch, dialect: Dialect) -> Routing:
    """Return the routing of a switch as FRR needs it, neighbours in FRR's own order: by group, then by port."""
    roles = sorted({port.role for port in switch.fabric_ports}, key=lambda role: PEER_TIERS[switch.role, role])
    if not roles:
        return Routing()
    tiers: dict[str, str] = {role: PEER_TIERS[switch.role, role] for role in roles}
    ports = [port for role in roles for port in switch.fabric_ports if port.role == role]
    drained = [port for port in ports if port.peer in switch.drain_neighbors]
    by_route_map = drained if dialect.neighbor_drain == "route-map" else []
    by_command = drained if dialect.neighbor_drain == "command" else []
    return Routing(
        prefix_lists=tuple(prefix_lists(fabric, switch)),
        route_maps=tuple(_route_maps(fabric, switch, tiers, frozenset(port.role for port in by_route_map))),
        bfd_profiles=(BfdProfile(BFD_PROFILE, fabric.routing.bfd),),
        instances=(
            Bgp(
                asn=switch.asn,
                router_id=switch.loopback,
                flags=("graceful-shutdown",) if switch.drain else (),
                keepalive_s=fabric.routing.keepalive_s,
                hold_s=fabric.routing.hold_s,
                connect_s=fabric.routing.connect_s,
                max_paths=fabric.routing.max_paths,
                bfd_profile=BFD_PROFILE,
                groups=tuple(_groups(fabric, tiers)),
                neighbors=tuple(
                    Neighbor(port.name, tiers[port.role], port.peer_asn, port.description) for port in ports
                ),
                drained_interfaces=tuple(port.name for port in by_command),
                neighbor_policies=tuple(_drain_policies(by_route_map, tiers)),
                redistribute_map="CONNECTED",
                aggregates=switch.aggregates,
            ),
        ),
    )


def _groups(fabric: Fabric, tiers: dict[str, str]) -> Iterator[PeerGroup]:
    flags = ("allowas-in",) if fabric.routing.allowas_in else ()
    for tier in tiers.values():
        yield PeerGroup(tier, _policies(tier), flags)


def _drain_policies(ports: list[Port], tiers: dict[str, str]) -> Iterator[NeighborPolicy]:
    for port in ports:
        for policy in _policies(tiers[port.role], "-DRAINED"):
            yield NeighborPolicy(port.name, policy)


def _policies(tier: str, suffix: str = "") -> tuple[Policy, ...]:
    return Policy(f"FROM-{tier}{suffix}", "in"), Policy(f"TO-{tier}{suffix}", "out")


def _route_maps(fabric: Fabric, switch: Switch, tiers: dict[str, str], drained: frozenset[str]) -> Iterator[RouteMap]:
    """Yield what may pass: leaves announce only their own by default, spines and cores pass everything on."""
    outbound = announced(fabric, switch)
    yield RouteMap("CONNECTED", "CONNECTED")
    for role, tier in tiers.items():
        yield RouteMap(f"FROM-{tier}", "FABRIC")
        yield RouteMap(f"TO-{tier}", outbound)
        if role in drained:
            yield RouteMap(f"FROM-{tier}-DRAINED", "FABRIC", local_preferences=(0,))
            yield RouteMap(f"TO-{tier}-DRAINED", outbound, communities=("graceful-shutdown additive",))

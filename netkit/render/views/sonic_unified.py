"""SONiC in unified mode: routing as CONFIG_DB tables, which frrcfgd turns into FRR's configuration."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.design.fabric import Bfd
from netkit.errors import Problem, RenderError
from netkit.render.views import frr_routing
from netkit.render.views.json_rows import Rows, Table, rows, table

# CONFIG_DB has timers per BFD peer address only, and an unnumbered peer has none: FRR's own defaults apply.
FRR_BFD = Bfd(interval_ms=300, multiplier=3)


@dataclass(frozen=True, slots=True)
class PrefixRow:
    """One rule of a prefix set."""

    prefix_set: str
    number: int
    prefix: str
    lengths: str


@dataclass(frozen=True, slots=True)
class RouteMapRow:
    """The one statement of a route map."""

    name: str
    prefix_set: str
    communities: tuple[Rows[str], ...]
    local_preferences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """What passes between us and a group of neighbours, or one of them."""

    name: str
    inbound: str
    outbound: str


@dataclass(frozen=True, slots=True)
class Bgp:
    """The BGP instance as tables."""

    instance: frr_routing.Bgp
    drain: tuple[str, ...]
    prefix_sets: Rows[str]
    prefixes: Rows[PrefixRow]
    route_map_names: Rows[str]
    route_maps: Rows[RouteMapRow]
    groups: Rows[PolicyRow]
    allowas_in: tuple[str, ...]
    neighbors: Rows[frr_routing.Neighbor]
    neighbor_policies: Table[PolicyRow]
    aggregates: Table[str]


def bgp(routing: frr_routing.Routing) -> Iterator[Bgp]:
    """Yield the BGP instance of a switch; one without fabric ports has none."""
    for profile in routing.bfd_profiles:
        if profile.timers != FRR_BFD:
            raise RenderError(
                Problem(
                    "SONiC in unified mode cannot set BFD timers of unnumbered neighbours",
                    f"use {FRR_BFD.interval_ms} ms × {FRR_BFD.multiplier}, or routing_mode: split",
                    ("routing", "bfd"),
                )
            )
    for instance in routing.instances:
        yield Bgp(
            instance=instance,
            drain=tuple(flag for flag in instance.flags if flag == "graceful-shutdown"),
            prefix_sets=rows(found.name for found in routing.prefix_lists),
            prefixes=rows(_prefixes(routing)),
            route_map_names=rows(found.name for found in routing.route_maps),
            route_maps=rows(map(_route_map, routing.route_maps)),
            groups=rows(_policy(group.name, group.policies) for group in instance.groups),
            allowas_in=instance.groups[0].flags,
            neighbors=rows(instance.neighbors),
            neighbor_policies=table(_neighbor_policies(instance)),
            aggregates=table(instance.aggregates),
        )


def _prefixes(routing: frr_routing.Routing) -> Iterator[PrefixRow]:
    for found in routing.prefix_lists:
        for rule in found.rules:
            lengths = "exact" if rule.prefix.endswith(f"/{rule.length}") else f"{rule.length}..{rule.length}"
            yield PrefixRow(found.name, rule.number, rule.prefix, lengths)


def _route_map(found: frr_routing.RouteMap) -> RouteMapRow:
    words = " ".join(found.communities).split()
    return RouteMapRow(found.name, found.prefix_list, table(words), found.local_preferences)


def _neighbor_policies(instance: frr_routing.Bgp) -> Iterator[PolicyRow]:
    for interface in dict.fromkeys(one.interface for one in instance.neighbor_policies):
        policies = tuple(one.policy for one in instance.neighbor_policies if one.interface == interface)
        yield _policy(interface, policies)


def _policy(name: str, policies: tuple[frr_routing.Policy, ...]) -> PolicyRow:
    by_direction = {policy.direction: policy.route_map for policy in policies}
    return PolicyRow(name, by_direction["in"], by_direction["out"])

"""The routing model: its rules as data, sequences of states, and a comparison with a separate miniature BGP."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Interface, IPv4Network
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netkit.design import Fabric, Host
from netkit.design.hosts import RoutePlan
from netkit.platforms.routing import (
    Aggregate,
    BgpNeighbor,
    Clause,
    HostRail,
    HostRoute,
    HostRoutes,
    PrefixListEntry,
    Router,
    RouterRoute,
)
from netkit.routing import Cabling, Network, NetworkState
from netkit.routing.designed import host_of, router_of
from tests import intents as small
from tests.lanes import examples
from tests.path_vector import adjacencies, unreached
from tests.random_intents import Values, intents

MANY = settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
ALL = MappingProxyType({"ALL": (Clause(10, is_permit=True),)})
EVERYWHERE = IPv4Network("10.0.0.0/8")


def port(leaf: int, spine: int) -> str:
    """The name of a spine's port to a leaf, or of a leaf's to a spine."""
    return f"p{leaf}{spine}"


def leaf(number: int, **changes: Any) -> Router:
    """A leaf with one host, and two spines."""
    return replace(
        Router(
            asn=100 + number,
            router_id=f"10.9.0.{number}",
            addresses=(("h1", IPv4Interface(f"10.{number}.0.0/31")),),
            route_maps=ALL,
            neighbors=tuple(BgpNeighbor(port(number, spine), 200, "ALL", "ALL") for spine in (1, 2)),
            redistributed="ALL",
            max_paths=8,
        ),
        **changes,
    )


def spine(number: int, **changes: Any) -> Router:
    """A spine with three leaves."""
    neighbors = tuple(BgpNeighbor(port(one, number), 100 + one, "ALL", "ALL") for one in (1, 2, 3))
    return replace(
        Router(asn=200, router_id=f"10.9.1.{number}", route_maps=ALL, neighbors=neighbors, max_paths=8), **changes
    )


def host(number: int, *routes: HostRoute, **changes: Any) -> HostRoutes:
    """A host with one address, and a default route to its leaf."""
    address = IPv4Interface(f"10.{number}.0.1/31")
    found = routes or (HostRoute(EVERYWHERE, f"10.{number}.0.0"),)
    return HostRoutes((replace(HostRail("rail0", (address,), found), **changes),))


@dataclass
class Scene:
    """Three leaves, two spines and three hosts; some of them changed."""

    changed: Mapping[str, Router | HostRoutes] = field(default_factory=dict)
    state: NetworkState = field(default_factory=NetworkState)

    def devices(self) -> dict[str, Router | HostRoutes]:
        """The routing of every device."""
        found: dict[str, Router | HostRoutes] = {f"leaf{one}": leaf(one) for one in (1, 2, 3)}
        found |= {f"spine{one}": spine(one) for one in (1, 2)} | {f"host{one}": host(one) for one in (1, 2, 3)}
        return found | dict(self.changed)

    def network(self) -> Network:
        devices = self.devices()
        routers = {name: (one,) for name, one in devices.items() if isinstance(one, Router)}
        hosts = {name: (one,) for name, one in devices.items() if isinstance(one, HostRoutes)}
        return Network(cabling(), routers, hosts)

    def seen(self) -> tuple[set[str], dict[str, int]]:
        """The pairs that are connected, as `12` for host 1 to host 2, and the widths of the leaves."""
        network = self.network()
        outlook = network.outlook(self.state)
        names = [[nic.host.removeprefix("host") for nic in group.nics] for group in network.groups]
        sends = {
            one + other
            for index, row in enumerate(outlook.rows)
            for target in range(len(names))
            if row >> target & 1
            for one in names[index]
            for other in names[target]
            if one != other
        }
        return sends, dict(outlook.widths)


def cabling() -> Cabling:
    """The cables between three leaves and two spines, and to a host of each leaf."""
    ends: dict[tuple[str, str], tuple[str, str]] = {}
    for one in (1, 2, 3):
        for other in (1, 2):
            ends[f"leaf{one}", port(one, other)] = f"spine{other}", port(one, other)
        ends[f"host{one}", "rail0"] = f"leaf{one}", "h1"
    return Cabling(ends | {far: near for near, far in ends.items()})


EVERYONE = {"12", "13", "21", "23", "31", "32"}
WITHOUT_1 = {"23", "32"}


def listed(prefix: str, shortest: int, longest: int, **changes: Any) -> dict[str, Any]:
    """What a spine accepts when it filters inbound by one rule."""
    rule = PrefixListEntry(10, is_permit=True, prefix=IPv4Network(prefix), shortest=shortest, longest=longest)
    return {
        "prefix_lists": {"PL": (rule,)},
        "route_maps": {**ALL, "IN": (Clause(10, is_permit=True, prefix_lists=("PL",), **changes),)},
    }


def neighbors(router: Router, **changes: Any) -> Router:
    """A router with all of its neighbors changed."""
    return replace(router, neighbors=tuple(replace(one, **changes) for one in router.neighbors))


def first(router: Router, **changes: Any) -> Router:
    """A router with its first neighbor changed."""
    return replace(router, neighbors=(replace(router.neighbors[0], **changes), *router.neighbors[1:]))


def expecting(router: Router, *asns: int) -> Router:
    """A router that expects these AS numbers of its neighbors, one each."""
    sides = zip(router.neighbors, asns, strict=True)
    return replace(router, neighbors=tuple(replace(one, remote_asn=asn) for one, asn in sides))


PREFERRED = (Clause(10, is_permit=True, local_preference=200),)
AVOIDED = (Clause(10, is_permit=True, local_preference=0),)


def avoiding(router: Router) -> Router:
    """A router that accepts all but what its first neighbor announces as a last resort."""
    one, *others = router.neighbors
    return replace(
        router,
        route_maps={**ALL, "AVOIDED": AVOIDED},
        neighbors=(one, *(replace(each, inbound="AVOIDED") for each in others)),
    )


LEAVING = (Clause(10, is_permit=True, has_graceful_shutdown=True),)
NOT_LEAVING = (Clause(10, is_permit=False, matches_graceful_shutdown=True), Clause(20, is_permit=True))
LOOPBACK_ONLY = (Clause(10, is_permit=True, interface="lo"),)
WIDER = IPv4Network("10.1.0.0/24")
EVERYTHING = Aggregate(EVERYWHERE, is_summary_only=False)
EVERYTHING_ALONE = Aggregate(EVERYWHERE, is_summary_only=True)
ONLY_EVERYTHING = listed("10.0.0.0/8", 8, 8)
SUMMARY_1 = Aggregate(IPv4Network("10.1.0.0/24"), is_summary_only=True)
CASES: dict[str, tuple[Scene, set[str], dict[str, int]]] = {
    "whole": (Scene(), EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2}),
    "a spine's session down": (
        Scene(state=NetworkState(down=frozenset({("leaf1", "p11")}))), EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "all sessions of a leaf down, as its spines have it": (
        Scene(state=NetworkState(down=frozenset({("spine1", "p11"), ("spine2", "p12")}))),
        WITHOUT_1, {"leaf1": 0, "leaf2": 2, "leaf3": 2},
    ),
    "wrong AS number at one end": (
        Scene({"leaf1": neighbors(leaf(1), remote_asn=201)}), WITHOUT_1, {"leaf1": 0, "leaf2": 2, "leaf3": 2},
    ),
    "an AS number the spines do not expect": (
        Scene({"leaf1": leaf(1, asn=150)}), WITHOUT_1, {"leaf1": 0, "leaf2": 2, "leaf3": 2},
    ),
    "any other AS": (
        Scene({"leaf1": neighbors(leaf(1), remote_asn=0)}), EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "not activated": (
        Scene({"spine1": neighbors(spine(1), is_active=False)}), EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "interface shut down": (
        Scene({"leaf1": leaf(1, down=frozenset({"p11"}))}), EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "one speed at both ends of a link": (
        Scene({"leaf1": leaf(1, speeds={"p11": 400}), "spine1": spine(1, speeds={"p11": 400, "p12": 800})}),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "another speed at the other end of a link": (
        Scene({"leaf1": leaf(1, speeds={"p11": 400}), "spine1": spine(1, speeds={"p11": 800})}),
        EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "host port shut down": (
        Scene({"leaf1": leaf(1, down=frozenset({"h1"}))}), WITHOUT_1, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "no filter where a policy is required denies": (
        Scene({"leaf1": neighbors(leaf(1), inbound="")}),
        WITHOUT_1 | {"21", "31"}, {"leaf1": 0, "leaf2": 2, "leaf3": 2},
    ),
    "no filter where none is required permits": (
        Scene({"leaf1": neighbors(leaf(1, requires_policy=False), inbound="")}),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a filter that is not there denies": (
        Scene({"leaf1": neighbors(leaf(1), outbound="GONE")}),
        WITHOUT_1 | {"12", "13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a filter for a length that is not announced": (
        Scene({
            "spine1": neighbors(spine(1, **listed("10.0.0.0/8", 30, 30)), inbound="IN"),
            "spine2": neighbors(spine(2, **listed("10.0.0.0/8", 30, 30)), inbound="IN"),
        }),
        set(), {"leaf1": 0, "leaf2": 0, "leaf3": 0},
    ),
    "nothing is redistributed": (
        Scene({"leaf1": leaf(1, redistributed=None)}),
        WITHOUT_1 | {"12", "13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a network instead": (
        Scene({"leaf1": leaf(1, redistributed=None, networks=(IPv4Network("10.1.0.0/31"),))}),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a network with a static route": (
        Scene({
            "leaf1": leaf(1, redistributed=None, networks=(WIDER,), static=(RouterRoute(WIDER),)),
        }),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a network without a route": (
        Scene({"leaf1": leaf(1, redistributed=None, networks=(WIDER,))}),
        WITHOUT_1 | {"12", "13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "only what is connected to another interface": (
        Scene({"leaf1": leaf(1, route_maps={**ALL, "OWN": LOOPBACK_ONLY}, redistributed="OWN")}),
        WITHOUT_1 | {"12", "13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a static route": (
        Scene({"leaf1": leaf(1, static=(RouterRoute(IPv4Network("10.2.0.0/31")),))}),
        EVERYONE - {"12"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a static route after those of BGP": (
        Scene({"leaf1": leaf(1, static=(RouterRoute(IPv4Network("10.2.0.0/31"), is_floating=True),))}),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "the same AS number at two leaves": (
        Scene({
            "leaf2": leaf(2, asn=101),
            "spine1": replace(spine(1), neighbors=tuple(replace(one, remote_asn=0) for one in spine(1).neighbors)),
            "spine2": replace(spine(2), neighbors=tuple(replace(one, remote_asn=0) for one in spine(2).neighbors)),
        }),
        EVERYONE - {"12", "21"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "the same AS number, and taken even so": (
        Scene({
            "leaf1": neighbors(leaf(1), allowas_in=1),
            "leaf2": neighbors(leaf(2, asn=101), allowas_in=1),
            "spine1": neighbors(spine(1), remote_asn=0),
            "spine2": neighbors(spine(2), remote_asn=0),
        }),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a drained spine is the last resort": (
        Scene({"spine1": spine(1, is_drained=True)}), EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "drained for the moment": (
        Scene(state=NetworkState(drained=frozenset({"spine1"}))), EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "a preference does not outweigh a drained spine": (
        Scene({
            "spine1": spine(1, is_drained=True),
            "leaf1": neighbors(leaf(1, route_maps={**ALL, "IN": PREFERRED}), inbound="IN"),
        }),
        EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "routes that a leaf marks as leaving are its last resort": (
        Scene({"leaf1": first(leaf(1, route_maps={**ALL, "IN": LEAVING}), inbound="IN")}),
        EVERYONE, {"leaf1": 1, "leaf2": 2, "leaf3": 2},
    ),
    "what a drained session brings is passed on as leaving": (
        Scene({
            "spine1": first(spine(1), is_drained=True),
            "spine2": first(spine(2), is_drained=True),
            "leaf2": neighbors(leaf(2, route_maps={**ALL, "IN": NOT_LEAVING}), inbound="IN"),
        }),
        EVERYONE - {"21"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "two drained spines still carry": (
        Scene(state=NetworkState(drained=frozenset({"spine1", "spine2"}))),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a single path is configured": (
        Scene({"leaf1": leaf(1, max_paths=1)}), EVERYONE, {"leaf1": 1, "leaf2": 2, "leaf3": 2},
    ),
    "equal paths over neighbors with different AS numbers, without multipath-relax": (
        Scene({
            "leaf1": neighbors(leaf(1, needs_same_path=True), remote_asn=0),
            **{f"leaf{one}": neighbors(leaf(one), remote_asn=0) for one in (2, 3)},
            "spine2": spine(2, asn=201),
        }),
        EVERYONE, {"leaf1": 1, "leaf2": 2, "leaf3": 2},
    ),
    "equal paths over neighbors with one AS number, without multipath-relax": (
        Scene({"leaf1": leaf(1, needs_same_path=True)}), EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "one of two equal paths drops": (
        Scene({"spine1": first(replace(spine(1), aggregates=(SUMMARY_1,)), inbound="GONE")}),
        EVERYONE, {"leaf1": 2, "leaf2": 1, "leaf3": 1},
    ),
    "a longer prefix wins, and leads nowhere": (
        Scene({
            "leaf1": leaf(1, aggregates=(SUMMARY_1,)),
            "leaf2": leaf(
                2,
                addresses=(
                    ("h1", IPv4Interface("10.2.0.0/31")), ("h2", IPv4Interface("10.1.0.0/30")),
                ),
            ),
        }),
        EVERYONE - {"21", "31"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a summary of the longer one": (
        Scene({"leaf1": leaf(1, aggregates=(SUMMARY_1,))}), EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a spine that announces a summary of what it receives": (
        Scene({"spine1": spine(1, aggregates=(EVERYTHING_ALONE,))}), EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "a spine that announces a summary beside it": (
        Scene({"spine1": spine(1, aggregates=(EVERYTHING,))}), EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a leaf that takes only summaries": (
        Scene({
            "spine1": spine(1, aggregates=(EVERYTHING,)),
            "spine2": spine(2, aggregates=(EVERYTHING,)),
            "leaf1": neighbors(leaf(1, **ONLY_EVERYTHING), inbound="IN"),
        }),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a leaf that takes only the summary of a spine without one of its routes": (
        Scene({
            "spine1": spine(1, aggregates=(EVERYTHING,)),
            "spine2": spine(2, aggregates=(EVERYTHING,)),
            "leaf1": neighbors(leaf(1, **ONLY_EVERYTHING), inbound="IN"),
        }, NetworkState(down=frozenset({("leaf3", "p31")}))),
        EVERYONE - {"13"}, {"leaf1": 2, "leaf2": 1, "leaf3": 1},
    ),
    "a summary of nothing": (
        Scene({
            "spine1": spine(1, aggregates=(EVERYTHING,)),
            "spine2": spine(2),
            "leaf1": neighbors(leaf(1, **ONLY_EVERYTHING), inbound="IN"),
        }, NetworkState(down=frozenset({("leaf2", "p21"), ("leaf3", "p31"), ("leaf1", "p11")}))),
        WITHOUT_1 | {"21", "31"}, {"leaf1": 0, "leaf2": 1, "leaf3": 1},
    ),
    "spines of two AS that both avoid what two leaves pass on": (
        Scene({
            **{f"leaf{one}": expecting(leaf(one), 200, 201) for one in (1, 2, 3)},
            "spine1": avoiding(spine(1)), "spine2": avoiding(spine(2, asn=201)),
        }),
        EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "spines of two AS that both prefer what a leaf passes on": (
        Scene({
            **{f"leaf{one}": expecting(leaf(one), 200, 201) for one in (1, 2, 3)},
            "spine1": first(spine(1, route_maps={**ALL, "IN": PREFERRED}), inbound="IN"),
            "spine2": first(spine(2, asn=201, route_maps={**ALL, "IN": PREFERRED}), inbound="IN"),
        }),
        EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "a prepended path is not used": (
        Scene({
            "spine1": neighbors(
                spine(1, route_maps={**ALL, "OUT": (Clause(10, is_permit=True, prepends=1),)}), outbound="OUT"
            )
        }),
        EVERYONE, {"leaf1": 1, "leaf2": 1, "leaf3": 1},
    ),
    "a host without a route": (
        Scene({"host1": host(1, HostRoute(IPv4Network("10.2.0.0/16"), "10.1.0.0"))}),
        EVERYONE - {"13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a host that drops": (
        Scene({
            "host1": host(
                1, HostRoute(EVERYWHERE, "10.1.0.0"), HostRoute(IPv4Network("10.3.0.0/16"), is_unreachable=True)
            )
        }),
        EVERYONE - {"13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a host with a gateway that is not its leaf": (
        Scene({"host1": host(1, HostRoute(EVERYWHERE, "10.1.0.9"))}),
        EVERYONE - {"12", "13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a table for its source": (
        Scene({
            "host1": host(
                1, HostRoute(EVERYWHERE, "10.1.0.0", table=7), tables=((IPv4Network("10.1.0.1/32"), 7),)
            )
        }),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a table for another source": (
        Scene({
            "host1": host(
                1, HostRoute(EVERYWHERE, "10.1.0.0", table=7), tables=((IPv4Network("10.1.0.5/32"), 7),)
            )
        }),
        EVERYONE - {"12", "13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a source's table that drops what the main one sends": (
        Scene({
            "host1": host(
                1,
                HostRoute(EVERYWHERE, "10.1.0.0"),
                HostRoute(EVERYWHERE, table=7, is_unreachable=True),
                tables=((IPv4Network("10.1.0.1/32"), 7),),
            )
        }),
        EVERYONE - {"12", "13"}, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a port that is in a VLAN": (
        Scene({"leaf1": leaf(1, addresses=(("vlan9", IPv4Interface("10.1.0.0/31")),), members=(("h1", "vlan9"),))}),
        EVERYONE, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
    "a port that is in none": (
        Scene({"leaf1": leaf(1, addresses=(("vlan9", IPv4Interface("10.1.0.0/31")),))}),
        WITHOUT_1, {"leaf1": 2, "leaf2": 2, "leaf3": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_rules(case: str) -> None:
    scene, sends, widths = CASES[case]
    assert scene.seen() == (sends, widths)


def designed(fabric: Fabric) -> tuple[dict[str, Sequence[Router]], dict[str, Sequence[HostRoutes]]]:
    """The routing of every device of a fabric."""
    plan, plan_v6 = RoutePlan(fabric), RoutePlan(fabric, 6)
    return (
        {switch.name: (router_of(fabric, switch),) for switch in fabric.switches},
        {host.name: (host_of(plan, plan_v6, host),) for host in fabric.hosts},
    )


def test_hosts_of_one_vlan_reach_each_other_although_the_lengths_of_their_networks_differ() -> None:
    fabric = small.fabric(small.values({"attachment": "vlan"}))
    routers, hosts = designed(fabric)
    name = fabric.hosts[0].name
    longer = tuple(
        replace(
            rail,
            addresses=tuple(IPv4Interface(f"{one.ip}/{one.network.prefixlen - 1}") for one in rail.addresses),
            routes=tuple(
                replace(one, prefix=one.prefix.supernet()) if one.prefix == rail.addresses[0].network else one
                for one in rail.routes
            ),
        )
        for rail in hosts[name][0].rails
    )

    changed = {**hosts, name: (replace(hosts[name][0], rails=longer),)}
    assert sending(fabric, routers, changed) == sending(fabric, routers, hosts) != set()


def sending(
    fabric: Fabric, routers: Mapping[str, Sequence[Router]], hosts: Mapping[str, Sequence[HostRoutes]]
) -> set[tuple[str, str]]:
    """The pairs of NICs of which the first can send to the second."""
    network = Network(Cabling.of([fabric]), routers, hosts)
    outlook = network.outlook(NetworkState())
    names = [[f"{nic.host}:{nic.interface}" for nic in group.nics] for group in network.groups]
    return {
        (one, other)
        for row, near in zip(outlook.rows, names, strict=True)
        for index, far in enumerate(names)
        if row >> index & 1
        for one in near
        for other in far
        if one != other
    }


@pytest.mark.parametrize("place", [0, -1])
def test_a_host_route_to_one_address_takes_only_that_one(place: int) -> None:
    fabric = small.fabric(small.values({"host_routes": "supernet"}))
    routers, hosts = designed(fabric)
    far = fabric.hosts[place]
    near = next(host for host in fabric.hosts if host is not far)
    prefix = IPv4Network(f"{far.nics[0].address}/32")
    own, *_ = hosts[near.name]
    rails = tuple(
        replace(
            rail,
            routes=(*rail.routes, *(HostRoute(prefix, table=table, is_unreachable=True) for _, table in rail.tables)),
        )
        for rail in own.rails
    )
    found = sending(fabric, routers, {**hosts, near.name: (replace(own, rails=rails),)})
    assert sending(fabric, routers, hosts) - found == {
        (f"{near.name}:{nic.interface}", f"{far.name}:{far.nics[0].interface}") for nic in near.nics
    }


@pytest.mark.parametrize("place", [0, 1])
def test_a_static_route_takes_only_the_hosts_of_its_prefix_out_of_the_fabric(place: int) -> None:
    fabric = small.fabric(small.values())
    routers, hosts = designed(fabric)
    leaf, other = fabric.tier("leaf")[:2]
    port = leaf.host_ports[place]
    route = RouterRoute(IPv4Interface(port.address).network)
    routers[other.name] = (replace(routers[other.name][0], static=(route,)),)
    near = {f"{one.peer}:{one.peer_port}" for one in other.host_ports}
    whole = sending(fabric, *designed(fabric))
    gone = whole - sending(fabric, routers, hosts)
    assert gone == {pair for pair in whole if pair[0] in near and pair[1] == f"{port.peer}:{port.peer_port}"} != set()


def test_a_static_route_shorter_than_those_of_bgp_takes_nothing_out_of_the_fabric() -> None:
    fabric = small.fabric(small.values())
    routers, hosts = designed(fabric)
    routes = RouterRoute(IPv4Network("0.0.0.0/0")), RouterRoute(IPv4Network("10.128.0.0/16"))
    routers = {name: (replace(found[0], static=routes),) for name, found in routers.items()}
    assert sending(fabric, routers, hosts) == sending(fabric, *designed(fabric)) != set()


def reachable_leaves(network: Network, state: NetworkState) -> set[tuple[str, str]]:
    """The pairs of leaves whose hosts' packets arrive."""
    outlook = network.outlook(state)
    return {
        (network.groups[index].leaf, group.leaf)
        for index, row in enumerate(outlook.rows)
        for other, group in enumerate(network.groups)
        if row >> other & 1 and network.groups[index].leaf != group.leaf
    }


@MANY
@given(intents(("two-tier", "three-tier")))
def test_leaves_reach_each_other_as_in_a_miniature_bgp_with_every_link_down(values: Values) -> None:
    fabric = small.fabric(values)
    routers, hosts = designed(fabric)
    everywhere = {host.name: (open_host(host, hosts[host.name][0]),) for host in fabric.hosts}
    network = Network(Cabling.of([fabric]), routers, everywhere)
    used = {group.leaf for group in network.groups}
    pairs = {(one, other) for one in used for other in used if one != other}
    for down in (frozenset[str](), *adjacencies(fabric)):
        ends = {
            (link.device, link.port)
            for link in fabric.links()
            if link.kind != "host" and {link.device, link.peer} == down
        }
        dead = {pair for pair in unreached(fabric, down) if set(pair) <= used}
        found = reachable_leaves(network, NetworkState(down=frozenset(ends)))
        assert found == pairs - dead, (sorted(down), sorted(found ^ (pairs - dead)))


def open_host(host: Host, routes: HostRoutes) -> HostRoutes:
    """A host that sends everything to its leaves."""
    everything = IPv4Network("0.0.0.0/0")
    gateways = {nic.interface: nic.gateway for nic in host.nics}
    return replace(
        routes,
        rails=tuple(
            replace(
                rail,
                routes=tuple(HostRoute(everything, gateways[rail.interface], table) for _, table in rail.tables),
            )
            for rail in routes.rails
        ),
    )


CHOICES = st.lists(
    st.tuples(
        st.dictionaries(
            st.sampled_from(["leaf1", "leaf2", "leaf3", "spine1", "spine2", "host1", "host2"]), st.integers(0, 5)
        ),
        st.frozensets(
            st.sampled_from(sorted(end for end in cabling().ends if end[0].startswith(("leaf", "spine")))), max_size=3
        ),
        st.frozensets(st.sampled_from(["leaf1", "spine1", "spine2"])),
    ),
    min_size=2,
    max_size=12,
)


def variants() -> tuple[dict[str, Sequence[Router]], dict[str, Sequence[HostRoutes]]]:
    """The possible configurations of each device."""
    routers: dict[str, Sequence[Router]] = {
        f"leaf{one}": (
            leaf(one),
            leaf(one, aggregates=(Aggregate(IPv4Network(f"10.{one}.0.0/24"), is_summary_only=True),)),
            leaf(one, asn=101),
            leaf(one, redistributed=None),
        )
        for one in (1, 2, 3)
    }
    routers |= {
        f"spine{one}": (
            spine(one),
            neighbors(spine(one, **listed("10.0.0.0/8", 31, 31)), inbound="IN"),
            neighbors(spine(one), remote_asn=0, allowas_in=1),
            spine(one, is_drained=True),
            spine(one, aggregates=(EVERYTHING,)),
            spine(one, aggregates=(EVERYTHING_ALONE,)),
        )
        for one in (1, 2)
    }
    hosts: dict[str, Sequence[HostRoutes]] = {
        f"host{one}": (
            host(one),
            host(one, HostRoute(IPv4Network("10.2.0.0/16"), f"10.{one}.0.0")),
            HostRoutes(),
            host(one, HostRoute(EVERYWHERE, is_unreachable=True)),
        )
        for one in (1, 2, 3)
    }
    return routers, hosts


@pytest.mark.parametrize(
    ("before", "after", "versions"),
    [
        ({"redistributed": "ALL"}, {"redistributed": "OTHER"}, [4]),
        ({"redistributed": None, "networks": (EVERYWHERE,)}, {"redistributed": "ALL"}, [4]),
        ({"redistributed": "ALL"}, {"redistributed": None, "networks": (EVERYWHERE,)}, [4]),
        ({"redistributed": None}, {"redistributed": "ALL"}, []),
        ({"redistributed": "ALL"}, {"redistributed": "ALL", "networks": (EVERYWHERE,)}, []),
        ({"redistributed": None, "networks": (EVERYWHERE,)}, {"redistributed": "ALL", "networks": (EVERYWHERE,)}, []),
    ],
)
def test_prefixes_are_announced_anew_by_another_statement_alone(
    before: dict[str, Any], after: dict[str, Any], versions: list[int]
) -> None:
    routers, hosts = variants()
    network = Network(cabling(), {**routers, "leaf1": (leaf(1, **before), leaf(1, **after))}, hosts)
    assert list(network.announced_anew(NetworkState(), "leaf1", 1)) == versions


@MANY
@given(CHOICES)
def test_consecutive_states_equal_states_evaluated_alone(
    choices: list[tuple[dict[str, int], frozenset[tuple[str, str]], frozenset[str]]],
) -> None:
    routers, hosts = variants()
    network = Network(cabling(), routers, hosts)
    for phases, down, drained in choices:
        state = NetworkState(phases, down, drained)
        assert network.outlook(state) == Network(cabling(), routers, hosts).outlook(state)


def test_a_state_is_compared_with_the_one_before_as_that_was_when_asked_for() -> None:
    """The search for an order goes on with the same mapping."""
    routers, hosts = variants()
    network, phases = Network(cabling(), routers, hosts), dict[str, int]()
    for name in ("leaf1", "leaf2"):
        network.outlook(NetworkState(phases))
        phases[name] = 3
    assert network.outlook(NetworkState(phases)) == Network(cabling(), routers, hosts).outlook(NetworkState(phases))


CHANGES: tuple[Callable[[Router], Router], ...] = (
    lambda one: replace(one, neighbors=one.neighbors[1:], external=one.external[1:]),
    lambda one: replace(one, neighbors=one.neighbors[::-1], max_paths=2),
    lambda one: replace(one, prefix_lists={name: rules[1:] for name, rules in one.prefix_lists.items()}),
    lambda one: replace(
        one,
        route_maps={name: tuple(replace(each, prepends=1) for each in found) for name, found in one.route_maps.items()},
    ),
    lambda one: replace(one, aggregates=()),
    lambda one: replace(one, aggregates=(*one.aggregates, EVERYTHING)),
    lambda one: replace(one, aggregates=(*one.aggregates, EVERYTHING_ALONE)),
    lambda one: replace(one, redistributed=None),
    lambda one: replace(one, asn=one.asn + 1),
    lambda one: replace(one, is_drained=True),
    lambda one: replace(one, needs_same_path=True),
    lambda one: neighbors(one, remote_asn=0, allowas_in=1),
    lambda one: first(one, is_drained=True) if one.neighbors else one,
    lambda one: neighbors(replace(one, requires_policy=False), outbound=""),
)


def of_both_families(change: Callable[[Router], Router], router: Router) -> Router:
    return replace(change(router), v6=change(router.v6) if router.v6 else None)


@MANY
@given(values=intents(("two-tier", "three-tier")), data=st.data())
def test_consecutive_states_of_a_random_fabric_equal_states_evaluated_alone(
    values: Values, data: st.DataObject
) -> None:
    fabric = small.fabric(values)
    designs, hosts = designed(fabric)
    changed = data.draw(
        st.dictionaries(st.sampled_from(sorted(designs)), st.lists(st.sampled_from(CHANGES), max_size=3))
    )
    routers = {
        name: (found[0], *(of_both_families(change, found[0]) for change in changed.get(name, ())))
        for name, found in designs.items()
    }
    cabling, switches = Cabling.of([fabric]), st.sampled_from(sorted(routers))
    ends = st.sampled_from(sorted(end for end in cabling.ends if end[0] in routers))
    state = st.builds(
        NetworkState,
        st.dictionaries(switches, st.integers(0, 3)),
        st.frozensets(ends, max_size=3),
        st.frozensets(switches, max_size=2),
    )
    network = Network(cabling, routers, hosts)
    for one in data.draw(st.lists(state, min_size=2, max_size=6)):
        alone = Network(cabling, routers, hosts)
        assert network.outlook(one) == alone.outlook(one)
        assert network.paths(one, routers) == alone.paths(one, routers)


def test_the_order_of_parallel_sessions_decides_which_of_too_many_paths_is_used() -> None:
    """One of two sessions with a spine comes up in the state in which the other one ends."""
    tier = {"uplink_breakout": "2x400G", "uplinks_per_spine": 2}
    fabric = small.fabric(small.values({"switches": {"leaf": tier}}))
    routers, hosts = designed(fabric)
    name = fabric.tier("leaf")[0].name
    one, other, third, fourth = routers[name][0].neighbors
    routers[name] = (replace(routers[name][0], neighbors=(one, third, other, fourth), max_paths=1),)
    cabling = Cabling.of([fabric])
    network = Network(cabling, routers, hosts)
    used = []
    for side in (other, one):
        state = NetworkState(down=frozenset({cabling.ends[name, side.interface]}))
        used.append({hop for hop, _ in network.paths(state, [name])[0][name]})
        assert network.paths(state, [name]) == Network(cabling, routers, hosts).paths(state, [name])
    assert used == [{"spine01"}, {"spine02"}]

"""Switches outside every known design that have sessions with the fabric, such as those that a change removes.

A deploy does not know the fabric before, and a rollback brings back sessions with switches that nobody reads any more.
What is known of them is what their neighbors expect, and the NICs that no cable of a design leads to.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_interface

from netkit.design.fabric import Fabric
from netkit.plan.blast import words
from netkit.plan.model import DevicePlan
from netkit.platforms.routing import Aggregate, BgpNeighbor, HostRoutes, Router
from netkit.routing import Cabling
from netkit.routing.address import End

UNKNOWN_ASN, UNKNOWN_ASN_OF_LEAF = 4_294_967_294, 4_294_967_293
"""The AS of a switch whose neighbors accept any other AS: the last private ones."""
Versions = Mapping[str, Sequence[Router]]
"""What a switch runs, and what it should run."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The cables that no design has, and the switches at their ends that are in none."""

    cables: Mapping[End, End]
    routers: Mapping[str, Router]


def outside(
    fabrics: Sequence[Fabric], devices: Collection[DevicePlan], hosts: Mapping[str, Sequence[HostRoutes]]
) -> Outside:
    """What is outside these designs; their sessions with it end, or come back with a rollback.

    A switch passes on routes until its neighbors drop it. One that no leaf has a session with also announces what
    a leaf does, and is taken to have sessions with all others outside.
    """
    versions = {
        device.name: [one for one in (device.routing.running, device.routing.intended) if isinstance(one, Router)]
        for device in devices
        if device.routing is not None
    }
    cables = dict(_cables(fabrics, devices, versions))
    known = {switch.name for fabric in fabrics for switch in fabric.switches}
    leaves = {switch.name for fabric in fabrics for switch in fabric.tier("leaf")}
    ends: dict[str, dict[str, tuple[BgpNeighbor, Router]]] = defaultdict(dict)
    for (name, port), (peer, peer_port) in cables.items():
        if peer not in known:
            every = ((side, router) for router in versions[name] for side in router.sessions)
            ends[peer][peer_port] = next(one for one in every if one[0].interface == port)
    above = {peer for (name, _), (peer, _) in cables.items() if name in leaves and peer in ends}
    below = ends.keys() - above
    cables |= {(spine, leaf): (leaf, spine) for spine in above for leaf in below}
    routers = {name: _router(name, ends[name], below) for name in above}
    if below:
        leaf = _leaf(Cabling.of(fabrics, cables), hosts, [one for name in leaves for one in versions.get(name, ())])
        routers |= {name: _with_networks(_router(name, ends[name], above, UNKNOWN_ASN_OF_LEAF), leaf) for name in below}
    return Outside(cables, routers)


def _cables(fabrics: Sequence[Fabric], devices: Iterable[DevicePlan], versions: Versions) -> Iterator[tuple[End, End]]:
    """Yield the cables of sessions that no fabric has, by the ports' descriptions."""
    known = {switch.name for fabric in fabrics for switch in fabric.switches}
    ends = Cabling.of(fabrics).ends
    for device in devices:
        ending = (session.partition("–") for session in device.blast.sessions)
        found = [(near.removeprefix(f"{device.name}:"), far) for near, _, far in ending]
        for change in device.changes:
            if change.path[-1].endswith("description") and change.intended:
                found += [(word, change.intended) for word in words(change.path)]
        ports = {side.interface for router in versions.get(device.name, ()) for side in router.sessions}
        for port, far in found:
            peer, _, peer_port = far.partition(":")
            near, there = (device.name, port), (peer, peer_port)
            is_port = peer != device.name and bool(peer_port) and " " not in peer_port
            if port in ports and is_port and (peer not in known or ends.keys().isdisjoint({near, there})):
                yield near, there


def _router(
    name: str,
    sides: Mapping[str, tuple[BgpNeighbor, Router]],
    others: Iterable[str],
    unknown_asn: int = UNKNOWN_ASN,
) -> Router:
    """A switch by its port and the session and router at the other end, with sessions to others outside."""
    asn = max(side.remote_asn for side, _ in sides.values())
    neighbors = (
        # Where the other end expects one AS number, so does this one.
        *(
            BgpNeighbor(port, router.asn if side.remote_asn else 0, address=router.address_towards(side))
            for port, (side, router) in sides.items()
        ),
        *(BgpNeighbor(other, 0) for other in others),
    )
    addresses = tuple((port, ip_interface(side.address)) for port, (side, _) in sides.items() if side.address)
    found = Router(asn or unknown_asn, name, addresses, neighbors=neighbors, requires_policy=False)
    found = replace(found, max_paths=len(neighbors))
    return replace(found, v6=found)


def _with_networks(found: Router, leaf: Router) -> Router:
    """A switch that announces what a leaf does."""
    v4, v6 = (
        replace(one, addresses=one.addresses + more.addresses, aggregates=more.aggregates, redistributed="")
        for one, more in ((found, leaf), (found.v6 or found, leaf.v6 or leaf))
    )
    return replace(v4, v6=v6)


def _leaf(cabling: Cabling, hosts: Mapping[str, Sequence[HostRoutes]], leaves: Collection[Router]) -> Router:
    """What leaves outside the fabric may announce: the networks of the NICs that no known cable leads to."""
    every = [(name, one) for name, variants in hosts.items() for one in variants]
    v6 = _serving_uncabled(cabling, [(name, one.v6) for name, one in every if one.v6], [one.v6 for one in leaves])
    return replace(_serving_uncabled(cabling, every, leaves), v6=v6)


def _serving_uncabled(
    cabling: Cabling, hosts: Iterable[tuple[str, HostRoutes]], leaves: Iterable[Router | None]
) -> Router:
    """One address family of it; the summaries are taken to be as long as those of other leaves."""
    addresses = dict.fromkeys(
        (f"{name}:{rail.interface}", address)
        for name, routes in hosts
        for rail in routes.rails
        if (name, rail.interface) not in cabling.ends
        for address in rail.addresses
    )
    lengths = sorted({one.prefix.prefixlen for leaf in leaves if leaf for one in leaf.aggregates})
    networks = (address.network for _, address in addresses)
    summaries = dict.fromkeys(
        one.supernet(new_prefix=length) for one in networks for length in lengths if length < one.prefixlen
    )
    aggregates = tuple(Aggregate(one, is_summary_only=False) for one in summaries)
    return Router(addresses=tuple(addresses), aggregates=aggregates)

"""Routing policy as FRR applies it: what a router originates, and what a route map permits."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from netkit.platforms.routing import NO_MAP, Clause, IpAddress, IpNetwork, PrefixListEntry, Router, is_within

Prefix = tuple[int, int]
"""Network address and length, as integers: `ipaddress` is too slow for the inner loops.

IPv4 addresses are the first bits of as many as IPv6 has: a `Prefix` does not tell its family.
"""
ADDRESS_BITS = 128
PERMIT_ALL = (Clause(0, is_permit=True),)


def number_of(address: IpAddress) -> int:
    return int(address) << (ADDRESS_BITS - address.max_prefixlen)


def prefix_of(network: IpNetwork) -> Prefix:
    return number_of(network.network_address), network.prefixlen


def network_address(number: int, length: int) -> int:
    return number >> (ADDRESS_BITS - length) << (ADDRESS_BITS - length)


def originated(router: Router) -> Iterator[Prefix]:
    """Yield the prefixes a router originates into BGP."""
    connected: dict[IpNetwork, set[str]] = defaultdict(set)
    for interface, one in router.addresses:
        if interface not in router.down:
            connected[one.network].add(interface)
    announced = (connected.keys() | {route.prefix for route in router.installed_static()}) & set(router.networks)
    if router.redistributed is not None:
        clauses = clauses_of(router, router.redistributed) if router.redistributed else PERMIT_ALL
        announced |= {one for one in connected if _permits(clauses, router.prefix_lists, one, connected[one])}
    active = [one for one in router.aggregates if any(_is_inside(each, one.prefix) for each in announced)]
    for network in announced:
        if not any(one.is_summary_only and _is_inside(network, one.prefix) for one in active):
            yield prefix_of(network)
    yield from (prefix_of(one.prefix) for one in active)


def _is_inside(network: IpNetwork, summary: IpNetwork) -> bool:
    """Whether a prefix is a more specific of another."""
    return network.prefixlen > summary.prefixlen and is_within(network, summary)


def clauses_of(router: Router, route_map: str) -> tuple[Clause, ...]:
    """The entries of a route map; a missing one denies, as does having none where a policy is required."""
    if route_map == NO_MAP:
        return () if router.requires_policy else PERMIT_ALL
    return tuple(router.route_maps.get(route_map, ()))


def _permits(
    clauses: Iterable[Clause],
    lists: Mapping[str, Sequence[PrefixListEntry]],
    network: IpNetwork,
    interfaces: Collection[str],
) -> bool:
    """Whether a connected route of the router's own passes a route map."""
    for clause in clauses:
        if clause.matches_graceful_shutdown or (clause.interface and clause.interface not in interfaces):
            continue
        if not clause.prefix_lists or any(_is_listed(lists.get(one, ()), network) for one in clause.prefix_lists):
            return clause.is_permit
    return False


def _is_listed(rules: Iterable[PrefixListEntry], network: IpNetwork) -> bool:
    return next((rule.is_permit for rule in rules if rule.matches(network)), False)


def permitted(
    clauses: Sequence[Clause],
    lists: Mapping[str, Sequence[PrefixListEntry]],
    index: Mapping[Prefix, int],
    is_drained: bool,
) -> tuple[tuple[int, Clause], ...]:
    """The destinations of a layer that a route map permits, by the permitting entry."""
    masks: dict[int, int] = defaultdict(int)
    rules = {
        name: [(*prefix_of(one.prefix), one.shortest, one.longest, one.is_permit) for one in found]
        for name, found in lists.items()
    }
    for (number, length), mask in index.items():
        for place, clause in enumerate(clauses):
            if clause.matches_graceful_shutdown and not is_drained:
                continue
            if clause.prefix_lists and not any(
                _fits(rules.get(one, ()), number, length) for one in clause.prefix_lists
            ):
                continue
            if clause.is_permit:
                masks[place] |= mask
            break
    return tuple((mask, clauses[place]) for place, mask in masks.items())


def _fits(rules: Sequence[tuple[int, int, int, int, bool]], number: int, length: int) -> bool:
    for start, inside, shortest, longest, is_permit in rules:
        if shortest <= length <= longest and network_address(number, inside) == start:
            return is_permit
    return False

"""Routing policy as FRR applies it: what a router originates, and what a route map permits."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network

from netkit.platforms.routing import NO_MAP, Clause, PrefixListEntry, Router

Prefix = tuple[int, int]
"""Network address and length, as integers: `ipaddress` is too slow for the inner loops."""
PERMIT_ALL = (Clause(0, is_permit=True),)


def prefix_of(network: IPv4Network) -> Prefix:
    return int(network.network_address), network.prefixlen


def originated(router: Router) -> Iterator[Prefix]:
    """Yield the prefixes a router originates into BGP."""
    connected = {one.network for interface, one in router.addresses if interface not in router.down}
    announced = set(connected & set(router.networks))
    if router.redistributed is not None:
        clauses = clauses_of(router, router.redistributed) if router.redistributed else PERMIT_ALL
        announced |= {one for one in connected if _permits(clauses, router.prefix_lists, one)}
    active = [one for one in router.aggregates if any(_is_inside(each, one.prefix) for each in announced)]
    for network in announced:
        if not any(one.is_summary_only and _is_inside(network, one.prefix) for one in active):
            yield prefix_of(network)
    yield from (prefix_of(one.prefix) for one in active)


def _is_inside(network: IPv4Network, summary: IPv4Network) -> bool:
    """Whether a prefix is a more specific of another."""
    return network.prefixlen > summary.prefixlen and network.subnet_of(summary)


def clauses_of(router: Router, route_map: str) -> tuple[Clause, ...]:
    """The entries of a route map; a missing one denies, as does having none where a policy is required."""
    if route_map == NO_MAP:
        return () if router.requires_policy else PERMIT_ALL
    return tuple(router.route_maps.get(route_map, ()))


def _permits(clauses: Iterable[Clause], lists: Mapping[str, Sequence[PrefixListEntry]], network: IPv4Network) -> bool:
    """Whether a route of the router's own passes a route map."""
    for clause in clauses:
        if clause.matches_graceful_shutdown:
            continue
        if not clause.prefix_lists or any(_is_listed(lists.get(one, ()), network) for one in clause.prefix_lists):
            return clause.is_permit
    return False


def _is_listed(rules: Iterable[PrefixListEntry], network: IPv4Network) -> bool:
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
        name: [
            (int(one.prefix.network_address), int(one.prefix.netmask), one.shortest, one.longest, one.is_permit)
            for one in found
        ]
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
    for start, netmask, shortest, longest, is_permit in rules:
        if shortest <= length <= longest and number & netmask == start:
            return is_permit
    return False

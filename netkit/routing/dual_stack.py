"""The network of a whole fabric: its IPv4 routes, and its IPv6 ones where hosts have such addresses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from netkit.platforms.routing import HostRoutes, Router
from netkit.routing.address import Cabling
from netkit.routing.network import FamilyNetwork, NetworkState, Outlook, Paths


class Network:
    """The networks of both families as one: the groups of IPv6 follow those of IPv4, and neither reaches the other.

    What is asked about sessions is answered for IPv4: both families use the same ones.
    """

    def __init__(
        self, cabling: Cabling, routers: Mapping[str, Sequence[Router]], hosts: Mapping[str, Sequence[HostRoutes]]
    ) -> None:
        self._v6: FamilyNetwork | None = None
        if any(one.v6 for variants in hosts.values() for one in variants):
            self._v6 = FamilyNetwork(
                cabling,
                {name: [one.v6 or Router() for one in found] for name, found in routers.items()},
                {name: [one.v6 or HostRoutes() for one in found] for name, found in hosts.items()},
            )
            routers = {name: [replace(one, v6=None) for one in found] for name, found in routers.items()}
        self._v4 = FamilyNetwork(cabling, routers, hosts)
        self._first = len(self._v4.groups)
        """The place of the first group of IPv6."""
        self.groups = self._v4.groups + (self._v6.groups if self._v6 else ())
        self.used, self.speaking, self.is_known = self._v4.used, self._v4.speaking, self._v4.is_known
        self.router = self._v4.router

    def outlook(self, state: NetworkState, wanted: Mapping[str, int] | None = None) -> Outlook:
        """The reachability in a state; `wanted`: see `FamilyNetwork.outlook`."""
        if self._v6 is None:
            return self._v4.outlook(state, wanted)
        of_v4, of_v6 = self._parts(wanted) if wanted is not None else (None, None)
        found, other = self._v4.outlook(state, of_v4), self._v6.outlook(state, of_v6)
        widths = {
            leaf: min(filter(None, (width, other.widths.get(leaf))), default=0) for leaf, width in found.widths.items()
        }
        return Outlook(found.rows + tuple(row << self._first for row in other.rows), {**other.widths, **widths})

    def may_narrow(self, before: Mapping[str, int], after: Mapping[str, int], names: Iterable[str]) -> bool:
        """Whether any of these routers does more than gain sessions."""
        asked = tuple(names)
        return any(family.may_narrow(before, after, asked) for family in (self._v4, self._v6) if family)

    def narrowed(
        self, before: NetworkState, after: Sequence[tuple[NetworkState, Sequence[str]]], served: Mapping[str, int]
    ) -> Iterator[tuple[str, str, int]]:
        """Yield a router, a leaf and a number of ports, where fewer lead to what the leaf serves than before."""
        of_v4, of_v6 = self._parts(served)
        yield from self._v4.narrowed(before, after, of_v4)
        if self._v6:
            yield from self._v6.narrowed(before, after, of_v6)

    def paths(self, state: NetworkState, names: Iterable[str]) -> tuple[Paths, Paths]:
        """The next hops of routers in a state, for each family."""
        asked = tuple(names)
        return self._v4.paths(state, asked), self._v6.paths(state, asked) if self._v6 else {}

    def narrower(
        self, was: tuple[Paths, Paths], now: tuple[Paths, Paths], served: Mapping[str, int]
    ) -> Iterator[tuple[str, str, int]]:
        """Yield what `narrowed` does, for two sets of paths."""
        of_v4, of_v6 = self._parts(served)
        yield from self._v4.narrower(was[0], now[0], of_v4)
        if self._v6:
            yield from self._v6.narrower(was[1], now[1], of_v6)

    def announced_anew(self, state: NetworkState, name: str, phase: int) -> Iterator[int]:
        """Yield the IP versions in which another configuration of a router replaces how it announces its own prefixes.

        FRR withdraws these meanwhile.
        """
        for version, family in ((4, self._v4), (6, self._v6)):
            if family is None:
                continue
            now, then = family.router(state, name), family.router(NetworkState({name: phase}), name)
            is_announcing = now.redistributed is not None or bool(set(now.networks) - set(then.networks))
            if is_announcing and now.redistributed != then.redistributed:
                yield version

    def carriers(self, state: NetworkState) -> frozenset[str]:
        """The devices that traffic between hosts depends on in a state."""
        return self._v4.carriers(state) | (self._v6.carriers(state) if self._v6 else frozenset())

    def at(self, leaf: str) -> int:
        """The groups at a leaf, a bit for each."""
        return self._v4.at(leaf) | (self._v6.at(leaf) << self._first if self._v6 else 0)

    def _parts(self, masks: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        """The bits of each family."""
        own = (1 << self._first) - 1
        return {leaf: mask & own for leaf, mask in masks.items()}, {
            leaf: mask >> self._first for leaf, mask in masks.items()
        }

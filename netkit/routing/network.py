"""The routes of a whole fabric in one state: which hosts reach each other, and over how many paths.

The rules are those of FRR: sessions need both ends, a missing filter denies, an AS path with the own number
is refused, a drained route is the last resort, equal paths share the traffic, the longest prefix wins. What is computed
is the state after everything has settled; how long that takes is not part of it. With local preferences several such
states can exist: which one is found then depends on the state before, as it does for the daemons.

Addresses of hosts that are equivalent in every state are one destination, and a set of destinations is an integer with
a bit for each. Routes are computed for all destinations at once: a filter is a mask, and a session costs a few
operations on integers whatever the number of destinations.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from netkit.platforms.routing import BgpNeighbor, Clause, HostRoutes, PrefixListEntry, Router
from netkit.routing.address import (
    Cabling,
    End,
    Table,
    address_groups,
    nic_tables,
    prefix_layers,
)
from netkit.routing.route_policy import Prefix, clauses_of, network_address, number_of, originated, permitted, prefix_of

USUAL_PREFERENCE, DRAINED_PREFERENCE = 100, 0
NO_ASNS: frozenset[int] = frozenset()
MOST_ASN = 2**32 - 1
MOST_ROUNDS = 8
"""In which summaries begin and cease to be announced; more means that they depend on each other."""
MOST_TURNS = 64
"""Mean number of recomputations per router; more means that the routes do not converge."""

Quality = tuple[int, int]
"""Minus the local preference, and the length of the AS path: the lowest wins."""
Offers = tuple[tuple[Quality, "_Advert"], ...]
"""The routes that a router accepts over a session."""
_Policy = tuple[tuple[Clause, ...], tuple[tuple[str, tuple[PrefixListEntry, ...]], ...]]
"""The clauses of a route map, and the prefix lists they name."""
Paths = Mapping[str, tuple[tuple[str, int], ...]]
"""By router: (next hop, destinations it is used for), one for each session."""


@dataclass(frozen=True, slots=True)
class NetworkState:
    """The configuration each device runs, by its number in `FamilyNetwork`, and what is down or drained."""

    phases: Mapping[str, int] = field(default_factory=dict)
    """Devices that are not named run their first configuration."""
    down: frozenset[End] = frozenset()
    """Ports towards switches whose session is down."""
    drained: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outlook:
    """Reachability in a state. Rows and bits are the groups of the network."""

    rows: tuple[int, ...]
    """For each group, the groups it can send to: a pair reaches each other when both directions work."""
    widths: Mapping[str, int]
    """For each leaf, the least number of equal paths to a destination that it can send to behind another leaf."""


@dataclass(frozen=True, slots=True)
class _Advert:
    """Routes of one quality that a router announces over a session."""

    mask: int
    length: int
    asns: frozenset[int]
    """The numbers in the AS path that can make a loop: those of several routers, or all where a path is preferred.

    With `allowas-in`, a number that is in the path more than once is here as often: see `_occurrence`.
    """
    is_drained: bool


@dataclass(frozen=True, eq=False, slots=True)
class _Filter:
    """What a route map permits in a layer: destinations, and the entry that permits them."""

    usual: tuple[tuple[int, Clause], ...]
    drained: tuple[tuple[int, Clause], ...]
    """Of routes with the community GRACEFUL_SHUTDOWN."""

    def of(self, advert: _Advert) -> tuple[tuple[int, Clause], ...]:
        return self.drained if advert.is_drained else self.usual


@dataclass(slots=True)
class _Rib:
    """One router's routes in a layer."""

    known: int = 0
    hops: tuple[tuple[str, int], ...] = ()
    """(next hop, destinations it is used for), one for each session."""
    adverts: tuple[_Advert, ...] = ()
    offers: dict[int, Offers] = field(default_factory=dict)
    """What its neighbors accept of it, by `_Session.kind`: few sessions of a router differ in it."""


@dataclass(frozen=True, slots=True)
class _Summary:
    """A summary that a router announces while it has a route of another one inside it."""

    prefix: Prefix
    is_summary_only: bool
    inside: frozenset[Prefix]
    """What others announce inside it."""


@dataclass(frozen=True, eq=False, slots=True)
class _Session:
    """A session as its receiver sees it."""

    sender: str
    far: BgpNeighbor
    near: BgpNeighbor
    asns: frozenset[int]
    """The sender's number, if it can make a loop."""
    refused: int
    """The occurrence of the receiver's number with which routes are refused, if it can make a loop; else 0."""
    is_flagged: bool
    """The sender drains the session."""
    is_last_resort: bool
    """The receiver drains it."""
    outbound: tuple[_Filter, ...]
    """The sender's filter for each layer."""
    inbound: tuple[_Filter, ...]
    kind: int
    """The same for all sessions over which a sender's routes arrive alike."""


@dataclass(frozen=True, slots=True)
class _Possible:
    """The sessions that one configuration of a router may have."""

    ends: tuple[tuple[End, End], ...]
    sessions: tuple[tuple[_Session | None, ...], ...]
    """For each cable, the session with each configuration of the far end."""
    places: Mapping[str, Sequence[int]]
    """By router, where its sessions are."""


@dataclass(frozen=True, slots=True)
class _Sending:
    """How the hosts at a leaf send in a state."""

    there: int
    """The groups whose address is configured on the host."""
    attached: int
    """Those of them that their leaf serves."""
    rows: tuple[tuple[int, int, int, int], ...]
    """(group, groups it sends to the leaf, groups it reaches itself, those that it reaches if they are there)."""


@dataclass(slots=True)
class _Tables:
    """All routes in a state, kept for the next one, which differs in few routers."""

    state: NetworkState
    links: dict[str, list[_Session | None]]
    """The sessions over which each router receives routes, in the order of its configuration; None for those down."""
    layers: list[dict[str, _Rib]]
    hops: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """The next hops of routers over all layers, as far as they were asked for."""
    summarized: dict[str, tuple[_Summary, ...]] = field(default_factory=dict)
    """The summaries that routers announce because of routes of others."""


class FamilyNetwork:
    """Every configuration of a transition, and the states between them, for the routes of one IP version.

    `routers` and `hosts` hold the configurations each device may run: the running one, the intended one, then any in
    between.
    """

    def __init__(
        self, cabling: Cabling, routers: Mapping[str, Sequence[Router]], hosts: Mapping[str, Sequence[HostRoutes]]
    ) -> None:
        self._ends = cabling.ends
        self._routers = routers
        self._names = sorted(routers, key=lambda name: (routers[name][0].router_id, name))
        asns = Counter(asn for variants in routers.values() for asn in {router.asn for router in variants})
        # With preferences, a path may lead back to its router: its number has to be found there.
        maps = (found for variants in routers.values() for router in variants for found in router.route_maps.values())
        is_preferring = any(
            clause.local_preference not in {None, USUAL_PREFERENCE} for found in maps for clause in found
        )
        self._shared = frozenset(asn for asn, count in asns.items() if count > 1 or is_preferring)
        every = (router for variants in routers.values() for router in variants)
        self._most_allowed = max((side.allowas_in for router in every for side in router.sessions), default=0)
        self._sides = {
            (name, phase): {side.interface: side for side in router.sessions}
            for name, variants in routers.items()
            for phase, router in enumerate(variants)
        }
        self._origins = {
            (name, phase): frozenset(originated(router))
            for name, variants in routers.items()
            for phase, router in enumerate(variants)
        }
        announced = {prefix for prefixes in self._origins.values() for prefix in prefixes}
        static = {prefix_of(route.prefix) for found in routers.values() for one in found for route in one.static}
        self._summaries = dict(self._summaries_of_others())
        self._possible_origins = {
            place: prefixes | {one.prefix for one in self._summaries.get(place, ())}
            for place, prefixes in self._origins.items()
        }
        announced |= {prefix for prefixes in self._possible_origins.values() for prefix in prefixes}
        nics = tuple(nic_tables(cabling, routers, hosts))
        sent = {prefix for nic in nics for prefix in nic.prefixes()}
        self.groups = tuple(address_groups(nics, announced | static | sent))
        self._layers = prefix_layers(self.groups, self._possible_origins)
        self._by_length: dict[int, dict[int, int]] = {}
        self._swallowed = {
            (name, phase): self._static(router)
            for name, variants in routers.items()
            for phase, router in enumerate(variants)
            if router.static
        }
        self._at_leaf: dict[str, int] = defaultdict(int)
        self._groups_at: dict[str, list[int]] = defaultdict(list)
        self._on_svi: dict[tuple[str, int, str], int] = defaultdict(int)
        for index, group in enumerate(self.groups):
            self._at_leaf[group.leaf] |= 1 << index
            self._groups_at[group.leaf].append(index)
            for phase, svi in enumerate(group.nics[0].svi):
                self._on_svi[group.leaf, phase, svi] |= 1 << index
        self._hosts_at = {
            leaf: tuple(dict.fromkeys(self.groups[index].nics[0].host for index in found))
            for leaf, found in self._groups_at.items()
        }
        self._sendings: dict[tuple[object, ...], _Sending] = {}
        self._policies: dict[tuple[str, int, str], _Policy] = {}
        self._same_policy: dict[_Policy, _Policy] = {}
        self._filters: dict[tuple[int, int], _Filter] = {}
        self._every_prefix = {prefix: 1 << place for place, prefix in enumerate(sorted(announced))}
        self._allowed_masks: dict[int, int] = {}
        self._alike: dict[tuple[str, int, int, bool], bool] = {}
        self._possible: dict[tuple[str, int], _Possible] = {}
        self._kinds: dict[object, int] = {}
        self._peers = {name: tuple(dict.fromkeys(self._peers_of(name))) for name in self._names}
        self._sent: dict[Table, tuple[int, int]] = {}
        self._last: _Tables | None = None

    def outlook(self, state: NetworkState, wanted: Mapping[str, int] | None = None) -> Outlook:
        """The reachability in a state, once its routes have converged.

        `wanted`: by leaf, the destinations whose paths are counted; by default all it can send to.
        """
        tables = self._tables(state)
        hops = self._hops(tables)
        sending = {leaf: self._sending(state, leaf) for leaf in self._at_leaf}
        there = attached = 0
        for one in sending.values():
            there, attached = there | one.there, attached | one.attached
        delivered = self._delivered(hops, attached)
        found = [0] * len(self.groups)
        for leaf, one in sending.items():
            for index, to_leaf, own, bridged in one.rows:
                found[index] = (to_leaf & delivered[leaf]) | own | (bridged & there)
        rows = tuple(found)
        widths = {}
        for leaf, here in self._at_leaf.items():
            counted = delivered[leaf] & ~here
            if wanted is not None:
                counted &= wanted.get(leaf, 0)
            widths[leaf] = _narrowest(hops[leaf], counted)
        return Outlook(rows, widths)

    def may_narrow(self, before: Mapping[str, int], after: Mapping[str, int], names: Iterable[str]) -> bool:
        """Whether any of these routers does more than gain sessions."""
        was, now = NetworkState(before), NetworkState(after)
        for name in (one for one in names if one in self._routers):
            kept = {side.interface for side in self.router(now, name).sessions}
            ports = {side.interface for side in self.router(was, name).sessions}
            if not ports <= kept or not self._announces_alike(was, now, name):
                return True
        return False

    def narrowed(
        self, before: NetworkState, after: Sequence[tuple[NetworkState, Sequence[str]]], served: Mapping[str, int]
    ) -> Iterator[tuple[str, str, int]]:
        """Yield a router, a leaf and a number of ports, where fewer lead to what the leaf serves than before.

        `after` has states, and the routers that are asked in each.
        """
        was = self.paths(before, {name for _, names in after for name in names})
        for state, names in after:
            yield from self.narrower(was, self.paths(state, names), served)

    def paths(self, state: NetworkState, names: Iterable[str]) -> Paths:
        """The next hops of routers in a state."""
        return self._hops(self._tables(state), names)

    def narrower(self, was: Paths, now: Paths, served: Mapping[str, int]) -> Iterator[tuple[str, str, int]]:
        """Yield what `narrowed` does, for two sets of paths."""
        for name, hops in now.items():
            left: dict[str, int] = defaultdict(int)
            for hop, mask in hops:
                left[hop] |= mask
            fewer = 0
            for hop, mask in was[name]:
                fewer |= mask & ~left[hop]
            for leaf, mask in served.items() if fewer else ():
                if leaf != name and (moved := mask & fewer):
                    ports = _narrowest(hops, moved)
                    if ports < _narrowest(was[name], moved):
                        yield name, leaf, ports

    def carriers(self, state: NetworkState) -> frozenset[str]:
        """The devices that traffic between hosts depends on in a state."""
        rows = self.outlook(state).rows
        hops = self._hops(self._tables(state))
        found = {nic.host for row, group in zip(rows, self.groups, strict=True) if row for nic in group.nics}
        at = {group.leaf for row, group in zip(rows, self.groups, strict=True) if row}
        while at:
            found |= at
            at = {hop for name in at for hop, mask in hops[name] if mask} - found
        return frozenset(found)

    def used(self, state: NetworkState, name: str) -> frozenset[str]:
        """The ports of a device with sessions that neither end drains, if it is known."""
        if self.router(state, name).is_drained or name in state.drained:
            return frozenset()
        return frozenset(
            near.interface
            for peer, far, near in self._established(state, name)
            if not (near.is_drained or far.is_drained or self.router(state, peer).is_drained or peer in state.drained)
        )

    def speaking(self, state: NetworkState, name: str) -> frozenset[str]:
        """The ports of a device with a session over which routes may pass in both directions."""
        return frozenset(
            near.interface
            for peer, far, near in (self._established(state, name) if name in self._routers else ())
            if self._is_passed((peer, far), (name, near), state) and self._is_passed((name, near), (peer, far), state)
        )

    def _is_passed(
        self, sender: tuple[str, BgpNeighbor], receiver: tuple[str, BgpNeighbor], state: NetworkState
    ) -> bool:
        """Whether the filters at both ends of a session have a prefix in common."""
        (name, far), (taker, near) = sender, receiver
        outbound = self._policy(name, self._phase(state, name), far.outbound)
        inbound = self._policy(taker, self._phase(state, taker), near.inbound)
        return bool(self._allowed(outbound) & self._allowed(inbound))

    def _allowed(self, policy: _Policy) -> int:
        """Which of all prefixes a route map permits, a bit for each."""
        if id(policy) not in self._allowed_masks:
            clauses, lists = policy
            found = permitted(clauses, dict(lists), self._every_prefix, is_drained=False)
            self._allowed_masks[id(policy)] = sum(mask for mask, _ in found)
        return self._allowed_masks[id(policy)]

    def at(self, leaf: str) -> int:
        """The groups at a leaf, a bit for each."""
        return self._at_leaf.get(leaf, 0)

    def is_known(self, name: str, port: str) -> bool:
        """Whether the device at the other end of a port is part of the network."""
        return self._ends.get((name, port), ("", ""))[0] in self._routers

    def router(self, state: NetworkState, name: str) -> Router:
        """What a device runs in a state."""
        return self._routers[name][self._phase(state, name)]

    def _phase(self, state: NetworkState, name: str) -> int:
        return min(state.phases.get(name, 0), len(self._routers[name]) - 1)

    # Routes

    def _tables(self, state: NetworkState) -> _Tables:
        state = replace(state, phases=dict(state.phases))  # kept for the next state, while the caller's may change
        last = self._last
        if last is not None:
            changed = self._changed(last.state, state)
            if not changed:
                return last
            summarized = {name: found for name, found in last.summarized.items() if name not in changed}
            layers = [dict(layer) for layer in last.layers]
            tables = _Tables(state, dict(last.links), layers, dict(last.hops), summarized)
            peers = {peer for name in changed for peer in self._peers[name]}
            tables.links |= {name: self._sessions(state, name) for name in changed}
            tables.links |= {name: self._sessions_with(changed, tables, name) for name in peers - changed}
            if all(self._settle(tables, number, changed, last) for number in range(len(self._layers))):
                self._last = self._summarized(tables)
                return self._last
        links = {name: self._sessions(state, name) for name in self._names}
        tables = _Tables(state, links, [{name: _Rib() for name in self._names} for _ in self._layers])
        for number in range(len(self._layers)):
            self._settle(tables, number, self._names)
        self._last = self._summarized(tables)
        return self._last

    def _summarized(self, tables: _Tables) -> _Tables:
        """The routes once every router announces the summaries that it has routes of others for, and no more."""
        for _ in range(MOST_ROUNDS if self._summaries else 0):
            names = {name for name, _ in self._summaries}
            found = {name: active for name in names if (active := self._active_summaries(tables, name))}
            changed = {name for name in names if found.get(name) != tables.summarized.get(name)}
            if not changed:
                break
            before, layers = tables, [dict(layer) for layer in tables.layers]
            tables = _Tables(before.state, before.links, layers, dict(before.hops), found)
            for number in range(len(self._layers)):
                self._settle(tables, number, changed, before)
        return tables

    def _active_summaries(self, tables: _Tables, name: str) -> tuple[_Summary, ...]:
        """The summaries of a router with a route of another one inside them."""
        layers = [(layer[name].known, index) for layer, index in zip(tables.layers, self._layers, strict=True)]
        return tuple(
            one
            for one in self._summaries.get((name, self._phase(tables.state, name)), ())
            if any(known & index.get(prefix, 0) for prefix in one.inside for known, index in layers)
        )

    def _summaries_of_others(self) -> Iterator[tuple[tuple[str, int], tuple[_Summary, ...]]]:
        """Yield, by router and configuration, the summaries that routes of others affect."""
        announcing: dict[Prefix, set[str]] = defaultdict(set)
        lengths = set()
        for (name, phase), prefixes in self._origins.items():
            summaries = {prefix_of(one.prefix) for one in self._routers[name][phase].aggregates}
            lengths |= {length for _, length in summaries}
            for prefix in prefixes | summaries:
                announcing[prefix].add(name)
        inside: dict[Prefix, list[Prefix]] = defaultdict(list)
        for number, length in announcing:
            for shorter in (one for one in lengths if one < length):
                inside[network_address(number, shorter), shorter].append((number, length))
        for (name, phase), own in self._origins.items():
            found = []
            for one in self._routers[name][phase].aggregates:
                prefix = prefix_of(one.prefix)
                others = frozenset(each for each in inside[prefix] if announcing[each] != {name})
                if others and (one.is_summary_only or prefix not in own):
                    found.append(_Summary(prefix, one.is_summary_only, others))
            if found:
                yield (name, phase), tuple(found)

    def _changed(self, one: NetworkState, other: NetworkState) -> set[str]:
        """The routers that differ between two states."""
        names = {name for name in one.phases.keys() | other.phases.keys() if name in self._routers}
        changed = {name for name in names if not self._is_alike(one, other, name, is_whole=True)}
        changed |= {name for name, _ in one.down ^ other.down if name in self._routers}
        return changed | (one.drained ^ other.drained)

    def _announces_alike(self, one: NetworkState, other: NetworkState, name: str) -> bool:
        """Whether a router treats the sessions it keeps the same way: it only gained or lost others."""
        return one.drained == other.drained and self._is_alike(one, other, name, is_whole=False)

    def _is_alike(self, one: NetworkState, other: NetworkState, name: str, *, is_whole: bool) -> bool:
        """Whether a router has the same configuration in two states, or the same but for sessions that one lacks."""
        phases = self._phase(one, name), self._phase(other, name)
        if phases[0] == phases[1]:
            return True
        key = (name, *phases, is_whole)
        if key not in self._alike:
            was, now = (self._routers[name][phase] for phase in phases)
            known = {side.interface: side for side in was.sessions}
            is_kept = all(known.get(side.interface, side) == side for side in now.sessions)
            bare = [replace(router, neighbors=(), external=()) for router in (was, now)]
            self._alike[key] = was == now if is_whole else is_kept and bare[0] == bare[1]
        return self._alike[key]

    def _peers_of(self, name: str) -> Iterator[str]:
        """Yield the routers that may have a session with a router, in any state."""
        for router in self._routers[name]:
            for one in router.sessions:
                peer, _ = self._ends.get((name, one.interface), ("", ""))
                if peer in self._routers:
                    yield peer

    def _sessions(self, state: NetworkState, name: str) -> list[_Session | None]:
        """The sessions of a router, None for those that are down."""
        found = self._possible_of(name, self._phase(state, name))
        return [self._session_at(state, found, place) for place in range(len(found.ends))]

    def _sessions_with(self, changed: Collection[str], tables: _Tables, name: str) -> list[_Session | None]:
        """The sessions of a router after some of its neighbors changed."""
        found = self._possible_of(name, self._phase(tables.state, name))
        sessions = list(tables.links[name])
        for place in (place for peer in changed for place in found.places.get(peer, ())):
            sessions[place] = self._session_at(tables.state, found, place)
        return sessions

    @staticmethod
    def _session_at(state: NetworkState, possible: _Possible, place: int) -> _Session | None:
        (near, far), sessions = possible.ends[place], possible.sessions[place]
        if near in state.down or far in state.down:
            return None
        return sessions[min(state.phases.get(far[0], 0), len(sessions) - 1)]

    def _possible_of(self, name: str, phase: int) -> _Possible:
        found = self._possible.get((name, phase))
        if found is None:
            every = tuple(self._possible_sessions(name, phase))
            places: dict[str, list[int]] = defaultdict(list)
            for place, (_, far, _) in enumerate(every):
                places[far[0]].append(place)
            ends = tuple((near, far) for near, far, _ in every)
            found = self._possible[name, phase] = _Possible(ends, tuple(one for _, _, one in every), places)
        return found

    def _established(self, state: NetworkState, name: str) -> Iterator[tuple[str, BgpNeighbor, BgpNeighbor]]:
        """Yield the established sessions of a router: the peer, and both sides."""
        for session in self._sessions(state, name):
            if session is not None:
                yield session.sender, session.far, session.near

    def _possible_sessions(self, name: str, phase: int) -> Iterator[tuple[End, End, tuple[_Session | None, ...]]]:
        """Yield the ends of each cable between routers, with the session for each configuration of the far one."""
        router = self._routers[name][phase]
        for near in router.sessions:
            end = self._ends.get((name, near.interface))
            if end is None or end[0] not in self._routers:
                continue
            sessions: list[_Session | None] = []
            for number, peer in enumerate(self._routers[end[0]]):
                far = self._sides[end[0], number].get(end[1])
                is_up = far is not None and _is_up(router, near, peer, far) and _is_up(peer, far, router, near)
                if far is not None and (near.address or far.address):
                    is_up &= router.has(near.interface, far.address) and peer.has(far.interface, near.address)
                sessions.append(self._session((name, phase), near, (end[0], number), far) if far and is_up else None)
            yield (name, near.interface), end, tuple(sessions)

    def _session(
        self, receiver: tuple[str, int], near: BgpNeighbor, sender: tuple[str, int], far: BgpNeighbor
    ) -> _Session:
        router, peer = (self._routers[name][phase] for name, phase in (receiver, sender))
        layers = range(len(self._layers))
        asns = frozenset({peer.asn}) & self._shared
        refused = _occurrence(router.asn, near.allowas_in) if router.asn in self._shared else 0
        is_flagged, is_last_resort = (peer.is_drained or far.is_drained), (router.is_drained or near.is_drained)
        outbound = tuple(self._filter(*sender, far.outbound, number) for number in layers)
        inbound = tuple(self._filter(*receiver, near.inbound, number) for number in layers)
        alike = asns, refused, is_flagged, is_last_resort, outbound, inbound
        kind = self._kinds.setdefault(alike, len(self._kinds))
        return _Session(sender[0], far, near, *alike, kind)

    def _settle(self, tables: _Tables, number: int, changed: Collection[str], last: _Tables | None = None) -> bool:
        """Propagate routes until nothing changes; False if they do not converge.

        All but the changed routers have the routes of the last state.
        """
        layer = tables.layers[number]
        queue = deque(name for name in self._names if name in changed)
        waiting, first = set(queue), set(queue)
        is_drained_anew = last is not None and last.state.drained != tables.state.drained
        turns = MOST_TURNS * max(1, len(self._names))
        while queue:
            name = queue.popleft()
            waiting.discard(name)
            turns -= 1
            if turns < 0:
                return False
            before = layer[name]
            layer[name] = after = self._rib(tables, number, name)
            tables.hops.pop(name, None)
            is_other = last is not None and name in first
            first.discard(name)
            if not is_other and after.adverts == before.adverts:
                continue
            for peer in self._peers[name]:
                if peer in waiting:
                    continue
                received = self._received(tables, number, name, peer, after)
                is_same = received == self._received(tables, number, name, peer, before)
                if is_same and is_other and self.router(tables.state, peer).needs_same_path:
                    is_same = False  # the AS of the neighbor may differ
                if is_same and is_other and last and (last.links[peer] != tables.links[peer] or is_drained_anew):
                    is_same = received == self._received(last, number, name, peer, before)
                if not is_same:
                    waiting.add(peer)
                    queue.append(peer)
        return True

    def _rib(self, tables: _Tables, number: int, name: str) -> _Rib:
        """Compute a router's routes from what its neighbours announce now."""
        state, index = tables.state, self._layers[number]
        own = silenced = 0
        summaries = tables.summarized.get(name, ())
        for prefix in (*self._origins[name, self._phase(state, name)], *(one.prefix for one in summaries)):
            own |= index.get(prefix, 0)
        for prefix in (each for one in summaries if one.is_summary_only for each in one.inside):
            silenced |= index.get(prefix, 0)
        offers: dict[Quality, list[tuple[str, _Advert]]] = {}
        for session in tables.links[name]:
            if session is not None:
                sender = session.sender
                for quality, advert in self._offers(state, number, name, session, tables.layers[number][sender]):
                    offers.setdefault(quality, []).append((sender, advert))
        known = own
        adverts = {(0, NO_ASNS, False): own} if own else {}
        hops: list[tuple[str, int]] = []
        router = self.router(state, name)
        for quality in sorted(offers):
            for equal in self._by_asn(state, offers[quality]) if router.needs_same_path else (offers[quality],):
                best = 0
                for sender, mask, advert in _at_most(router.max_paths, equal, known):
                    hops.append((sender, mask))
                    if chosen := mask & ~best:
                        alike = (advert.length, advert.asns, advert.is_drained)
                        adverts[alike] = adverts.get(alike, 0) | chosen
                        best |= chosen
                known |= best
        sent = ((mask if alike[0] == 0 else mask & ~silenced, alike) for alike, mask in adverts.items())
        return _Rib(known, tuple(hops), tuple(_Advert(mask, *alike) for mask, alike in sent if mask))

    def _by_asn(
        self, state: NetworkState, offers: Iterable[tuple[str, _Advert]]
    ) -> Iterable[Sequence[tuple[str, _Advert]]]:
        """Routes by the AS of the neighbor; differences further along the AS path are not modelled."""
        found: dict[int, list[tuple[str, _Advert]]] = defaultdict(list)
        for sender, advert in offers:
            found[self.router(state, sender).asn].append((sender, advert))
        return found.values()

    def _received(self, tables: _Tables, number: int, sender: str, name: str, rib: _Rib) -> list[Offers | None]:
        """What a router accepts of another one that has these routes, over each session between them that is up."""
        places = self._possible_of(name, self._phase(tables.state, name)).places.get(sender, ())
        sessions = (tables.links[name][place] for place in places)
        return [None if one is None else self._offers(tables.state, number, name, one, rib) for one in sessions]

    def _offers(self, state: NetworkState, number: int, name: str, session: _Session, rib: _Rib) -> Offers:
        """What a router accepts over a session from a sender that has these routes."""
        kind = session.kind
        is_flagged, is_last_resort = session.is_flagged, session.is_last_resort
        if state.drained:
            is_flagged |= session.sender in state.drained
            is_last_resort |= name in state.drained
            kind = ~(kind << 2 | is_flagged << 1 | is_last_resort)
        found = rib.offers.get(kind)
        if found is None:
            most = self._most_allowed
            sent = _announced(rib.adverts, session.outbound[number], session.asns, most, is_drained=is_flagged)
            accepted = _accepted(sent, session, session.inbound[number], most, is_last_resort=is_last_resort)
            found = rib.offers[kind] = tuple(accepted)
        return found

    def _filter(self, name: str, phase: int, route_map: str, number: int) -> _Filter:
        """The filter of a route map in a layer, the same one for all routers with this content."""
        policy = self._policy(name, phase, route_map)
        key = id(policy), number
        if key not in self._filters:
            clauses, lists = policy
            layer = self._layers[number]
            both = (permitted(clauses, dict(lists), layer, is_drained) for is_drained in (False, True))
            self._filters[key] = _Filter(*both)
        return self._filters[key]

    def _policy(self, name: str, phase: int, route_map: str) -> _Policy:
        """The content of a route map: the same object for all routers with this content."""
        key = name, phase, route_map
        if key not in self._policies:
            router = self._routers[name][phase]
            clauses = clauses_of(router, route_map)
            lists = tuple((one, router.prefix_lists.get(one, ())) for clause in clauses for one in clause.prefix_lists)
            self._policies[key] = self._same_policy.setdefault((clauses, lists), (clauses, lists))
        return self._policies[key]

    # Packets

    def _hops(self, tables: _Tables, names: Iterable[str] | None = None) -> dict[str, tuple[tuple[str, int], ...]]:
        """The next hops of these routers, or of all."""
        asked = self._names if names is None else [name for name in names if name in self._routers]
        for name in (one for one in asked if one not in tables.hops):
            hops = _forwarding([layer[name] for layer in tables.layers])
            swallowed = self._swallowed.get((name, self._phase(tables.state, name)), 0)
            tables.hops[name] = tuple((hop, mask & ~swallowed) for hop, mask in hops) if swallowed else hops
        return {name: tables.hops[name] for name in asked}

    def _static(self, router: Router) -> int:
        """The groups that static routes take out of the fabric: none is preferred among the routes of BGP."""
        swallowed = 0
        rows = {(*prefix_of(route.prefix), route.is_floating) for route in router.installed_static()}
        for network, length, is_floating in rows:
            longest = self._layers[0].items() if self._layers else ()
            longer = sum(mask for (_, other), mask in longest if other > length or (is_floating and other == length))
            swallowed |= self._inside((network, length)) & ~longer
        return swallowed

    def _sending(self, state: NetworkState, leaf: str) -> _Sending:
        """How the hosts at a leaf send in a state."""
        phase, phases = self._phase(state, leaf), state.phases
        key = (leaf, phase, *[phases.get(host, 0) for host in self._hosts_at[leaf]])
        if key not in self._sendings:
            there = attached = 0
            rows = []
            for index in self._groups_at[leaf]:
                nic = self.groups[index].nics[0]
                tables = nic.tables[phase]
                table = tables[min(phases.get(nic.host, 0), len(tables) - 1)]
                if table is None:
                    continue
                there |= 1 << index
                is_attached = nic.is_on_leaf[phase]
                attached |= is_attached << index
                if table not in self._sent:
                    self._sent[table] = self._sent_by(table)
                to_leaf, on_link = self._sent[table]
                # A leaf bridges the ports of one SVI, and no others, whatever its own address is.
                svi = nic.svi[phase]
                own = 0 if svi else on_link & is_attached << index
                bridged = on_link & self._on_svi[leaf, phase, svi] if svi else 0
                rows.append((index, to_leaf if is_attached else 0, own, bridged))
            self._sendings[key] = _Sending(there, attached, tuple(rows))
        return self._sendings[key]

    def _delivered(self, hops: Mapping[str, tuple[tuple[str, int], ...]], attached: int) -> dict[str, int]:
        """Return, by router, the groups that a packet reaches on every equal path."""
        here = {name: self._at_leaf.get(name, 0) & attached for name in self._names}
        good = dict(here)
        next_hops = {name: {hop for hop, _ in hops[name]} for name in self._names}
        moved = set(self._names)
        while moved:
            before, moved = moved, set()
            for name in self._names:
                if next_hops[name].isdisjoint(before) and next_hops[name].isdisjoint(moved):
                    continue
                routed = lost = 0
                for hop, mask in hops[name]:
                    routed |= mask
                    lost |= mask & ~good[hop]
                found = here[name] | (routed & ~lost & ~self._at_leaf.get(name, 0))
                if found != good[name]:
                    good[name] = found
                    moved.add(name)
        return good

    def _sent_by(self, table: Table) -> tuple[int, int]:
        """The groups a host sends to its leaf, and those it takes to be on-link."""
        found = {"leaf": 0, "link": 0, "drop": 0}
        rest = (1 << len(self.groups)) - 1
        for rows in table:
            for prefix, verdict in sorted(rows, key=lambda row: -row[0][1]):
                covered = self._inside(prefix) & rest
                found[verdict] |= covered
                rest &= ~covered
        return found["leaf"], found["link"]

    def _inside(self, prefix: Prefix) -> int:
        """The groups whose address is inside a prefix, a bit for each."""
        network, length = prefix
        if length not in self._by_length:
            masks: dict[int, int] = defaultdict(int)
            for index, group in enumerate(self.groups):
                masks[network_address(number_of(group.nics[-1].address), length)] |= 1 << index
            self._by_length[length] = masks
        return self._by_length[length].get(network, 0)


def _is_up(router: Router, side: BgpNeighbor, peer: Router, far: BgpNeighbor) -> bool:
    """Whether one end of a session accepts the other."""
    is_expected = side.remote_asn == peer.asn if side.remote_asn else router.asn != peer.asn
    speed, other = router.speeds.get(side.interface), peer.speeds.get(far.interface)
    is_link = side.interface not in router.down and (None in {speed, other} or speed == other)
    return bool(router.asn and peer.asn and is_expected and side.is_active and is_link)


def _occurrence(asn: int, earlier: int) -> int:
    """The number that stands for an AS number that is in a path for one more time than `earlier`."""
    return earlier * (MOST_ASN + 1) + asn


def _with(asns: frozenset[int], added: frozenset[int], times: int, most: int) -> frozenset[int]:
    """The numbers of an AS path with one more, so often; `most`: how often a number may be there at all."""
    if not most:
        return asns | added
    for asn in added:
        held = sum(_occurrence(asn, earlier) in asns for earlier in range(most + 1))
        asns |= {_occurrence(asn, earlier) for earlier in range(held, min(held + times, most + 1))}
    return asns


def _announced(
    adverts: Iterable[_Advert], outbound: _Filter, asns: frozenset[int], most: int, *, is_drained: bool
) -> Iterator[_Advert]:
    """Yield what passes a router's filter on the way out, with its number in the AS path."""
    for advert in adverts:
        for allowed, clause in outbound.of(advert):
            if mask := advert.mask & allowed:
                is_flagged = is_drained or advert.is_drained or clause.has_graceful_shutdown
                times = 1 + clause.prepends
                length = advert.length + times + (clause.repeats if advert.length else 0)
                yield _Advert(mask, length, _with(advert.asns, asns, times, most), is_flagged)


def _accepted(
    sent: Iterable[_Advert], session: _Session, inbound: _Filter, most: int, *, is_last_resort: bool
) -> Iterator[tuple[Quality, _Advert]]:
    """Yield the routes that a filter accepts, but for those with the receiver's own number in the AS path."""
    own = frozenset({session.refused & MOST_ASN} if session.refused else ())
    for advert in sent:
        if session.refused in advert.asns:
            continue
        for allowed, clause in inbound.of(advert):
            if mask := advert.mask & allowed:
                # Routes with the community lose their preference after the route map, whatever that sets.
                is_flagged = is_last_resort or advert.is_drained or clause.has_graceful_shutdown
                set_preference = USUAL_PREFERENCE if clause.local_preference is None else clause.local_preference
                preference = DRAINED_PREFERENCE if is_flagged else set_preference
                length = advert.length + clause.prepends + clause.repeats
                asns = advert.asns
                if most and (clause.prepends or clause.repeats):
                    asns = _with(_with(asns, session.asns, clause.repeats, most), own, clause.prepends, most)
                yield (-preference, length), _Advert(mask, length, asns, is_flagged)


def _at_most(most: int, offers: Sequence[tuple[str, _Advert]], known: int) -> Iterator[tuple[str, int, _Advert]]:
    """Yield equal-cost routes to unknown destinations, at most `most` to each, with the destinations of each."""
    counted = [0] * most if most < len(offers) else []
    for sender, advert in offers:
        used = advert.mask & ~known
        if counted:
            used &= ~counted[-1]
            for place in range(most - 1, 0, -1):
                counted[place] |= used & counted[place - 1]
            counted[0] |= used
        if used:
            yield sender, used, advert


def _forwarding(ribs: Sequence[_Rib]) -> tuple[tuple[str, int], ...]:
    """The next hops of a router over all layers: the longest prefix wins."""
    if len(ribs) == 1:
        return ribs[0].hops
    found: list[tuple[str, int]] = []
    covered = 0
    for rib in ribs:
        found += [(hop, mask & ~covered) for hop, mask in rib.hops if mask & ~covered]
        covered |= rib.known
    return tuple(found)


def _narrowest(hops: Iterable[tuple[str, int]], wanted: int) -> int:
    """The least number of equal paths to any of the wanted destinations; 0 when none is wanted."""
    counts: dict[int, int] = defaultdict(int)
    for _, mask in hops:
        counts[mask & wanted] += 1
    least = 0
    rest, level = wanted, sum(counts.values()) + 1
    by_mask = [(mask, number) for mask, number in counts.items() if mask]
    while rest:
        # All destinations that are in exactly the same sets of next hops have the same number of them.
        bit = rest & -rest
        alike, number = rest, 0
        for mask, times in by_mask:
            if mask & bit:
                alike, number = alike & mask, number + times
            else:
                alike &= ~mask
        level = min(level, number)
        rest &= ~alike
        least = level
    return least

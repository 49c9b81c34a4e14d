"""Shared parts of the parsers of routing configurations. Conversions are cached because a fabric repeats itself."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_interface, ip_network
from typing import Literal, TypeVar

from netkit.errors import ConfigError, Problem
from netkit.platforms.config import Path
from netkit.platforms.routing import (
    NO_MAP,
    Aggregate,
    BgpNeighbor,
    Clause,
    IpInterface,
    IpNetwork,
    PrefixListEntry,
    RouterRoute,
)

Version = Literal[4, 6]
"""Of IP."""
ANY: Mapping[Version, IpNetwork] = {4: IPv4Network("0.0.0.0/0"), 6: IPv6Network("::/0")}
FAMILY_WORDS: Mapping[Version, str] = {4: "ip", 6: "ipv6"}
"""The first word of lines of a family, such as `ipv6 prefix-list`."""
EXTERNAL = 0
DISCARDS = frozenset({"blackhole", "null0", "reject"})
ROUTE_OPTIONS = re.compile(r"(?:tag \d+ )?(\d+ )?(?:tag \d+ )?(?:name \S+ )?")
"""Of a static route: its distance, and what does nothing to it."""
DEFAULT_ALLOWAS_IN = 3
EBGP_DISTANCE = 20
"""Of FRR; static routes with a greater distance are not used beside those of BGP."""
GRACEFUL_SHUTDOWN = frozenset({"graceful-shutdown", "gshut", "65535:0", "4294901760"})
ADDITIVE = frozenset({"additive"})
COMMUNITY_LIST = re.compile(
    r"(?:bgp|ip) community-list (?:(?:standard|expanded) )?(\S+) (?:seq \d+ )?(permit|deny) (.+)"
)
HARMLESS_TO_ROUTES = ("set src ", "description ")
CACHED = 100_000
T = TypeVar("T")


@lru_cache(CACHED)
def network(text: str, version: Version = 4) -> IpNetwork | None:
    """Parse a prefix; None if it is invalid or of the other family."""
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        return None
    return found if found.version == version else None


@lru_cache(CACHED)
def interface_address(text: str, version: Version = 4) -> IpInterface | None:
    """Parse an address with prefix length; None if it is invalid or of the other family."""
    try:
        found = ip_interface(text)
    except ValueError:
        return None
    return found if found.version == version else None


@lru_cache(CACHED)
def is_address(text: str) -> bool:
    """Whether a neighbour is identified by an IPv4 or IPv6 address."""
    try:
        IPv4Address(text)
    except ValueError:
        return ":" in text
    return True


def as_number(text: str) -> int | None:
    """Parse an AS number, plain or dotted; None if it is invalid."""
    high, dot, low = text.partition(".")
    if dot and high.isdecimal() and low.isdecimal():
        return int(high) * 65536 + int(low)
    return int(text) if text.isascii() and text.isdecimal() else None


def whole_number(text: str) -> int | None:
    """Parse a decimal number; None if it is invalid."""
    return int(text) if text.isascii() and text.isdecimal() else None


@lru_cache(CACHED)
def prefix_rule(number: int, words: str, version: Version = 4) -> PrefixListEntry | None:
    """Parse `permit|deny PREFIX [ge N] [le N] [eq N]`, the syntax of FRR and EOS; None for anything else."""
    action, _, rest = words.partition(" ")
    prefix, *bounds = rest.split() or [""]
    if action not in {"permit", "deny"} or len(bounds) % 2:
        return None
    lengths = dict(zip(bounds[::2], bounds[1::2], strict=True))
    if lengths.keys() - {"ge", "le", "eq"} or not all(map(str.isdecimal, lengths.values())):
        return None
    if prefix == "any":
        return PrefixListEntry(number, action == "permit", ANY[version], 0, ANY[version].max_prefixlen)
    inside = network(prefix, version)
    if inside is None:
        return None
    if "eq" in lengths:
        return PrefixListEntry(number, action == "permit", inside, int(lengths["eq"]), int(lengths["eq"]))
    return bounded(number, inside, lengths.get("ge", ""), lengths.get("le", ""), is_permit=action == "permit")


def bounded(number: int, inside: IpNetwork, shortest: str, longest: str, *, is_permit: bool) -> PrefixListEntry:
    """Build an entry with optional bounds of the prefix length; without any it matches the prefix itself."""
    low = int(shortest) if shortest else inside.prefixlen
    high = int(longest) if longest else inside.max_prefixlen if shortest else inside.prefixlen
    return PrefixListEntry(number, is_permit, inside, low, high)


def rule_words(rule: PrefixListEntry) -> str:
    """Write a prefix-list entry for FRR and EOS, without its number."""
    own = rule.prefix.prefixlen
    longer = f" ge {rule.shortest}" if rule.shortest != own else ""
    shorter = f" le {rule.longest}" if {rule.shortest, rule.longest} != {own} else ""
    return f"{'permit' if rule.is_permit else 'deny'} {rule.prefix}{longer}{shorter}"


def aggregate_words(aggregate: Aggregate) -> str:
    """Write an aggregate for FRR and EOS."""
    return f"aggregate-address {aggregate.prefix}{' summary-only' if aggregate.is_summary_only else ''}"


def static_route(words: Sequence[str], version: Version = 4, bgp_distance: int = EBGP_DISTANCE) -> RouterRoute | None:
    """Parse `PREFIX NEXT-HOP [distance] [tag N] [name X]`, the syntax of FRR and EOS; None for anything else."""
    prefix = network(words[0], version) if len(words) > 1 and "/" in words[0] else None
    options = ROUTE_OPTIONS.fullmatch("".join(f"{word} " for word in words[2:]))
    if prefix is None or options is None:
        return None
    via = "" if words[1].lower() in DISCARDS else words[1]
    route = RouterRoute(prefix, via, int(options[1] or 0) > bgp_distance, has_options=bool(options[0]))
    return route if not via or (":" in via) == (version == 6) else None


def routes_in_order(routes: Iterable[RouterRoute]) -> tuple[RouterRoute, ...]:
    return tuple(sorted(routes, key=lambda route: (prefix_order(route.prefix), route.via)))


def prefix_order(prefix: IpNetwork) -> tuple[int, int]:
    return int(prefix.network_address), prefix.prefixlen


def in_family(addresses: Mapping[str, Iterable[IpInterface]], version: Version) -> tuple[tuple[str, IpInterface], ...]:
    """The addresses of one family by interface, in an order that does not depend on the file."""
    every = ((name, one) for name, found in addresses.items() for one in found if one.version == version)
    return tuple(sorted(every, key=lambda found: (found[0], *prefix_order(found[1].network), int(found[1].ip))))


def insert_line(lines: list[str], place: int, line: str) -> None:
    """Insert a line; the lines keep their line ends."""
    if place and not lines[place - 1].endswith("\n"):
        lines[place - 1] += "\n"
    lines.insert(place, f"{line}\n")


def no_place(file: str, what: str) -> ConfigError:
    """Build the error for retained routing that the intended files have no place for."""
    return ConfigError(Problem(f"has no {what} to keep routing in", "deploy what adds it first", file=file))


def leaving_lists(lines: Iterable[str]) -> frozenset[str]:
    """Find the community lists that match graceful shutdown and nothing else."""
    found = [match for match in map(COMMUNITY_LIST.fullmatch, lines) if match]
    others = {match[1] for match in found if match[2] == "deny" or match[3].lower() not in GRACEFUL_SHUTDOWN}
    return frozenset(match[1] for match in found if match[1] not in others)


def in_order(lists: Mapping[str, Iterable[PrefixListEntry]]) -> Mapping[str, tuple[PrefixListEntry, ...]]:
    """Sort the entries of prefix lists by sequence number."""
    return {name: tuple(sorted(rules, key=lambda rule: rule.number)) for name, rules in lists.items()}


def clauses_in_order(maps: Mapping[str, Iterable[Clause]]) -> Mapping[str, tuple[Clause, ...]]:
    """Sort the clauses of route maps by sequence number."""
    return {name: tuple(sorted(clauses, key=lambda clause: clause.number)) for name, clauses in maps.items()}


@dataclass(slots=True)
class ClauseDraft:
    """A route-map clause under construction."""

    prefix_lists: tuple[str, ...] = ()
    has_graceful_shutdown: bool = False
    matches_graceful_shutdown: bool = False
    local_preference: int | None = None
    prepends: int = 0
    repeats: int = 0
    interface: str = ""
    unknown: list[str] = field(default_factory=list)

    def read(self, line: str, asn: int, leaving: Collection[str]) -> None:
        """Parse a line of FRR or EOS; `leaving` are the community lists of graceful shutdown."""
        match line.split(" "):
            case ["match", "ip" | "ipv6", "address", "prefix-list", name]:
                self.prefix_lists = (*self.prefix_lists, name)
            case ["match", "interface", name]:
                self.interface = name
            case ["match", "community", name] if name in leaving:
                self.matches_graceful_shutdown = True
            case ["set", "community", *words]:
                self.set_community(words, line)
            case ["set", "local-preference", text]:
                self.set_preference(text, line)
            case ["set", "as-path", "prepend", "last-as", times] if times.isdecimal():
                self.repeats = int(times)
            case ["set", "as-path", "prepend", *numbers]:
                self.prepends += len(numbers)
                if any(as_number(number) != asn for number in numbers):
                    self.unknown.append(line)
            case _:
                if not line.startswith(HARMLESS_TO_ROUTES):
                    self.unknown.append(line)

    def set_community(self, words: Iterable[str], line: str) -> None:
        wanted = {word.lower() for word in words}
        self.has_graceful_shutdown |= bool(wanted & GRACEFUL_SHUTDOWN)
        if wanted - GRACEFUL_SHUTDOWN - ADDITIVE:
            self.unknown.append(line)

    def set_preference(self, text: str, line: str) -> None:
        """Parse the local preference; relative values are not modelled."""
        self.local_preference = whole_number(text)
        if self.local_preference is None:
            self.unknown.append(line)

    def done(self, number: int, *, is_permit: bool) -> Clause:
        return Clause(
            number,
            is_permit,
            self.prefix_lists,
            self.has_graceful_shutdown,
            self.matches_graceful_shutdown,
            self.local_preference,
            self.prepends,
            self.repeats,
            self.interface,
            tuple(sorted(self.unknown)),
        )


@dataclass(slots=True)
class Peer:
    """The configuration of a neighbour or peer group; None: not configured."""

    name: str
    is_group: bool = False
    is_interface: bool = False
    group: str | None = None
    remote: str | None = None
    inbound: str | None = None
    outbound: str | None = None
    is_activated: bool | None = None
    is_shut_down: bool | None = None
    allowas_in: int | None = None
    is_drained: bool | None = None


class Peers:
    """The neighbours and peer groups of one BGP instance under construction."""

    def __init__(self) -> None:
        self._found: dict[str, Peer] = {}

    def of(self, name: str) -> Peer:
        """Find or add a neighbour or group."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = Peer(name)
        return found

    def all(self) -> Iterable[Peer]:
        return self._found.values()

    def unknown(self) -> Iterator[str]:
        """Yield the neighbours by address that are not modelled: by IPv6, or without a filter in each direction."""
        for peer in self._found.values():
            group = self._found.get(peer.group or "", Peer(""))
            has_filters = _first(peer.inbound, group.inbound) and _first(peer.outbound, group.outbound)
            is_numbered = not peer.is_group and not peer.is_interface
            if is_numbered and not (has_filters and self._is_ipv4(peer)):
                yield f"neighbor {peer.name}"

    @staticmethod
    def _is_ipv4(peer: Peer) -> bool:
        return is_address(peer.name) and ":" not in peer.name

    def external(self, asn: int, *, is_active: bool) -> tuple[BgpNeighbor, ...]:
        """Build the neighbours by IPv4 address."""
        found = (peer for peer in self._found.values() if not peer.is_group and not peer.is_interface)
        return self._built(filter(self._is_ipv4, found), asn, is_active=is_active)

    def neighbors(self, asn: int, *, is_active: bool) -> tuple[BgpNeighbor, ...]:
        """Build the neighbours with what they inherit; `is_active`: whether neighbours are activated by default."""
        found = (peer for peer in self._found.values() if peer.is_interface and not peer.is_group)
        return self._built(found, asn, is_active=is_active)

    def _built(self, peers: Iterable[Peer], asn: int, *, is_active: bool) -> tuple[BgpNeighbor, ...]:
        unknown = Peer("")
        found = []
        for peer in peers:
            group = unknown if peer.group is None else self._found.get(peer.group, unknown)
            remote = _first(peer.remote, group.remote)
            number = asn if remote == "internal" else EXTERNAL if remote == "external" else as_number(remote or "")
            is_activated = _first(peer.is_activated, group.is_activated)
            is_up = (is_active if is_activated is None else is_activated) and number is not None
            found.append(
                BgpNeighbor(
                    peer.name,
                    number or EXTERNAL,
                    _first(peer.inbound, group.inbound) or NO_MAP,
                    _first(peer.outbound, group.outbound) or NO_MAP,
                    is_up and not _first(peer.is_shut_down, group.is_shut_down),
                    _first(peer.allowas_in, group.allowas_in) or 0,
                    bool(_first(peer.is_drained, group.is_drained)),
                )
            )
        return tuple(sorted(found, key=lambda neighbor: neighbor.interface))


def _first(own: T | None, inherited: T | None) -> T | None:
    return inherited if own is None else own


def line_of(path: Path, value: str) -> str:
    """Join the last path element and the value of an entry to a line."""
    return f"{path[-1]} {value}" if value else path[-1]


class RouterReader:
    """A router under construction: what the configurations of FRR and EOS have in common."""

    def __init__(self, lines: Iterable[str], version: Version) -> None:
        """Read the AS number and the community lists, to which other lines refer, from the lines of the top level."""
        lines = tuple(lines)
        self.version: Version = version
        self.word, self.other_word = (FAMILY_WORDS[one] for one in ((4, 6) if version == 4 else (6, 4)))
        self.unknown: list[str] = []
        self.static: list[RouterRoute] = []
        self.lists: dict[str, list[PrefixListEntry]] = {}
        self.maps: dict[str, list[Clause]] = {}
        self.peers = Peers()
        self.router_id = ""
        self.is_active, self.is_shut_down = version == 4, False
        self.redistributed: str | None = None
        self.networks: list[IpNetwork] = []
        self.aggregates: list[Aggregate] = []
        own = (line.split(" ") for line in lines if line.startswith("router bgp "))
        self.asn = next((as_number(words[2]) or 0 for words in own if len(words) == 3), 0)
        self.leaving = leaving_lists(lines)

    def read_route_map(self, line: str, inner: Iterable[tuple[Path, str]]) -> None:
        words = line.split(" ")
        number = whole_number(words[3]) if len(words) == 4 else None
        if number is None:
            self.unknown.append(line)
            return
        draft = ClauseDraft()
        rows = [line_of(path, value) for path, value in inner]
        if any(row.startswith(f"match {self.other_word} address ") for row in rows):
            return  # no route of this family matches
        for row in rows:
            draft.read(row, self.asn, self.leaving)
        self.maps.setdefault(words[1], []).append(draft.done(number, is_permit=words[2] == "permit"))

    def is_announcement(self, line: str) -> bool:
        """Parse a line that originates routes; false if it is not one."""
        match line.split(" "):
            case ["aggregate-address", text, *options] if (prefix := network(text, self.version)) is not None:
                self.aggregates.append(Aggregate(prefix, "summary-only" in options))
                if options not in ([], ["summary-only"]):
                    self.unknown.append(line)
            case ["redistribute", "connected", *options]:
                has_map = options[:1] == ["route-map"] and len(options) == 2
                self.redistributed = options[1] if has_map else NO_MAP
                if options and not has_map:
                    self.unknown.append(line)
            case ["network", text, *options] if (prefix := network(text, self.version)) is not None:
                self.networks.append(prefix)
                if options:
                    self.unknown.append(line)
            case ["aggregate-address" | "network", text, *_] if network(text, 6 if self.version == 4 else 4):
                pass  # of the other family, on EOS
            case _:
                return False
        return True

    def external(self) -> tuple[BgpNeighbor, ...]:
        """The neighbours by IPv4 address: their sessions carry IPv4 only."""
        return self.peers.external(self.asn, is_active=self.is_active) if self.version == 4 else ()

    def all_unknown(self) -> tuple[str, ...]:
        return tuple(sorted({*self.unknown, *(self.peers.unknown() if self.version == 4 else ())}))

    @staticmethod
    def is_policy(peer: Peer, words: list[str]) -> bool:
        """Parse a neighbour's options for filtering routes; false if it is not one."""
        match words:
            case ["activate"] | ["no-activate"]:  # the latter is how the reader of CONFIG_DB expresses it
                peer.is_activated = words == ["activate"]
            case ["route-map", route_map, "in"]:
                peer.inbound = route_map
            case ["route-map", route_map, "out"]:
                peer.outbound = route_map
            case ["allowas-in"]:
                peer.allowas_in = DEFAULT_ALLOWAS_IN
            case ["allowas-in", times] if times.isdecimal():
                peer.allowas_in = int(times)
            case _:
                return False
        return True


def of_interface(peer: Peer, options: Sequence[str]) -> None:
    """Parse the options after `neighbor INTERFACE interface`."""
    for key, value in zip(options[::2], options[1::2], strict=False):
        if key == "peer-group":
            peer.group = value
        elif key == "remote-as":
            peer.remote = value

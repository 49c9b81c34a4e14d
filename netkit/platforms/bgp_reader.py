"""What the readers of routing share: text to values, cached because a fabric repeats itself, and peer groups."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import TypeVar

from netkit.errors import ConfigError, Problem
from netkit.platforms.config import Path
from netkit.platforms.routing import LARGEST_LENGTH, NO_MAP, Aggregate, BgpNeighbor, Clause, PrefixListEntry

ANY = IPv4Network("0.0.0.0/0")
EXTERNAL = 0
DEFAULT_ALLOWAS_IN = 3
GRACEFUL_SHUTDOWN = frozenset({"graceful-shutdown", "gshut", "65535:0", "4294901760"})
ADDITIVE = frozenset({"additive"})
COMMUNITY_LIST = re.compile(
    r"(?:bgp|ip) community-list (?:(?:standard|expanded) )?(\S+) (?:seq \d+ )?(permit|deny) (.+)"
)
HARMLESS_TO_ROUTES = ("set src ", "description ", "set metric ", "set origin ")
CACHED = 100_000
T = TypeVar("T")


@lru_cache(CACHED)
def network(text: str) -> IPv4Network | None:
    """Return an IPv4 prefix; None for what is none."""
    try:
        return IPv4Network(text, strict=False)
    except ValueError:
        return None


@lru_cache(CACHED)
def interface_address(text: str) -> IPv4Interface | None:
    """Return an IPv4 address with its length; None for what is none."""
    try:
        return IPv4Interface(text)
    except ValueError:
        return None


@lru_cache(CACHED)
def is_address(text: str) -> bool:
    """Whether a neighbour is named by an address, IPv6 included."""
    try:
        IPv4Address(text)
    except ValueError:
        return ":" in text
    return True


def as_number(text: str) -> int | None:
    """Return an AS number, written plain or dotted; None for what is none."""
    high, dot, low = text.partition(".")
    if dot and high.isdecimal() and low.isdecimal():
        return int(high) * 65536 + int(low)
    return int(text) if text.isascii() and text.isdecimal() else None


def whole_number(text: str) -> int | None:
    """Return a decimal number; None for what is none."""
    return int(text) if text.isascii() and text.isdecimal() else None


@lru_cache(CACHED)
def prefix_rule(number: int, words: str) -> PrefixListEntry | None:
    """Return `permit|deny PREFIX [ge N] [le N] [eq N]`, as FRR and EOS write it; None when it says something else."""
    action, _, rest = words.partition(" ")
    prefix, *bounds = rest.split() or [""]
    if action not in {"permit", "deny"} or len(bounds) % 2:
        return None
    lengths = dict(zip(bounds[::2], bounds[1::2], strict=True))
    if lengths.keys() - {"ge", "le", "eq"} or not all(map(str.isdecimal, lengths.values())):
        return None
    if prefix == "any":
        return PrefixListEntry(number, action == "permit", ANY, 0, LARGEST_LENGTH)
    inside = network(prefix)
    if inside is None:
        return None
    if "eq" in lengths:
        return PrefixListEntry(number, action == "permit", inside, int(lengths["eq"]), int(lengths["eq"]))
    return bounded(number, inside, lengths.get("ge", ""), lengths.get("le", ""), is_permit=action == "permit")


def bounded(number: int, inside: IPv4Network, shortest: str, longest: str, *, is_permit: bool) -> PrefixListEntry:
    """Return a rule with bounds of length that may be missing: without any, the prefix itself."""
    low = int(shortest) if shortest else inside.prefixlen
    high = int(longest) if longest else LARGEST_LENGTH if shortest else inside.prefixlen
    return PrefixListEntry(number, is_permit, inside, low, high)


def rule_words(rule: PrefixListEntry) -> str:
    """Return a rule as FRR and EOS read it, without its number."""
    own = rule.prefix.prefixlen
    longer = f" ge {rule.shortest}" if rule.shortest != own else ""
    shorter = f" le {rule.longest}" if {rule.shortest, rule.longest} != {own} else ""
    return f"{'permit' if rule.is_permit else 'deny'} {rule.prefix}{longer}{shorter}"


def aggregate_words(aggregate: Aggregate) -> str:
    """Return an aggregate as FRR and EOS read it."""
    return f"aggregate-address {aggregate.prefix}{' summary-only' if aggregate.is_summary_only else ''}"


def inserted(lines: list[str], place: int, line: str) -> None:
    """Add a line to lines that keep their ends."""
    if place and not lines[place - 1].endswith("\n"):
        lines[place - 1] += "\n"
    lines.insert(place, f"{line}\n")


def no_place(file: str, what: str) -> ConfigError:
    """Return the error for something that is to be kept where there is no place for it."""
    return ConfigError(Problem(f"has no {what} to keep routing in", "deploy what adds it first", file=file))


def leaving_lists(lines: Iterable[str]) -> frozenset[str]:
    """Return the community lists that hold graceful shutdown and nothing else."""
    found = [match for match in map(COMMUNITY_LIST.fullmatch, lines) if match]
    others = {match[1] for match in found if match[2] == "deny" or match[3].lower() not in GRACEFUL_SHUTDOWN}
    return frozenset(match[1] for match in found if match[1] not in others)


def in_order(lists: Mapping[str, Iterable[PrefixListEntry]]) -> Mapping[str, tuple[PrefixListEntry, ...]]:
    """Return prefix lists with their rules in the order in which they are tried."""
    return {name: tuple(sorted(rules, key=_number)) for name, rules in lists.items()}


def clauses_in_order(maps: Mapping[str, Iterable[Clause]]) -> Mapping[str, tuple[Clause, ...]]:
    """Return route maps with their clauses in the order in which they are tried."""
    return {name: tuple(sorted(clauses, key=_number)) for name, clauses in maps.items()}


def _number(item: PrefixListEntry | Clause) -> int:
    return item.number


@dataclass(slots=True)
class ClauseDraft:
    """A clause while it is being read."""

    prefix_lists: tuple[str, ...] = ()
    has_graceful_shutdown: bool = False
    matches_graceful_shutdown: bool = False
    local_preference: int | None = None
    prepends: int = 0
    unknown: list[str] = field(default_factory=list)

    def read(self, line: str, asn: int, leaving: Collection[str]) -> None:
        """Read a line as FRR and EOS write it, of a switch with an AS; `leaving`: lists of graceful shutdown."""
        match line.split(" "):
            case ["match", "ip", "address", "prefix-list", name]:
                self.prefix_lists = (*self.prefix_lists, name)
            case ["match", "community", name] if name in leaving:
                self.matches_graceful_shutdown = True
            case ["set", "community", *words]:
                self.set_community(words, line)
            case ["set", "local-preference", text]:
                self.set_preference(text, line)
            case ["set", "as-path", "prepend", "last-as", times] if times.isdecimal():
                self.prepends += int(times)
            case ["set", "as-path", "prepend", *numbers]:
                self.prepends += len(numbers)
                if any(as_number(number) != asn for number in numbers):
                    self.unknown.append(line)
            case _:
                if not line.startswith(HARMLESS_TO_ROUTES):
                    self.unknown.append(line)

    def set_community(self, words: Iterable[str], line: str) -> None:
        """Read the communities a clause sets."""
        wanted = {word.lower() for word in words}
        self.has_graceful_shutdown |= bool(wanted & GRACEFUL_SHUTDOWN)
        if wanted - GRACEFUL_SHUTDOWN - ADDITIVE:
            self.unknown.append(line)

    def set_preference(self, text: str, line: str) -> None:
        """Read the local preference; what is relative to another is not known."""
        self.local_preference = whole_number(text)
        if self.local_preference is None:
            self.unknown.append(line)

    def done(self, number: int, *, is_permit: bool) -> Clause:
        """Return the clause."""
        return Clause(
            number,
            is_permit,
            self.prefix_lists,
            self.has_graceful_shutdown,
            self.matches_graceful_shutdown,
            self.local_preference,
            self.prepends,
            tuple(sorted(self.unknown)),
        )


@dataclass(slots=True)
class Peer:
    """What a configuration says of a neighbour, or of a group of them; None: nothing."""

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
    """The neighbours and groups of one BGP instance while they are being read."""

    def __init__(self) -> None:
        """Begin without any."""
        self._found: dict[str, Peer] = {}

    def of(self, name: str) -> Peer:
        """Return what is known of a neighbour or group so far."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = Peer(name)
        return found

    def all(self) -> Iterable[Peer]:
        """Return the neighbours and the groups."""
        return self._found.values()

    def unknown(self) -> Iterator[str]:
        """Yield the neighbours that are not interfaces."""
        return (f"neighbor {peer.name}" for peer in self._found.values() if not peer.is_group and not peer.is_interface)

    def neighbors(self, asn: int, *, is_active: bool) -> tuple[BgpNeighbor, ...]:
        """Return the neighbours, with what their groups say; `is_active`: activated without being told so."""
        nobody = Peer("")
        found = []
        for peer in self._found.values():
            if peer.is_group or not peer.is_interface:
                continue
            group = nobody if peer.group is None else self._found.get(peer.group, nobody)
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
    """Return an entry of a section as a line."""
    return f"{path[-1]} {value}" if value else path[-1]


class RouterReader:
    """What is the same in a configuration of FRR and of EOS, while it is being read."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Begin with the lines of the top level, of which those that other lines refer to are read."""
        lines = tuple(lines)
        self.unknown: list[str] = []
        self.lists: dict[str, list[PrefixListEntry]] = {}
        self.maps: dict[str, list[Clause]] = {}
        self.peers = Peers()
        self.router_id = ""
        self.is_active, self.is_shut_down = True, False
        self.redistributed: str | None = None
        self.networks: list[IPv4Network] = []
        self.aggregates: list[Aggregate] = []
        own = (line.split(" ") for line in lines if line.startswith("router bgp "))
        self.asn = next((as_number(words[2]) or 0 for words in own if len(words) == 3), 0)
        self.leaving = leaving_lists(lines)

    def read_route_map(self, line: str, inner: Iterable[tuple[Path, str]]) -> None:
        """Read a clause of a route map."""
        words = line.split(" ")
        number = whole_number(words[3]) if len(words) == 4 else None
        if number is None:
            self.unknown.append(line)
            return
        draft = ClauseDraft()
        for path, value in inner:
            draft.read(line_of(path, value), self.asn, self.leaving)
        self.maps.setdefault(words[1], []).append(draft.done(number, is_permit=words[2] == "permit"))

    def is_announcement(self, line: str) -> bool:
        """Read what the switch announces of itself; whether the line was of that kind."""
        match line.split(" "):
            case ["aggregate-address", text, *options] if (prefix := network(text)) is not None:
                self.aggregates.append(Aggregate(prefix, "summary-only" in options))
                if options not in ([], ["summary-only"]):
                    self.unknown.append(line)
            case ["redistribute", "connected", *options]:
                has_map = options[:1] == ["route-map"] and len(options) == 2
                self.redistributed = options[1] if has_map else NO_MAP
                if options and not has_map:
                    self.unknown.append(line)
            case ["network", text, *options] if (prefix := network(text)) is not None:
                self.networks.append(prefix)
                if options:
                    self.unknown.append(line)
            case _:
                return False
        return True

    @staticmethod
    def is_policy(peer: Peer, words: list[str]) -> bool:
        """Read which routes pass between a neighbour and the switch; whether the words were about that."""
        match words:
            case ["activate"] | ["no-activate"]:  # the latter is how CONFIG_DB is put into words
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
    """Read what stands behind the interface of a neighbour."""
    for key, value in zip(options[::2], options[1::2], strict=False):
        if key == "peer-group":
            peer.group = value
        elif key == "remote-as":
            peer.remote = value

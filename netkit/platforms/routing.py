"""Model of a routing configuration, in one form for every NOS: the input of `netkit.routing`.

Each platform parses its configuration into a `Router`, whoever wrote the configuration, and merges a
`RetainedRouting` into its own files. What the model cannot express is listed in `unknown`; nothing is guessed.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network, ip_network

from netkit.platforms.config import Path

NO_MAP = ""
FILTER = re.compile(r"(?:prefix|distribute|filter)[-_]list|[-_]map\b|redistribute|allowas|allow-my-asn", re.IGNORECASE)
"""In the lines of any NOS that hold back routes or add some."""
STATIC_WORDS = ("ip route ", "ipv6 route ")
STATIC = re.compile(r"ip(?:v6)? route (?!vrf )(\S+)(?!.* vrf )")
"""A static route of the default VRF, with its prefix."""
IpAddress = IPv4Address | IPv6Address
IpInterface = IPv4Interface | IPv6Interface
IpNetwork = IPv4Network | IPv6Network


def is_within(prefix: IpNetwork, whole: IpNetwork) -> bool:
    """Whether a prefix is another one or inside it; never for two families."""
    return prefix.prefixlen >= whole.prefixlen and prefix.network_address in whole


@dataclass(frozen=True, slots=True)
class PrefixListEntry:
    """One entry of a prefix list: prefixes within `prefix` with a length from `shortest` to `longest`."""

    number: int
    is_permit: bool
    prefix: IpNetwork
    shortest: int
    longest: int

    def matches(self, prefix: IpNetwork) -> bool:
        return self.shortest <= prefix.prefixlen <= self.longest and is_within(prefix, self.prefix)


@dataclass(frozen=True, slots=True)
class Clause:
    """One entry of a route map. Without prefix lists it matches everything."""

    number: int
    is_permit: bool
    prefix_lists: tuple[str, ...] = ()
    has_graceful_shutdown: bool = False
    """Sets the community GRACEFUL_SHUTDOWN."""
    matches_graceful_shutdown: bool = False
    local_preference: int | None = None
    prepends: int = 0
    """How often it prepends the router's own AS number."""
    repeats: int = 0
    """How often it prepends the last AS number of the path again; a route of the router's own has none."""
    interface: str = ""
    """Only routes to what is connected to it; modelled for the router's own routes."""
    unknown: tuple[str, ...] = ()
    """Matches and actions outside this model, in the syntax of the NOS."""


@dataclass(frozen=True, slots=True)
class BgpNeighbor:
    """A BGP neighbour by interface or IPv4 address. `remote_asn` 0 means any other AS (`external`)."""

    interface: str
    remote_asn: int
    inbound: str = NO_MAP
    outbound: str = NO_MAP
    is_active: bool = True
    """The family is activated, and the neighbour not shut down."""
    allowas_in: int = 0
    """How often the own AS number may be in the AS path of a route."""
    is_drained: bool = False
    """Graceful shutdown of this neighbour only."""
    address: str = ""
    """Of a neighbour by address, where `interface` is the port that leads to it."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A summary that is announced while a more specific route exists."""

    prefix: IpNetwork
    is_summary_only: bool


@dataclass(frozen=True, slots=True)
class RouterRoute:
    """A static route of a switch; without a next hop it drops packets."""

    prefix: IpNetwork
    via: str = ""
    is_floating: bool = False
    """A route of BGP to the same prefix is preferred."""
    has_options: bool = field(default=False, compare=False)
    """It has a distance, tag or name, which do nothing more than that to it."""


@dataclass(frozen=True, slots=True)
class Router:
    """The routing of a switch: of IPv4, and of IPv6 in `v6`."""

    asn: int = 0
    """0: no BGP."""
    router_id: str = ""
    addresses: tuple[tuple[str, IpInterface], ...] = ()
    """(interface, address) of every interface in the default VRF; for a VLAN, the name of its SVI."""
    members: tuple[tuple[str, str], ...] = ()
    """(port, SVI): access ports and the SVI of their VLAN."""
    down: frozenset[str] = frozenset()
    """Interfaces that are shut down."""
    speeds: Mapping[str, int] = field(default_factory=dict)
    """In Gb/s, of ports with a fixed speed: a link with another one at its far end is down."""
    prefix_lists: Mapping[str, tuple[PrefixListEntry, ...]] = field(default_factory=dict)
    route_maps: Mapping[str, tuple[Clause, ...]] = field(default_factory=dict)
    neighbors: tuple[BgpNeighbor, ...] = ()
    external: tuple[BgpNeighbor, ...] = ()
    """Neighbours by IPv4 address, of the fabric or outside. `interface` is the address."""
    redistributed: str | None = None
    """The route map of `redistribute connected`; None: connected routes are not redistributed."""
    networks: tuple[IpNetwork, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    static: tuple[RouterRoute, ...] = ()
    """In the default VRF, in order."""
    max_paths: int = 1
    needs_same_path: bool = False
    """Multipath requires identical AS paths, not just equal lengths (no `multipath-relax`)."""
    is_drained: bool = False
    """Graceful shutdown of the device."""
    requires_policy: bool = True
    """Without a route map nothing is accepted or announced (RFC 8212)."""
    unknown: tuple[str, ...] = ()
    """Routing configuration outside this model: VRF leaking, other address families."""
    v6: "Router | None" = None
    """The routing of IPv6, over the same sessions; None: the family is not active."""
    sessions: tuple[BgpNeighbor, ...] = field(init=False, repr=False, compare=False)
    """All neighbours by the port that leads to them."""

    def __post_init__(self) -> None:
        found = (*self.neighbors, *self._on_ports()) if self.external else self.neighbors
        object.__setattr__(self, "sessions", found)

    def _on_ports(self) -> Iterator[BgpNeighbor]:
        ports = {(int(one.network.network_address), one.network.prefixlen): name for name, one in self.addresses}
        lengths = sorted({length for _, length in ports}, reverse=True)
        for one in self.external:
            number = int(IPv4Address(one.interface))
            keys = ((number >> (32 - length) << (32 - length), length) for length in lengths)
            if port := next((ports[key] for key in keys if key in ports), ""):
                yield replace(one, interface=port, address=one.interface)

    def without_sessions(self) -> "Router":
        v6 = self.v6 and replace(self.v6, neighbors=(), external=())
        return replace(self, neighbors=(), external=(), v6=v6)

    def doubtful_lines(self, prefixes: Collection[IpNetwork]) -> Iterator[str]:
        """Yield the lines in use that may hold back routes to these prefixes or add some, and are not in this model."""
        for side in (*self.neighbors, *self.external):
            if side.is_active and self.asn == side.remote_asn != 0 and not self._denies_all(side.inbound):
                yield f"neighbor {side.address or side.interface}: internal BGP"
        for name in dict.fromkeys(name for side in self.sessions for name in (side.inbound, side.outbound)):
            for clause in self.route_maps.get(name, ()):
                matches = (f"match interface {clause.interface}",) if clause.interface else ()
                yield from (f"route-map {name} {clause.number}: {line}" for line in (*matches, *clause.unknown))
        for clause in self.route_maps.get(self.redistributed or "", ()):
            yield from (f"route-map {self.redistributed} {clause.number}: {line}" for line in clause.unknown)
        if any(side.allowas_in for side in self.sessions):
            for name in dict.fromkeys(side.outbound for side in self.sessions):
                repeating = (clause for clause in self.route_maps.get(name, ()) if clause.repeats)
                yield from (f"route-map {name} {clause.number}: last-as beside allowas-in" for clause in repeating)
        installed = set(self.installed_static())
        for route in self.static:
            if route not in installed and _is_among(route.prefix, prefixes):
                yield f"static route {route.prefix} via {route.via}: its next hop is not known here"
        yield from (line for line in self.unknown if _may_route(line, prefixes))
        if self.v6:
            yield from self.v6.doubtful_lines(prefixes)

    def _denies_all(self, route_map: str) -> bool:
        """Whether a filter lets no route pass, whatever the neighbor announces. Without a definition, EOS permits."""
        return route_map in self.route_maps and not any(clause.is_permit for clause in self.route_maps[route_map])

    def installed_static(self) -> tuple[RouterRoute, ...]:
        """The static routes whose next hop is connected, or behind one that is: FRR installs no others.

        It also finds next hops by routes of BGP, which are not considered.
        """
        ports = ({name for name, _ in self.addresses} | {side.interface for side in self.neighbors}) - self.down
        known = {one.network for name, one in self.addresses if name not in self.down}
        found: list[RouterRoute] = []
        left = self.static
        while left:
            lengths = {one.prefixlen for one in known}
            tried = [
                (route, not route.via or route.via in ports or _is_behind(route.via, known, lengths)) for route in left
            ]
            more = [route for route, is_resolved in tried if is_resolved]
            if not more:
                break
            found += more
            left = tuple(route for route, is_resolved in tried if not is_resolved)
            known.update(route.prefix for route in more if route.prefix.prefixlen)
        return tuple(found)

    def address_towards(self, side: BgpNeighbor) -> str:
        """The own address of a session by address."""
        if not side.address:
            return ""
        peer = IPv4Address(side.address)
        on_port = (one for name, one in self.addresses if name == side.interface and one.version == peer.version)
        return next((str(one.ip) for one in on_port if peer in one.network), "")

    def has(self, port: str, address: str) -> bool:
        """Whether an address is that of a port."""
        return any(name == port and str(one.ip) == address for name, one in self.addresses)


def _is_behind(via: str, known: Collection[IpNetwork], lengths: Collection[int]) -> bool:
    """Whether an address is in one of the networks, which have these lengths; never for an interface."""
    try:
        return any(ip_network((via, length), strict=False) in known for length in lengths)
    except ValueError:
        return False


def _may_route(line: str, prefixes: Collection[IpNetwork]) -> bool:
    """Whether a line outside the model may change what happens to routes to these prefixes."""
    if not line.startswith(STATIC_WORDS):
        return FILTER.search(line) is not None
    match = STATIC.match(line)
    try:
        return match is not None and _is_among(ip_network(match[1], strict=False), prefixes)
    except ValueError:
        return True


def _is_among(prefix: IpNetwork, prefixes: Collection[IpNetwork]) -> bool:
    return prefix.prefixlen > 0 and any(prefix.overlaps(one) for one in prefixes)


@dataclass(frozen=True, slots=True)
class HostRoute:
    """A route of a host, on-link without a gateway; `is_unreachable` drops traffic."""

    prefix: IpNetwork
    gateway: str = ""
    table: int = 254
    is_unreachable: bool = False


@dataclass(frozen=True, slots=True)
class HostRail:
    """An interface of a host with its addresses, its routes, and the routing table for each source address."""

    interface: str
    addresses: tuple[IpInterface, ...]
    routes: tuple[HostRoute, ...]
    tables: tuple[tuple[IpNetwork, int], ...] = ()
    """(source, table) of the policy rules for its addresses, by priority."""
    bound_table: int | None = None
    """The table for traffic bound to the interface, such as RoCE without a source address yet; None: the main table."""


@dataclass(frozen=True, slots=True)
class HostRoutes:
    """The routing of a GPU host."""

    rails: tuple[HostRail, ...] = ()
    unknown: tuple[str, ...] = ()
    """Routes and rules outside this model."""
    v6: "HostRoutes | None" = None
    """The routing of IPv6; None: the host has none."""

    def doubtful_lines(self) -> Iterator[str]:
        """Yield the routes and rules that this model cannot express."""
        yield from self.unknown
        if self.v6:
            yield from self.v6.doubtful_lines()


@dataclass(frozen=True, slots=True)
class RetainedRouting:
    """How the configuration of a transition differs from the intended one.

    Lists have the names of the intended configuration.
    """

    rules: tuple[tuple[str, PrefixListEntry], ...] = ()
    """(prefix list, entry); the sequence numbers are unused in the intended list."""
    aggregates: tuple[Aggregate, ...] = ()
    entries: tuple[tuple[Path, str | None], ...] = ()
    """What sessions need to stay up: entries of the configuration, and None for those that come later."""

    def __bool__(self) -> bool:
        return bool(self.rules or self.aggregates or self.entries)

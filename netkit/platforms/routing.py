"""What a configuration says about routing, in one shape for every NOS: the input of `netkit.routing`.

Each platform reads its own configuration into a `Router`, so that what runs counts whoever wrote it, and writes a
`RetainedRouting` into its own files. What a platform cannot express in this shape it lists in `unknown`; nothing is
guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network

NO_MAP = ""
LARGEST_LENGTH = 32


@dataclass(frozen=True, slots=True)
class PrefixListEntry:
    """One line of a prefix list: prefixes inside `prefix` whose length is from `shortest` to `longest`."""

    number: int
    is_permit: bool
    prefix: IPv4Network
    shortest: int
    longest: int

    def matches(self, prefix: IPv4Network) -> bool:
        """Whether a prefix fits the line."""
        return self.shortest <= prefix.prefixlen <= self.longest and prefix.subnet_of(self.prefix)


@dataclass(frozen=True, slots=True)
class Clause:
    """One entry of a route map. With no list it matches everything."""

    number: int
    is_permit: bool
    prefix_lists: tuple[str, ...] = ()
    has_graceful_shutdown: bool = False
    """Sets the community GRACEFUL_SHUTDOWN."""
    matches_graceful_shutdown: bool = False
    local_preference: int | None = None
    prepends: int = 0
    unknown: tuple[str, ...] = ()
    """Matches or actions outside of this shape, as the NOS writes them."""


@dataclass(frozen=True, slots=True)
class BgpNeighbor:
    """A BGP session by interface. `remote_asn` 0 means any other AS (`external`)."""

    interface: str
    remote_asn: int
    inbound: str = NO_MAP
    outbound: str = NO_MAP
    is_active: bool = True
    """Activated for IPv4 unicast, and not shut down."""
    allowas_in: int = 0
    is_drained: bool = False
    """Graceful shutdown of this neighbour alone."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A summary that is announced while a more specific route of it exists."""

    prefix: IPv4Network
    is_summary_only: bool


@dataclass(frozen=True, slots=True)
class Router:
    """A switch as its BGP sees the world."""

    asn: int = 0
    """0: no BGP."""
    router_id: str = ""
    addresses: tuple[tuple[str, IPv4Interface], ...] = ()
    """(interface, address) of every interface in the default VRF; of a VLAN, the name of its SVI."""
    members: tuple[tuple[str, str], ...] = ()
    """(port, SVI): access ports and the SVI whose subnet they are in."""
    down: frozenset[str] = frozenset()
    """Interfaces that are shut down."""
    prefix_lists: Mapping[str, tuple[PrefixListEntry, ...]] = field(default_factory=dict)
    route_maps: Mapping[str, tuple[Clause, ...]] = field(default_factory=dict)
    neighbors: tuple[BgpNeighbor, ...] = ()
    redistributed: str | None = None
    """The route map of `redistribute connected`; None: connected routes are not redistributed."""
    networks: tuple[IPv4Network, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    max_paths: int = 1
    needs_same_path: bool = False
    """Only routes with the same AS path share load, not all that are as long (no `multipath-relax`)."""
    is_drained: bool = False
    """Graceful shutdown of the whole device."""
    requires_policy: bool = True
    """Without a route map nothing is accepted or announced (RFC 8212)."""
    unknown: tuple[str, ...] = ()
    """Lines about routing that do not fit this shape: static routes, other VRFs' leaks, other address families."""


@dataclass(frozen=True, slots=True)
class HostRoute:
    """A route of a host. Without a gateway it is on-link; `is_unreachable` drops."""

    prefix: IPv4Network
    gateway: str = ""
    table: int = 254
    is_unreachable: bool = False


@dataclass(frozen=True, slots=True)
class HostRail:
    """An interface of a host with its addresses, its routes, and the table each source address looks up."""

    interface: str
    addresses: tuple[IPv4Interface, ...]
    routes: tuple[HostRoute, ...]
    tables: tuple[tuple[IPv4Network, int], ...] = ()
    """Policy rules by source: (source, table)."""
    bound_table: int | None = None
    """The table of what is bound to the interface, as RoCE is before it has a source address; None: the main table."""


@dataclass(frozen=True, slots=True)
class HostRoutes:
    """A GPU host as its routing tables see the world."""

    rails: tuple[HostRail, ...] = ()
    unknown: tuple[str, ...] = ()
    """Routes and rules that do not fit this shape."""


@dataclass(frozen=True, slots=True)
class RetainedRouting:
    """Routing of the running configuration that an intended one is to keep for a while, so that both hold.

    Lists are named as the intended configuration names them.
    """

    rules: tuple[tuple[str, PrefixListEntry], ...] = ()
    """(prefix list, line); the numbers are free in the intended list."""
    aggregates: tuple[Aggregate, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to keep."""
        return bool(self.rules or self.aggregates)

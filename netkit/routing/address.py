"""The addresses of hosts: their routing tables, and groups that are equivalent in every state of the network."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.design.fabric import Fabric
from netkit.platforms.routing import HostRail, HostRoutes, IpAddress, IpInterface, Router
from netkit.routing.route_policy import Prefix, network_address, number_of, prefix_of

End = tuple[str, str]
"""A device and one of its ports."""
Table = tuple[tuple[tuple[Prefix, str], ...], ...]
"""The routing tables a host looks up one after another. `leaf` sends to the leaf, `link` is on-link, `drop` loses."""
MAIN_TABLE = 254


@dataclass(frozen=True, slots=True)
class Cabling:
    """Cables by either end."""

    ends: Mapping[End, End]

    @classmethod
    def of(cls, fabrics: Iterable[Fabric], left: Mapping[End, End] | None = None) -> "Cabling":
        """The cables of fabrics and additional ones; where two differ, the last one wins."""
        ends: dict[End, End] = {}
        for near, far in (left or {}).items():
            ends[near], ends[far] = far, near
        for fabric in fabrics:
            for link in fabric.links():
                near, far = (link.device, link.port), (link.peer, link.peer_port)
                ends[near], ends[far] = far, near
        return cls(ends)


@dataclass(frozen=True, slots=True)
class NicTables:
    """An address of a host, and its routing tables for each configuration of its leaf and host."""

    host: str
    interface: str
    address: IpAddress
    leaf: str
    is_on_leaf: tuple[bool, ...]
    svi: tuple[str, ...]
    """The SVI of its port, for each configuration of the leaf; empty where the port is routed."""
    tables: tuple[tuple[Table | None, ...], ...]
    """By the configuration of the leaf, which has the gateways, then of the host; None where that lacks the address."""

    def prefixes(self) -> Iterator[Prefix]:
        """Yield what its tables have routes to."""
        for table in {table for found in self.tables for table in found if table}:
            yield from (prefix for rows in table for prefix, _ in rows)


@dataclass(frozen=True, slots=True)
class AddressGroup:
    """Addresses of hosts at one leaf that are equivalent in every state."""

    nics: tuple[NicTables, ...]

    @property
    def leaf(self) -> str:
        return self.nics[0].leaf


def nic_tables(
    cabling: Cabling, routers: Mapping[str, Sequence[Router]], hosts: Mapping[str, Sequence[HostRoutes]]
) -> Iterator[NicTables]:
    ports = {name: [_on_ports(router) for router in variants] for name, variants in routers.items()}
    private = _private(hosts)
    for host, variants in hosts.items():
        named = dict.fromkeys(
            (rail.interface, one.ip) for routes in variants for rail in routes.rails for one in rail.addresses
        )
        for interface, ip in named:
            leaf, port = cabling.ends.get((host, interface), ("", ""))
            if leaf not in routers:
                continue
            found = [on.get(port, ()) for on in ports[leaf]]
            is_on_leaf = tuple(any(ip in one.network for one in each) for each in found)
            svi = tuple(dict(router.members).get(port, "") for router in routers[leaf])
            tables = tuple(
                tuple(_table(routes, interface, ip, {str(one.ip) for one in each}, private) for routes in variants)
                for each in found
            )
            yield NicTables(host, interface, ip, leaf, is_on_leaf, svi, tables)


def _private(hosts: Mapping[str, Sequence[HostRoutes]]) -> frozenset[Prefix]:
    """The prefixes of links that one NIC shares with its leaf alone: no other has an address in them."""
    addresses = {
        (host, rail.interface, one)
        for host, variants in hosts.items()
        for routes in variants
        for rail in routes.rails
        for one in rail.addresses
    }
    found = {prefix_of(one.network) for _, _, one in addresses}
    owners: dict[Prefix, set[tuple[str, str]]] = {prefix: set() for prefix in found}
    lengths = {length for _, length in found}
    for host, interface, one in addresses:
        for prefix in ((network_address(number_of(one.ip), length), length) for length in lengths):
            if prefix in owners:
                owners[prefix].add((host, interface))
    return frozenset(prefix for prefix, names in owners.items() if len(names) == 1)


def _on_ports(router: Router) -> Mapping[str, tuple[IpInterface, ...]]:
    """The addresses a host at each port sees: those of the port, or of its VLAN."""
    found: dict[str, tuple[IpInterface, ...]] = defaultdict(tuple)
    for interface, address in router.addresses:
        if interface not in router.down:
            found[interface] += (address,)
    for port, vlan in router.members:
        if port not in router.down and vlan in found:
            found[port] += found[vlan]
    return found


def _table(
    routes: HostRoutes, interface: str, ip: IpAddress, gateways: set[str], private: frozenset[Prefix]
) -> Table | None:
    """The routing tables for a source address of the host; None if the host does not have it."""
    rail = next((one for one in routes.rails if one.interface == interface), None)
    own = next((one for one in rail.addresses if one.ip == ip), None) if rail else None
    if rail is None or own is None:
        return None
    looked_up = (*(table for source, table in rail.tables if ip in source), MAIN_TABLE)
    return tuple(tuple(sorted(_rows(routes, rail, table, gateways, private).items())) for table in looked_up)


def _rows(
    routes: HostRoutes, rail: HostRail, table: int, gateways: set[str], private: frozenset[Prefix]
) -> dict[Prefix, str]:
    """One routing table: traffic towards another rail's interface counts as dropped."""
    rows: dict[Prefix, str] = {}
    for other in sorted(routes.rails, key=lambda one: one is not rail):
        for route in other.routes:
            # A private link leads to the leaf alone; without it, hosts at one leaf are alike.
            if route.table == table and (route.gateway or prefix_of(route.prefix) not in private):
                verdict = "leaf" if route.gateway else "link"
                if route.is_unreachable or other is not rail or (route.gateway and route.gateway not in gateways):
                    verdict = "drop"
                rows.setdefault(prefix_of(route.prefix), verdict)
        if table == MAIN_TABLE:
            for address in (one for one in other.addresses if prefix_of(one.network) not in private):
                rows.setdefault(prefix_of(address.network), "link" if other is rail else "drop")
    return rows


def address_groups(nics: Iterable[NicTables], prefixes: Collection[Prefix]) -> Iterator[AddressGroup]:
    """Group addresses at the same leaf that the same prefixes cover, and whose hosts treat them alike."""
    lengths = {length for _, length in prefixes}
    found: dict[object, list[NicTables]] = defaultdict(list)
    for nic in nics:
        number = number_of(nic.address)
        covering = ((network_address(number, length), length) for length in lengths)
        cover = frozenset(one for one in covering if one in prefixes)
        # Hosts change one after another, so those that change are separate.
        host = nic.host if any(len(set(tables)) > 1 for tables in nic.tables) else ""
        found[nic.leaf, cover, nic.is_on_leaf, nic.svi, nic.tables, host].append(nic)
    return (AddressGroup(tuple(members)) for members in found.values())


def prefix_layers(
    groups: Sequence[AddressGroup], origins: Mapping[tuple[str, int], frozenset[Prefix]]
) -> list[dict[Prefix, int]]:
    """Return, layer by layer, which groups each prefix covers: in the first layer by the longest match."""
    prefixes = {prefix for found in origins.values() for prefix in found}
    lengths = sorted({length for _, length in prefixes}, reverse=True)
    layers: list[dict[Prefix, int]] = []
    for index, group in enumerate(groups):
        number = number_of(group.nics[0].address)
        covering = [(network_address(number, length), length) for length in lengths]
        for depth, prefix in enumerate(one for one in covering if one in prefixes):
            if depth == len(layers):
                layers.append({})
            layers[depth][prefix] = layers[depth].get(prefix, 0) | 1 << index
    return layers

"""Reasons to refuse the pools of an intent: too small, overlapping, or cut in a way that does not fit."""

from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from netkit.design.numbering import LEAF_ASN_OFFSET, LEAF_LENGTH_V6, Numbering, bits_for
from netkit.errors import Path, Problem
from netkit.intent.model import Intent, Management

ANYONE = IPv4Network("0.0.0.0/0")
LAST_ASN = 4_294_967_294


def problems(intent: Intent, numbering: Numbering) -> Iterator[Problem]:
    """Yield every pool that is too small or overlaps another."""
    links = {"pools.links": intent.pools.links} if intent.pools.links else {}
    named = {"pools.loopbacks": intent.pools.loopbacks, "pools.hosts": intent.pools.hosts, **links}
    if intent.management:
        named["management.pool"] = intent.management.pool
        if intent.management.gateway not in intent.management.pool:
            yield Problem(
                f"the gateway {intent.management.gateway} is outside {intent.management.pool}",
                "name an address of the pool",
                ("management", "gateway"),
            )
        if ANYONE in intent.management.allow:
            message = f"{ANYONE} is everyone"
            yield Problem(
                message, "name the networks you manage from, or leave the list empty", ("management", "allow")
            )
    for name, pool in named.items():
        if pool.is_multicast or pool.is_loopback or pool.is_link_local or pool.network_address.is_unspecified:
            yield Problem(
                f"{pool} cannot number devices", "use unicast addresses, such as 10.128.0.0/16", tuple(name.split("."))
            )
    names = list(named)
    for index, name in enumerate(names):
        for other in names[index + 1 :]:
            if named[name].overlaps(named[other]):
                message = f"{named[other]} overlaps {name} {named[name]}"
                yield Problem(message, "choose pools that do not overlap", tuple(other.split(".")))
    for needs, path, name in (
        (numbering.pool_needs(), ("pools", "loopbacks"), "loopbacks"),
        (numbering.management_needs(), ("management", "pool"), "management"),
    ):
        for role, (needed, there) in needs.items():
            if needed > there:
                share = {"leaf": "lower half", "spine": "third quarter", "core": "last quarter"}[role]
                message = (
                    f"the {share} of the {name} pool has {there} addresses for {role} switches,"
                    f" the ceilings need {needed}"
                )
                yield Problem(message, "use a larger pool or lower the ceilings", path)
    yield from _links(intent, numbering)
    yield from _ipv6(intent)
    yield from _as_numbers(intent, numbering)
    yield from _lengths(intent, numbering)
    yield from _rails(intent, numbering)


def _links(intent: Intent, numbering: Numbering) -> Iterator[Problem]:
    """Yield why links between switches cannot have addresses of the pool."""
    path: Path = ("pools", "links")
    if intent.pools.links and intent.topology == "rail-only":
        yield Problem("a rail-only fabric has no links between switches", "remove it", path)
    if intent.pools.links and intent.pools.loopbacks_v6:
        message = "a session between IPv4 addresses has no next hop for routes of IPv6"
        yield Problem(message, "remove it, or the IPv6 pools of the fabric", path)
    for role, (needed, there) in numbering.link_needs().items():
        if needed > there:
            part = {"leaf": "lower half", "spine": "upper half"}[role] if intent.switches.core else "pool"
            message = f"the {part} has {there} addresses for links of {role} switches, the ceilings need {needed}"
            yield Problem(message, "use a larger pool or lower the ceilings", path)


def _ipv6(intent: Intent) -> Iterator[Problem]:
    """Yield IPv6 pools that cannot number what the IPv4 pools do, and what does not go with them."""
    pools, management = intent.pools, intent.management
    found: dict[str, IPv6Network] = {}
    for name, pool, longest, lack in _pools_v6(intent):
        path: Path = tuple(name.split("."))
        if pool.is_multicast or pool.is_loopback or pool.is_link_local or pool.network_address.is_unspecified:
            yield Problem(f"{pool} cannot number devices", "use unicast addresses, such as fd00:128::/48", path)
        elif pool.prefixlen > longest:
            yield Problem(f"{pool} has {lack}", f"use a length of {longest} or less", path)
        for other, taken in found.items():
            if pool.overlaps(taken):
                yield Problem(f"{pool} overlaps {other} {taken}", "choose pools that do not overlap", path)
        found[name] = pool
    if pools.hosts_v6 and pools.loopbacks_v6 is None:
        message = "the switches have no IPv6 addresses to answer from"
        yield Problem(message, "give loopbacks_v6 too", ("pools", "hosts_v6"))
    if not (management.pool_v6 if management else pools.loopbacks_v6):
        yield from _servers_v6(intent)
    if management:
        yield from _management_v6(management, is_routed=pools.loopbacks_v6 is not None)


def _pools_v6(intent: Intent) -> Iterator[tuple[str, IPv6Network, int, str]]:
    """Yield the IPv6 pools that are given, with the longest prefix that suffices, and what lacks in a longer one."""
    pools, management = intent.pools, intent.management
    units = intent.ceilings.pods * intent.ceilings.units
    if pools.hosts_v6:
        longest = LEAF_LENGTH_V6 - bits_for(units) - bits_for(intent.rails)
        lack = f"no /{LEAF_LENGTH_V6} for each of {units} leaves on each of {intent.rails} rails"
        yield "pools.hosts_v6", pools.hosts_v6, longest, lack
    beside = [("pools.loopbacks_v6", pools.loopbacks_v6, pools.loopbacks)]
    beside += [("management.pool_v6", management.pool_v6, management.pool)] if management else []
    for name, pool, other in beside:
        if pool:
            yield name, pool, 96 + other.prefixlen, f"fewer addresses than {other}, whose places it takes"


def _servers_v6(intent: Intent) -> Iterator[Problem]:
    """Yield servers with IPv6 addresses, of an intent whose switches have none to ask from."""
    services, key = intent.services, "management.pool_v6" if intent.management else "pools.loopbacks_v6"
    servers: list[tuple[Path, IPv4Address | IPv6Address]] = [
        *((("services", "ntp", index), one) for index, one in enumerate(services.ntp)),
        *((("services", "dns", index), one) for index, one in enumerate(services.dns)),
        *((("services", "syslog", index, "address"), one.address) for index, one in enumerate(services.syslog)),
    ]
    for path, address in servers:
        if address.version == 6:
            message = f"{address} is an IPv6 address, and the switches have none to ask from"
            yield Problem(message, f"give {key} too", path)


def _management_v6(management: Management, *, is_routed: bool) -> Iterator[Problem]:
    pool, gateway = management.pool_v6, management.gateway_v6
    if management.allow and (pool or is_routed):
        message = "the lists of allow are of IPv4: over IPv6 everyone would still reach the switches"
        yield Problem(message, "remove it, or the IPv6 pools of switches", ("management", "allow"))
    if pool and gateway is None:
        yield Problem("there is no gateway_v6", "give both, or none", ("management", "pool_v6"))
    elif gateway and pool is None:
        yield Problem("there is no pool_v6", "give both, or none", ("management", "gateway_v6"))
    elif pool and gateway and gateway not in pool:
        message = f"the gateway {gateway} is outside {pool}"
        yield Problem(message, "name an address of the pool", ("management", "gateway_v6"))


def _lengths(intent: Intent, numbering: Numbering) -> Iterator[Problem]:
    """Yield given prefix lengths that leave too few addresses."""
    for key, given, longest, what in (
        ("link_length", intent.pools.link_length, numbering.longest_link, "addresses_per_nic"),
        ("leaf_length", intent.pools.leaf_length, numbering.longest_leaf, "hosts_per_unit"),
    ):
        if given and given > longest:
            message = f"a /{given} has no room for what ceilings.{what} allows"
            yield Problem(message, f"use {longest} or less", ("pools", key))
    if intent.pools.link_length and intent.attachment == "vlan":
        yield Problem("there are no links with vlan attachment", "remove it", ("pools", "link_length"))


def _rails(intent: Intent, numbering: Numbering) -> Iterator[Problem]:
    """Yield rails whose prefixes hold too few leaves, lie outside the pool or overlap, and rows that do not fit."""
    units, pool = intent.ceilings.pods * intent.ceilings.units, intent.pools.hosts
    derived = set(range(intent.rails)) - numbering.own_rails.keys()
    if derived and (_room(numbering.rail_length, numbering.leaf_length) < units or numbering.rail_length > 30):
        room = _room(numbering.rail_length, numbering.leaf_length)
        prefixes = f"{room} leaf prefixes of /{numbering.leaf_length} on each rail"
        message = f"{pool} holds {prefixes}, the ceilings need {units}"
        yield Problem(message, "use a larger pool or lower the ceilings", ("pools", "hosts"))
        return
    seen: set[int] = set()
    for index, entry in enumerate(intent.tables.rails):
        path: Path = ("tables", "rails", index)
        own, length = entry.prefix, numbering.leaf_length
        if entry.rail >= intent.rails:
            remedy = f"use 0 to {intent.rails - 1}, or raise rails"
            yield Problem(f"there is no rail {entry.rail}", remedy, (*path, "rail"))
        elif entry.rail in seen:
            yield Problem(f"rail {entry.rail} has a row already", "keep one", path)
        elif own and not own.subnet_of(pool):
            remedy = "choose it within pools.hosts, or enlarge that"
            yield Problem(f"{own} is outside {pool}", remedy, (*path, "prefix"))
        elif own and (room := _room(own.prefixlen, length)) < units:
            message = f"{own} holds {room} leaf prefixes of /{length}, the ceilings need {units}"
            yield Problem(message, "use a larger prefix or lower the ceilings", (*path, "prefix"))
        elif own:
            of_rails = {other: IPv4Network(numbering.rail_prefix(other)) for other in range(intent.rails)}
            yield from _overlaps(of_rails, numbering.own_rails, entry.rail, (*path, "prefix"))
        if entry.prefix_v6 and entry.rail < intent.rails:
            yield from _rail_v6(intent, numbering, entry.rail, entry.prefix_v6, (*path, "prefix_v6"))
        if entry.vlan and intent.attachment == "p2p":
            yield Problem("p2p attachment has no VLANs", "clear it, or set attachment: vlan", (*path, "vlan"))
        seen.add(entry.rail)


def _rail_v6(intent: Intent, numbering: Numbering, rail: int, own: IPv6Network, path: Path) -> Iterator[Problem]:
    units, pool = intent.ceilings.pods * intent.ceilings.units, intent.pools.hosts_v6
    if pool is None:
        yield Problem("there is no pools.hosts_v6", "give it too, or clear the cell", path)
    elif not own.subnet_of(pool):
        yield Problem(f"{own} is outside {pool}", "choose it within pools.hosts_v6, or enlarge that", path)
    elif (room := _room(own.prefixlen, LEAF_LENGTH_V6)) < units:
        message = f"{own} holds {room} leaf prefixes of /{LEAF_LENGTH_V6}, the ceilings need {units}"
        yield Problem(message, "use a larger prefix or lower the ceilings", path)
    else:
        prefixes = {other: IPv6Network(numbering.rail_prefix_v6(other)) for other in range(intent.rails)}
        yield from _overlaps(prefixes, numbering.own_rails_v6, rail, path)


def _room(rail_length: int, leaf_length: int) -> int:
    """How many prefixes of leaves fit into one of a rail."""
    return 1 << leaf_length - rail_length if leaf_length >= rail_length else 0


def _overlaps(
    prefixes: Mapping[int, IPv4Network | IPv6Network], given: Collection[int], rail: int, path: Path
) -> Iterator[Problem]:
    """Yield the first other rail that the prefix of a rail overlaps; of two given ones, the later is reported."""
    for other, prefix in prefixes.items():
        if other == rail or (other in given and other > rail):
            continue
        if prefixes[rail].overlaps(prefix):
            message = f"{prefixes[rail]} overlaps {prefix} of rail {other}"
            yield Problem(message, "choose prefixes that do not overlap; the other rail can have a row too", path)
            return


def _as_numbers(intent: Intent, numbering: Numbering) -> Iterator[Problem]:
    base, counts = intent.pools.asn_base, numbering.counts
    upper = counts["spine"] if intent.routing.spine_asn == "unique" else intent.ceilings.pods
    if upper >= LEAF_ASN_OFFSET:
        room = LEAF_ASN_OFFSET - 1
        message = f"the ceilings allow {upper} AS numbers for spines, there is room for {room} below the leaves'"
        yield Problem(message, "lower the ceilings, or set routing.spine_asn: shared", ("ceilings",))
    last = base + LEAF_ASN_OFFSET + counts["leaf"] - 1
    if last > LAST_ASN:
        message = f"the last leaf would get AS number {last}, the largest there is is {LAST_ASN}"
        yield Problem(message, f"use {LAST_ASN - last + base} or less", ("pools", "asn_base"))

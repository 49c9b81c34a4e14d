"""Surveyed configurations → values of an intent for the whole fabric."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Network, collapse_addresses
from typing import TypeVar

from netkit.adopt.names import some
from netkit.adopt.placement import Placement
from netkit.adopt.survey import Survey, SurveyedSwitch, rails_of
from netkit.design.lossless import ecn
from netkit.design.numbering import LEAF_ASN_OFFSET, Numbering
from netkit.intent.model import Intent, Lossless
from netkit.platforms.existing import ExistingEcn, ExistingPort, ExistingQos, most
from netkit.platforms.routing import PrefixListEntry
from netkit.routing.route_policy import clauses_of, permitted, prefix_of

T = TypeVar("T")
AnyNetwork = TypeVar("AnyNetwork", IPv4Network, IPv6Network)
SpeedOf = Callable[[str, ExistingPort], int | None]
"""(name of a switch, one of its ports) → speed in Gb/s."""
Values = dict[str, object]
MAIN_TABLE = 254
HOST_LENGTH = 32
LINK_LENGTH = 31
PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15")))
USUAL_DSCP = 26
"""Of RoCE data."""
DEFAULT_SNMP_SECRETS = {"auth_secret": "SNMP_AUTH", "priv_secret": "SNMP_PRIV"}
LOGIN_NEEDS = "LOGIN_HASH"


@dataclass
class Assumptions:
    """What was not read, by section of the intent."""

    found: list[tuple[str, str]] = field(default_factory=list)

    def add(self, section: str, text: str) -> None:
        if (section, text) not in self.found:
            self.found.append((section, text))


@dataclass(frozen=True)
class Addressing:
    """The pools, and the prefix of each rail and leaf."""

    loopbacks: IPv4Network
    hosts: IPv4Network
    leaf_length: int
    link_length: int
    attachment: str
    leaf_prefixes: Mapping[str, IPv4Network]
    rail_prefixes: Mapping[int, IPv4Network]
    """Empty where hosts have a route to each leaf."""
    links: tuple[IPv4Network, ...] = ()
    """Of links between switches; empty: sessions are unnumbered."""
    unnumbered: bool = False
    """Whether any session is."""


def addressing(survey: Survey, placement: Placement, guesses: Assumptions) -> Addressing:
    """Read the pools from prefix lists and routes of hosts; what they lack follows from the addresses."""
    leaves = [survey.switches[name] for name in placement.of_role("leaf") if name in survey.switches]
    attachment = "vlan" if sum(bool(leaf.members) for leaf in leaves) * 2 > len(leaves) else "p2p"
    links_of = {leaf.name: _host_networks(leaf) for leaf in leaves}
    link_length = most(net.prefixlen for nets in links_of.values() for net in nets) or LINK_LENGTH
    entries = list(dict.fromkeys(_entries(survey)))
    prefixes = {leaf.name: _leaf_prefix(leaf, links_of[leaf.name], attachment) for leaf in leaves}
    lists = _pools(entries, [prefix for prefix in prefixes.values() if prefix])
    length = most(prefix.prefixlen for prefix in prefixes.values() if prefix) or most(low for _, low in lists)
    if length is None:  # nothing summarises: as small as all leaves allow
        length = min((smallest(nets).prefixlen for nets in links_of.values() if nets), default=link_length)
    prefixes = {
        name: prefix if prefix and prefix.prefixlen == length else _around(links_of[name], length)
        for name, prefix in prefixes.items()
    }
    found = {name: prefix for name, prefix in prefixes.items() if prefix} | dict(_of_unread(survey, placement, length))
    rails = _rail_prefixes(survey, placement, length)
    rail_of = {prefix: placement.places[leaf].rail for leaf, prefix in found.items()}
    if any(rail_of[net] != rail and net.overlaps(prefix) for net in rail_of for rail, prefix in rails.items()):
        rails = {}  # a route to all rails
    links = tuple(collapse_addresses(_link_networks(survey)))
    entries = [row for row in entries if not any(row.prefix.overlaps(link) for link in links)]
    lists = [(pool, low) for pool, low in lists if not any(pool.overlaps(link) for link in links)]
    inside = (*found.values(), *rails.values())
    loopbacks = _loopback_pool(survey, entries, inside, guesses)
    hosts = _host_pool(survey, [one for one in lists if not one[0].overlaps(loopbacks)], inside, guesses)
    if not survey.hosts:
        rails = _rails_around(found, placement, hosts)
    rails |= free_prefixes(rails, hosts, placement.rails)
    unnumbered = any(not one.address for switch in survey.switches.values() for one in switch.sessions)
    return Addressing(loopbacks, hosts, length, link_length, attachment, found, rails, links, unnumbered)


def _link_networks(survey: Survey) -> Iterator[IPv4Network]:
    for switch in survey.switches.values():
        yield from (switch.addresses[one.interface].network for one in switch.sessions if one.address)


def link_pool(addresses: Addressing, values: Values) -> IPv4Network:
    """Return a pool for the addresses of links up to the ceilings: around those there are, or else a free one."""
    taken = [addresses.loopbacks, addresses.hosts]
    if isinstance(management := values.get("management"), dict):
        taken.append(IPv4Network(str(management["pool"])))
    pools = values["pools"] if isinstance(values["pools"], dict) else {}
    pool = smallest(addresses.links)
    while not _has_room(pool, values | {"pools": pools | {"links": str(pool)}}):
        pool = pool.supernet()
    if not any(pool.overlaps(one) for one in taken):
        return pool
    taken += addresses.links
    free = (
        one for block in PRIVATE if block.prefixlen <= pool.prefixlen for one in _free(block, pool.prefixlen, taken)
    )
    return next(free, pool)


def _has_room(pool: IPv4Network, values: Values) -> bool:
    needs = Numbering(Intent.model_validate(values)).link_needs()
    return pool.prefixlen == 0 or all(needed <= there for needed, there in needs.values())


def _of_unread(survey: Survey, placement: Placement, length: int) -> Iterator[tuple[str, IPv4Network]]:
    """Yield the prefixes of leaves that were not read, from the NICs on them."""
    networks: dict[str, list[IPv4Network]] = {}
    for host in survey.hosts.values():
        for interface, address in rails_of(host):
            leaf = placement.leaf_of.get((host.name, interface), "")
            if leaf and leaf not in survey.switches:
                networks.setdefault(leaf, []).append(address.network)
    for leaf, found in networks.items():
        if prefix := _around(found, length):
            yield leaf, prefix


def _host_networks(leaf: SurveyedSwitch) -> list[IPv4Network]:
    return [leaf.addresses[leaf.members.get(port, port)].network for port in leaf.host_ports]


def _leaf_prefix(leaf: SurveyedSwitch, networks: list[IPv4Network], attachment: str) -> IPv4Network | None:
    """Return the subnet of the VLAN, the summary of the links, or the one link."""
    if attachment == "vlan":
        return most(leaf.addresses[interface].network for interface in leaf.members.values())
    own = (one.prefix for one in leaf.router.aggregates if isinstance(one.prefix, IPv4Network))
    covering = [prefix for prefix in own if any(net.subnet_of(prefix) for net in networks)]
    if covering:
        return max(covering, key=lambda prefix: prefix.prefixlen)
    return networks[0] if len(networks) == 1 else None


def _around(networks: list[IPv4Network], length: int) -> IPv4Network | None:
    """Return the prefix of a length around the first network."""
    if not networks:
        return None
    first = min(networks, key=lambda net: int(net.network_address))
    return first.supernet(new_prefix=min(length, first.prefixlen)) if first.prefixlen >= length else first


def _entries(survey: Survey) -> Iterator[PrefixListEntry]:
    """Yield the permitting entries of prefix lists that no external peer uses."""
    for switch in survey.switches.values():
        maps = {name for peer in switch.external for name in (peer.inbound, peer.outbound)}
        outside = {
            name for one in maps for clause in switch.router.route_maps.get(one, ()) for name in clause.prefix_lists
        } | maps
        for name, rows in switch.router.prefix_lists.items():
            if name not in outside:
                yield from (row for row in rows if row.is_permit and row.prefix.prefixlen)


def _pools(entries: Iterable[PrefixListEntry], prefixes: list[IPv4Network]) -> list[tuple[IPv4Network, int]]:
    """Return (pool, length of leaf prefixes) of entries that let all prefixes of leaves through, widest first."""
    found = {
        (row.prefix, row.shortest)
        for row in entries
        if isinstance(row.prefix, IPv4Network)
        and row.shortest == row.longest < HOST_LENGTH
        and row.shortest > row.prefix.prefixlen
        and prefixes
        and all(prefix.subnet_of(row.prefix) and prefix.prefixlen == row.shortest for prefix in prefixes)
    }
    return sorted(found, key=lambda one: (one[0].prefixlen, one[0]))


def _host_pool(
    survey: Survey, lists: list[tuple[IPv4Network, int]], inside: Iterable[IPv4Network], guesses: Assumptions
) -> IPv4Network:
    refused = most(
        route.prefix
        for host in survey.hosts.values()
        for rail in host.routes.rails
        for route in rail.routes
        if isinstance(route.prefix, IPv4Network) and route.is_unreachable and route.table != MAIN_TABLE
    )
    nets = list(inside)
    for pool in (refused, *(pool for pool, _ in lists)):
        if pool and all(net.subnet_of(pool) for net in nets):
            return pool
    guesses.add("pools", "hosts: the smallest network that contains all addresses of hosts")
    return smallest(nets) if nets else IPv4Network("10.128.0.0/10")


def _loopback_pool(
    survey: Survey, entries: Iterable[PrefixListEntry], hosts: Iterable[IPv4Network], guesses: Assumptions
) -> IPv4Network:
    loopbacks = [address.network for switch in survey.switches.values() if (address := switch.loopback)]
    pools = {
        row.prefix
        for row in entries
        if isinstance(row.prefix, IPv4Network)
        and row.longest == HOST_LENGTH
        and row.prefix.prefixlen < HOST_LENGTH
        and all(net.subnet_of(row.prefix) for net in loopbacks)
        and not any(row.prefix.overlaps(net) for net in hosts)
    }
    if pools:
        return min(pools, key=lambda pool: (pool.prefixlen, pool))
    guesses.add("pools", "loopbacks: the smallest network that contains all loopbacks")
    return smallest(loopbacks) if loopbacks else IPv4Network("10.255.0.0/16")


def smallest(networks: Iterable[AnyNetwork]) -> AnyNetwork:
    """Return the smallest network around several."""
    merged = list(collapse_addresses(networks))
    around = merged[0]
    while not all(net.subnet_of(around) for net in merged):
        around = around.supernet()
    return around


def _rail_prefixes(survey: Survey, placement: Placement, leaf_length: int) -> dict[int, IPv4Network]:
    """Return the prefix of each rail that hosts have routes to; empty if those are the prefixes of leaves.

    The route in the main table is to the host's own rail. Others may be to rails of which no leaf is installed yet.
    """
    own: dict[int, list[IPv4Network]] = {}
    others: set[IPv4Network] = set()
    for host in survey.hosts.values():
        for rail in host.routes.rails:
            place = placement.places.get(placement.leaf_of.get((host.name, rail.interface), ""))
            for route in rail.routes if place else ():
                if isinstance(route.prefix, IPv4Network) and route.gateway and route.prefix.prefixlen < leaf_length:
                    others.add(route.prefix)
                    if place and route.table == MAIN_TABLE:
                        own.setdefault(place.rail, []).append(route.prefix)
    chosen = {number: prefix for number, prefixes in own.items() if (prefix := most(prefixes))}
    if len(set(chosen.values())) != len(chosen):
        return {}
    return chosen | rails_to_come(chosen, sorted(others - set(chosen.values())))


def _rails_around(leaves: Mapping[str, IPv4Network], placement: Placement, pool: IPv4Network) -> dict[int, IPv4Network]:
    """Return the widest prefixes of equal length that contain the leaves of one rail each; empty if there are none."""
    longest = min((prefix.prefixlen for prefix in leaves.values()), default=0)
    for length in range(pool.prefixlen + (placement.rails - 1).bit_length(), longest + 1):
        found = {(placement.places[leaf].rail, one.supernet(new_prefix=length)) for leaf, one in leaves.items()}
        rails = dict(found)
        if len(found) == len(rails) == len(set(rails.values())):
            return rails
    return {}


def rails_to_come(known: Mapping[int, AnyNetwork], others: list[AnyNetwork]) -> dict[int, AnyNetwork]:
    """Give the prefixes of rails without a leaf, in order, the free numbers."""
    if not known or any(one.overlaps(prefix) for one in others for prefix in known.values()):
        return {}
    free = (number for number in range(len(known) + len(others) + max(known)) if number not in known)
    return dict(zip(free, others, strict=False))


def free_prefixes(known: Mapping[int, AnyNetwork], pool: AnyNetwork, rails: int) -> dict[int, AnyNetwork]:
    """Give rails that no route names a free prefix of the pool, so that it does not overlap those of the others."""
    missing = [rail for rail in range(rails) if rail not in known] if known else []
    taken, found = list(known.values()), dict[int, AnyNetwork]()
    length = max((prefix.prefixlen for prefix in taken), default=0)
    for rail, prefix in zip(missing, _free(pool, length, taken), strict=False):
        found[rail] = prefix
    return found


def _free(pool: AnyNetwork, length: int, taken: list[AnyNetwork]) -> Iterator[AnyNetwork]:
    size, start = 1 << (pool.max_prefixlen - length), int(pool.network_address)
    while start <= int(pool.broadcast_address):
        prefix = type(pool)((start, length))
        around = next((one for one in taken if one.overlaps(prefix)), None)
        if around is None:
            yield prefix
        start = start + size if around is None else max(int(around.broadcast_address) + 1, start + size)


# --- lossless, routing, services ------------------------------------------------------------------------------------


def of_most(switches: Iterable[SurveyedSwitch], read: Callable[[SurveyedSwitch], T | None]) -> T | None:
    """Return what most switches have."""
    return most(read(switch) for switch in switches)


@dataclass(frozen=True)
class _QosOfMost:
    """The classes of traffic, as most switches have them."""

    read: tuple[ExistingQos, ...]

    def one(self, read: Callable[[ExistingQos], T | None]) -> T | None:
        return most(map(read, self.read))

    @property
    def weights(self) -> dict[int, int]:
        return dict(self.one(lambda qos: tuple(qos.weights.items()) or None) or ())

    @property
    def dscp_to_priority(self) -> dict[int, int]:
        return dict(self.one(lambda qos: tuple(sorted(qos.dscp_to_priority.items())) or None) or ())


def lossless(survey: Survey, speed_of: SpeedOf) -> Values:
    """Return the lossless profile as most switches and hosts have it."""
    found = [switch.existing.qos for switch in survey.switches.values()]
    usual = _QosOfMost(tuple(qos for qos in found if qos != ExistingQos()))
    nics = [host.existing.qos for host in survey.hosts.values()]
    priority = usual.one(lambda qos: qos.lossless[0] if qos.lossless else None)
    priority = priority if priority is not None else most(nic.priority for nic in nics)
    strict = usual.one(lambda qos: next((one for one in qos.strict if one and one not in qos.lossless), None))
    strict = strict if strict is not None else most(nic.cnp_priority for nic in nics)
    weights = usual.weights or dict(most(tuple(nic.weights.items()) or None for nic in nics) or ())
    best, shares = _weights(weights, priority, strict)
    data, cnp = most(nic.dscp for nic in nics), most(nic.cnp_dscp for nic in nics)
    return _given(
        roce=_given(priority=priority, dscp=_roce_dscps(usual, data, priority), weight=shares[0]),
        cnp=_given(
            priority=strict,
            dscp=_cnp_dscp(usual, cnp, strict),
            shape_percent=usual.one(lambda qos: qos.cnp_shape_percent),
        ),
        best_effort=_given(priority=best, weight=shares[1]),
        ecn=_ecn(survey, speed_of),
        watchdog=_watchdog(usual),
        pool_percent=usual.one(lambda qos: qos.pool_percent),
    )


def _weights(
    weights: Mapping[int, int], roce: int | None, cnp: int | None
) -> tuple[int | None, tuple[int | None, int | None]]:
    """Return the priority of best effort, and the shares of RoCE and best effort."""
    others = {key: share for key, share in weights.items() if key not in {roce, cnp}}
    if roce is None or roce not in weights or len(others) != 1:
        return None, (None, None)
    ((best, share),) = others.items()
    return best, (weights[roce], share)


def _roce_dscps(usual: _QosOfMost, marked: int | None, priority: int | None) -> list[int] | None:
    """Return the DSCP that hosts mark with, and those that switches map beyond the usual blocks of eight."""
    if priority is None:
        return None
    beyond = [dscp for dscp, one in usual.dscp_to_priority.items() if one == priority and dscp // 8 != priority]
    unmarked = [] if beyond else [USUAL_DSCP] if priority == USUAL_DSCP // 8 else [priority * 8]
    return list(dict.fromkeys((*(unmarked if marked is None else [marked]), *beyond)))


def _cnp_dscp(usual: _QosOfMost, marked: int | None, priority: int | None) -> int | None:
    if marked is not None or priority is None:
        return marked
    beyond = [dscp for dscp, one in usual.dscp_to_priority.items() if one == priority and dscp // 8 != priority]
    return beyond[0] if beyond else priority * 8


def _ecn(survey: Survey, speed_of: SpeedOf) -> dict[int, Values]:
    """Return the ECN thresholds by speed, as most ports have them."""
    by_speed: dict[int, list[ExistingEcn]] = {}
    for switch in survey.switches.values():
        for port in switch.existing.ports:
            if port.ecn and (speed_gbps := speed_of(switch.name, port)):
                by_speed.setdefault(speed_gbps, []).append(port.ecn)
    chosen: dict[int, Values] = {}
    for speed, found in by_speed.items():
        usual = asdict(ecn(Lossless(), speed))
        low, high, percent = most((one.min_bytes, one.max_bytes, one.probability_percent) for one in found) or (0, 0, 0)
        units = most(one.units for one in found) or ("bytes", "bytes")
        one = dict(zip(usual, (low, high, percent, *units), strict=True))
        if one != usual:
            chosen[speed] = {key: value for key, value in one.items() if value != "bytes"}
    return chosen


def _watchdog(usual: _QosOfMost) -> Values:
    poll, detection = usual.one(lambda qos: qos.watchdog_poll_ms), usual.one(lambda qos: qos.watchdog_detection_ms)
    restoration = usual.one(lambda qos: qos.watchdog_restoration_ms)
    per_poll = poll or Lossless().watchdog.poll_ms
    return _given(
        poll_ms=poll,
        detection_polls=detection // per_poll if detection else None,
        restoration_polls=restoration // per_poll if restoration else None,
        action=usual.one(lambda qos: qos.watchdog_action or None),
    )


def routing(survey: Survey, placement: Placement) -> Values:
    """Return the timers and the policy of BGP, as most switches have them."""
    every = [switch for switch in survey.switches.values() if switch.name in placement.places]
    spines = [survey.switches[name] for name in placement.of_role("spine") if name in survey.switches]
    by_pod: dict[int, set[int]] = {}
    for spine in spines:
        by_pod.setdefault(placement.places[spine.name].pod, set()).add(spine.asn)
    has_several = any(len(numbers) > 1 for numbers in by_pod.values())
    paths = of_most(every, lambda switch: switch.router.max_paths if switch.sessions else None)
    return _given(
        spine_asn="unique" if has_several else "shared",
        leaf_export=_leaf_export(survey, placement),
        allowas_in=any(neighbor.allowas_in for switch in every for neighbor in switch.sessions),
        keepalive_s=of_most(every, lambda switch: switch.existing.keepalive_s),
        hold_s=of_most(every, lambda switch: switch.existing.hold_s),
        connect_s=of_most(every, lambda switch: switch.existing.connect_s),
        max_paths=paths,
        bfd=_given(
            interval_ms=of_most(every, lambda switch: switch.existing.bfd_interval_ms),
            multiplier=of_most(every, lambda switch: switch.existing.bfd_multiplier),
        ),
    )


def _leaf_export(survey: Survey, placement: Placement) -> str | None:
    """Return whether most leaves announce routes of others to spines, by the loopback of another switch."""
    loopbacks = {name: switch.loopback for name, switch in survey.switches.items() if name in placement.places}
    found: list[bool] = []
    for name in placement.of_role("leaf"):
        leaf = survey.switches.get(name)
        other = next((one for own, one in loopbacks.items() if one and own != name), None)
        if leaf is None or other is None:
            continue
        router, foreign = leaf.router, {prefix_of(other.network): 1}
        for neighbor in leaf.sessions:
            clauses = clauses_of(router, neighbor.outbound)
            found.append(bool(permitted(clauses, router.prefix_lists, foreign, is_drained=False)))
    exports_all = most(found)
    return None if exports_all is None else "all" if exports_all else "local"


def services(survey: Survey, guesses: Assumptions) -> Values:
    """Return the services that most switches have."""
    every = [switch.existing.services for switch in survey.switches.values()]
    syslog = most(one.syslog for one in every) or ()
    values: Values = {
        "ntp": list(most(one.ntp for one in every) or ()),
        "dns": list(most(one.dns for one in every) or ()),
        "syslog": [{"address": address, "port": port, "protocol": protocol} for address, port, protocol in syslog],
        "timezone": most(one.timezone or None for one in every),
    }
    if users := most(one.snmp_users for one in every):
        location, contact = (most(one.snmp_location for one in every), most(one.snmp_contact for one in every))
        values["snmp"] = {"user": users[0], **DEFAULT_SNMP_SECRETS, "location": location, "contact": contact}
        guesses.add("services", f"snmp: set the secrets {' and '.join(DEFAULT_SNMP_SECRETS.values())} to those in use")
    if logins := most(one.users for one in every):
        values["login"] = {"user": logins[0], "password_hash_secret": LOGIN_NEEDS}
        guesses.add("services", f"login: set the secret {LOGIN_NEEDS} to the hash in use")
    return _given(**values)


def management(survey: Survey, placement: Placement, guesses: Assumptions) -> Values | None:
    """Return the management network, if most switches share one, and who may log in to most of them."""
    placed = [switch for switch in survey.switches.values() if switch.name in placement.places]
    allow = most(switch.existing.allow for switch in placed)
    found = most(
        (network, switch.existing.management_gateway)
        for switch in placed
        if switch.existing.management_gateway
        for network in [_network(switch.existing.management)]
        if network and IPv4Address(switch.existing.management_gateway) in network
    )
    others = [one.name for one in placed if one.existing.allow and (one.existing.allow != allow or not found)]
    if others:
        why = "most switches have another" if found else "they share no management network"
        guesses.add("management", f"the list of who may log in to {some(others)} is left as it runs: {why}")
    if not found:
        return None
    pool, gateway = found
    return {"pool": str(pool), "gateway": gateway} | ({"allow": list(allow)} if allow else {})


def _network(text: str) -> IPv4Network | None:
    try:
        return IPv4Network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def asn_base(survey: Survey, placement: Placement) -> int | None:
    """Return the base from which every leaf gets its AS number by rule, if there is one."""
    found = {
        asn - LEAF_ASN_OFFSET - ((place.unit - 1) * placement.rails + place.rail)
        for name in placement.of_role("leaf")
        for place in [placement.places[name]]
        if name in survey.switches and (asn := survey.switches[name].asn)
    }
    base = next(iter(found), 0)
    return base if len(found) == 1 and base > 0 else None


def _given(**values: object) -> Values:
    return {key: value for key, value in values.items() if value not in (None, [], {}, ())}

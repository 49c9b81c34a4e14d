"""Routing and maintenance mode of an EOS configuration, translated to FRR."""

import ipaddress
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.lab.personalities.eos.configuration import EosSection

BUILT_IN_UNIT = "System"
BUILT_IN_PROFILE = "Default"


@dataclass(frozen=True, slots=True)
class Drain:
    """A neighbour in maintenance mode: its profile, and the route map applied in these directions."""

    profile: str
    route_map: str
    directions: tuple[str, ...] = ("in", "out")


def drained_ports(config: EosSection, ports: tuple[str, ...]) -> dict[str, Drain]:
    """The ports in maintenance mode, with the drain of the BGP neighbor on each."""
    maintenance = config.section("maintenance")
    found: dict[str, Drain] = {}
    for (unit,), section in maintenance.sections("unit"):
        if not section.has("quiesce"):
            continue
        if unit == BUILT_IN_UNIT:
            found.update((port, _drain(maintenance, "")) for port in ports)
            continue
        for port, profile in _members(config, section):
            found[port] = _drain(maintenance, profile)
    return found


def units(config: EosSection) -> Iterator[tuple[str, bool, tuple[str, ...]]]:
    """Yield each unit, whether it is quiesced, and its groups; the built-in `System` unit always exists."""
    seen = False
    for (unit,), section in config.section("maintenance").sections("unit"):
        seen = seen or unit == BUILT_IN_UNIT
        groups = tuple(rest[0] for kind in ("bgp", "interface") for rest in section.find("group", kind))
        yield unit, section.has("quiesce"), groups
    if not seen:
        yield BUILT_IN_UNIT, False, ()


def _members(config: EosSection, unit: EosSection) -> Iterator[tuple[str, str]]:
    """Yield the ports of a unit with the BGP profile of their group."""
    for (group,) in unit.find("group", "interface"):
        section = config.section("group", "interface", group)
        for (port,) in section.find("interface"):
            yield port, section.word("maintenance", "profile", "bgp")
    for (group,) in unit.find("group", "bgp"):
        section = config.section("group", "bgp", group)
        for (neighbor,) in section.find("neighbor"):
            for _, bgp in config.sections("router", "bgp"):
                for rest in bgp.find("neighbor", "interface"):
                    if rest[2] == neighbor:
                        yield rest[0], section.word("maintenance", "profile", "bgp")


def _drain(maintenance: EosSection, profile: str) -> Drain:
    """Resolve a maintenance profile: the named one, else the default profile, else EOS's built-in behaviour."""
    default = next((rest[0] for rest in maintenance.find("profile", "bgp") if rest[1:] == ("default",)), "")
    name = profile or default
    found = maintenance.section("profile", "bgp", name).one("initiator", "route-map") if name else None
    if found is None:
        return Drain(name or BUILT_IN_PROFILE, "")
    directions = ("in", "out") if found[1] == "inout" else (found[1],)
    return Drain(name, found[0], directions)


GRACEFUL_SETS = ("set local-preference 0", "set community graceful-shutdown additive")
COMMUNITY_WORDS = {"GSHUT": "graceful-shutdown"}
DENY, PERMIT = "EOS-DENY", "EOS-PERMIT"
DIRECTIONS = ("in", "out")
# EOS has no connect timer and retries soon; FRR would wait two minutes.
CONNECT_S = 5
ANY_AS = "10 match as-range 1-4294967295 result accept"


@dataclass(frozen=True, slots=True)
class PortNeighbor:
    """A BGP neighbour on a port."""

    port: str
    group: str
    asn: str
    address: str = ""
    """Empty: unnumbered."""


def frr(config: EosSection, kernel_names: Mapping[str, str]) -> str:
    """Translate the routing configuration to FRR. Without `ip routing` EOS runs no BGP."""
    lines = ["frr defaults traditional", "log syslog informational", "no zebra nexthop kernel enable"]
    bgp = running_bgp(config)
    if is_routing(config):
        routes = (rest for rest in config.find("ip", "route") if rest[0] != "vrf")
        lines += [f"ip route {prefix} {'blackhole' if via == 'Null0' else via}" for prefix, via, *_ in routes]
    if bgp is not None:
        lines += _routing_bgp(config, *bgp, kernel_names)
        lines += _policies(config, bgp[1], kernel_names)
        lines += _bfd(config)
    return "\n".join((*lines, ""))


def running_bgp(config: EosSection) -> tuple[str, EosSection] | None:
    """The AS number and section of the BGP process if it runs."""
    if not is_routing(config):
        return None
    return next(((rest[0], section) for rest, section in config.sections("router", "bgp")), None)


def is_routing(config: EosSection) -> bool:
    return config.has("ip", "routing") or routes_by_ipv6(config)


def routes_by_ipv6(config: EosSection) -> bool:
    """Whether IPv4 is forwarded on IPv6-only interfaces (RFC 5549)."""
    return config.has("ip", "routing", "ipv6", "interfaces")


def neighbors(config: EosSection, bgp: EosSection, kernel_names: Mapping[str, str]) -> tuple[PortNeighbor, ...]:
    """The unnumbered neighbours on routed ports with IPv6, which router advertisements can discover."""
    if not config.has("ipv6", "unicast-routing"):
        return ()
    found = []
    for port, _, group, kind, value in bgp.find("neighbor", "interface"):
        section = config.section("interface", port)
        asn = value
        if kind == "peer-filter":  # FRR has no ranges of AS numbers
            asn = "external" if config.section("peer-filter", value).has(*ANY_AS.split()) else ""
        if port in kernel_names and section.is_off("switchport") and section.has("ipv6", "enable") and asn:
            found.append(PortNeighbor(port, group, asn))
    return tuple(found)


def groups(bgp: EosSection) -> tuple[str, ...]:
    return tuple(rest[0] for rest in bgp.find("neighbor") if rest[1:] == ("peer", "group"))


def _routing_bgp(config: EosSection, asn: str, bgp: EosSection, kernel_names: Mapping[str, str]) -> Iterator[str]:
    found = neighbors(config, bgp, kernel_names)
    yield f"router bgp {asn}"
    router_id = (
        bgp.word("router-id") or config.section("interface", "Loopback0").word("ip", "address").partition("/")[0]
    )
    if router_id:
        yield f" bgp router-id {router_id}"
    yield " bgp log-neighbor-changes"
    yield " no bgp ebgp-requires-policy"
    yield " no bgp default ipv4-unicast"
    if not bgp.is_off("bgp", "bestpath", "as-path", "multipath-relax"):
        yield " bgp bestpath as-path multipath-relax"
    restart = bgp.word("graceful-restart", "restart-time")
    if bgp.has("graceful-restart"):
        yield " bgp graceful-restart"
        if restart:
            yield f" bgp graceful-restart restart-time {restart}"
    for group in groups(bgp):
        yield from _group(bgp, group)
    for one in found:
        interface = kernel_names[one.port]
        yield f" neighbor {interface} interface v6only peer-group {one.group}"
        yield f" neighbor {interface} remote-as {one.asn}"
    for address in numbered(bgp):
        yield from _group(bgp, address)
    yield " !"
    yield " address-family ipv4 unicast"
    yield from _family(config, bgp, found, kernel_names)
    yield " exit-address-family"
    yield from _family_v6(config, bgp, found, kernel_names)
    yield "exit"
    yield "!"


def numbered(bgp: EosSection) -> tuple[str, ...]:
    """The neighbours that are identified by an IPv4 address and have an AS number, or that of their group."""
    with_asn = {rest[0] for rest in bgp.find("neighbor") if rest[1] == "remote-as"}
    names = dict.fromkeys(rest[0] for rest in bgp.find("neighbor") if rest[0].count(".") == 3)
    return tuple(name for name in names if {name, group_of(bgp, name)} & with_asn)


def group_of(bgp: EosSection, neighbor: str) -> str:
    """The peer group of a neighbour by address; empty if it has none."""
    return bgp.word("neighbor", neighbor, "peer", "group") if neighbor.count(".") == 3 else ""


def _group(bgp: EosSection, group: str) -> Iterator[str]:
    start = ("neighbor", group)
    own = group_of(bgp, group)
    if group not in numbered(bgp):
        yield f" neighbor {group} peer-group"
    remote = bgp.word(*start, "remote-as")
    if remote:
        yield f" neighbor {group} remote-as {remote}"
    if own:
        yield f" neighbor {group} peer-group {own}"
    if bgp.has(*start, "bfd"):
        yield f" neighbor {group} bfd"
        yield f" neighbor {group} bfd profile eos"
    timers = bgp.one(*start, "timers") or (() if own else ("60", "180"))
    if timers:
        yield f" neighbor {group} timers {' '.join(timers)}"
        yield f" neighbor {group} timers connect {CONNECT_S}"
    description = bgp.word(*start, "description")
    if description:
        yield f" neighbor {group} description {description}"
    if bgp.has(*start, "shutdown"):
        yield f" neighbor {group} shutdown"


def _family(
    config: EosSection, bgp: EosSection, found: tuple[PortNeighbor, ...], kernel_names: Mapping[str, str]
) -> Iterator[str]:
    for prefix, *summary in bgp.find("aggregate-address"):
        if ":" not in prefix:
            yield f"  aggregate-address {prefix}{' summary-only' if summary else ''}"
    for source, *policy in bgp.find("redistribute"):
        yield f"  redistribute {source}{f' route-map {policy[1]}' if policy else ''}"
    for group in (*groups(bgp), *numbered(bgp)):
        yield from _group_family(config, bgp, group)
    drained = drained_ports(config, tuple(kernel_names))
    for one in (*found, *numbered_on_ports(config, bgp)):
        drain = drained.get(one.port)
        for direction in drain.directions if drain else ():
            name = _drain_name(config, bgp, one, direction)
            yield f"  neighbor {one.address or kernel_names[one.port]} route-map {name} {direction}"
    yield f"  maximum-paths {bgp.word('maximum-paths') or 1}"


def numbered_on_ports(config: EosSection, bgp: EosSection) -> Iterator[PortNeighbor]:
    """Yield the neighbours by address with a peer group, on the ports that lead to them."""
    networks = {}
    for (port,), section in config.sections("interface"):
        if address := section.word("ip", "address"):
            networks[port] = ipaddress.IPv4Interface(address).network
    for address in numbered(bgp):
        port = next((port for port, one in networks.items() if ipaddress.IPv4Address(address) in one), "")
        if group := group_of(bgp, address):
            yield PortNeighbor(port, group, bgp.word("neighbor", address, "remote-as"), address)


def _family_v6(
    config: EosSection, bgp: EosSection, found: tuple[PortNeighbor, ...], kernel_names: Mapping[str, str]
) -> Iterator[str]:
    """Yield the family of IPv6. A line of the family replaces the same line of the process."""
    family = bgp.section("address-family", "ipv6")
    active = [group for group in groups(bgp) if family.has("neighbor", group, "activate")]
    if not active:
        return
    yield from (" !", " address-family ipv6 unicast")
    for prefix, *summary in bgp.find("aggregate-address"):
        if ":" in prefix:
            yield f"  aggregate-address {prefix}{' summary-only' if summary else ''}"
    for source, *policy in tuple(family.find("redistribute")) or bgp.find("redistribute"):
        yield f"  redistribute {source}{f' route-map {policy[1]}' if policy else ''}"
    for group in active:
        yield f"  neighbor {group} activate"
        if allowed := bgp.word("neighbor", group, "allowas-in"):
            yield f"  neighbor {group} allowas-in {allowed}"
        for direction in DIRECTIONS:
            yield f"  neighbor {group} route-map {policy_v6(config, bgp, group, direction)} {direction}"
    drained = drained_ports(config, tuple(kernel_names))
    for one in found:
        drain = drained.get(one.port)
        for direction in drain.directions if drain and one.group in active else ():
            name = f"{policy_v6(config, bgp, one.group, direction)}-DRAINED-{direction}"
            yield f"  neighbor {kernel_names[one.port]} route-map {name} {direction}"
    yield f"  maximum-paths {bgp.word('maximum-paths') or 1}"
    yield " exit-address-family"


def policy_v6(config: EosSection, bgp: EosSection, group: str, direction: str) -> str:
    """The route map that applies to a peer group in the family of IPv6."""
    family = bgp.section("address-family", "ipv6")
    lines = [*family.find("neighbor", group, "route-map"), *bgp.find("neighbor", group, "route-map")]
    return _in_force(config, bgp, group, direction, next((rest[0] for rest in lines if rest[1] == direction), ""))


def _group_family(config: EosSection, bgp: EosSection, group: str) -> Iterator[str]:
    start = ("neighbor", group)
    if group_of(bgp, group) or not is_active(bgp, group):
        return  # a member has what its group has
    yield f"  neighbor {group} activate"
    allowed = bgp.word(*start, "allowas-in")
    if allowed:
        yield f"  neighbor {group} allowas-in {allowed}"
    if bgp.has(*start, "next-hop-self"):
        yield f"  neighbor {group} next-hop-self"
    if bgp.one(*start, "send-community") is None:
        yield f"  no neighbor {group} send-community"
    routes = bgp.word(*start, "maximum-routes")
    if routes and routes != "0":
        yield f"  neighbor {group} maximum-prefix {routes}"
    for direction in DIRECTIONS:
        yield f"  neighbor {group} route-map {policy_of(config, bgp, group, direction)} {direction}"


def is_active(bgp: EosSection, group: str) -> bool:
    """Whether IPv4 unicast is activated for a group, explicitly or by default."""
    family = bgp.section("address-family", "ipv4")
    return family.has("neighbor", group, "activate") or not bgp.is_off("bgp", "default", "ipv4-unicast")


def policy_of(config: EosSection, bgp: EosSection, group: str, direction: str) -> str:
    """The route map that applies to a peer group.

    Without IPv6 next hops for IPv4 a session comes up and carries nothing. A missing route map permits everything
    unless `missing-policy` denies.
    """
    family = bgp.section("address-family", "ipv4")
    is_carried = family.has("neighbor", group, "next-hop", "address-family", "ipv6", "originate")
    by_address = numbered(bgp)
    is_by_address = group in by_address or any(group_of(bgp, one) == group for one in by_address)
    if not is_by_address and not (is_carried and routes_by_ipv6(config)):
        return DENY
    named = next((rest[0] for rest in bgp.find("neighbor", group, "route-map") if rest[1] == direction), "")
    return _in_force(config, bgp, group, direction, named)


def _in_force(config: EosSection, bgp: EosSection, group: str, direction: str, named: str) -> str:
    if named and any(True for _ in config.sections("route-map", named)):
        return named
    missing = bgp.word("neighbor", group, "missing-policy", "address-family", "all", "direction", direction, "action")
    return DENY if missing == "deny" else PERMIT


def _drain_name(config: EosSection, bgp: EosSection, one: PortNeighbor, direction: str) -> str:
    return f"{policy_of(config, bgp, one.group, direction)}-DRAINED-{direction}"


def _policies(config: EosSection, bgp: EosSection, kernel_names: Mapping[str, str]) -> Iterator[str]:
    for word in ("ip", "ipv6"):
        for (name,), section in config.sections(word, "prefix-list"):
            for number, action, prefix, *rest in section.find("seq"):
                bounds = ["ge", rest[1], "le", rest[1]] if rest[:1] == ["eq"] else rest
                yield " ".join((word, "prefix-list", name, "seq", number, action, prefix, *bounds))
    for (name, action, number), section in config.sections("route-map"):
        yield from _route_map(name, action, number, _clauses(section))
    yield from _route_map(DENY, "deny", "10", [])
    yield from _route_map(PERMIT, "permit", "10", [])
    yield from _drain_maps(config, bgp, kernel_names)


def _drain_maps(config: EosSection, bgp: EosSection, kernel_names: Mapping[str, str]) -> Iterator[str]:
    """Yield a copy of the route map of each neighbour, with the drain's set clauses added.

    The copies stay when a drain ends: frr-reload.py would delete them while the neighbours still use them, and a
    neighbour whose route map is missing carries nothing.
    """
    drained = drained_ports(config, tuple(kernel_names))
    needed: dict[str, tuple[str, Drain]] = {}
    for one in (*neighbors(config, bgp, kernel_names), *numbered_on_ports(config, bgp)):
        drain = drained.get(one.port)
        bases = [policy_of]
        if bgp.section("address-family", "ipv6").has("neighbor", one.group, "activate"):
            bases.append(policy_v6)
        for direction, policy in itertools.product(DIRECTIONS, bases):
            base = policy(config, bgp, one.group, direction)
            name = f"{base}-DRAINED-{direction}"
            if drain and direction in drain.directions:
                needed[name] = (base, drain)
            else:
                needed.setdefault(name, (base, Drain(BUILT_IN_PROFILE, "")))
    for name, (base, drain) in needed.items():
        sets = list(GRACEFUL_SETS)
        if drain.route_map:
            entries = _entries(config, drain.route_map)
            sets = [clause for _, _, clauses in entries for clause in clauses if clause.startswith("set")]
        for action, number, clauses in _entries(config, base):
            yield from _route_map(name, action, number, [*clauses, *sets] if action == "permit" else clauses)


def _entries(config: EosSection, name: str) -> Iterator[tuple[str, str, list[str]]]:
    if name in {DENY, PERMIT}:
        yield ("deny" if name == DENY else "permit"), "10", []
    for rest, section in config.sections("route-map", name):
        yield rest[0], rest[1], _clauses(section)


def _route_map(name: str, action: str, number: str, clauses: list[str]) -> Iterator[str]:
    yield f"route-map {name} {action} {number}"
    yield from (f" {clause}" for clause in clauses)
    yield "exit"
    yield "!"


def _clauses(section: EosSection) -> list[str]:
    lists = ((word, section.word("match", word, "address", "prefix-list")) for word in ("ip", "ipv6"))
    found = [f"match {word} address prefix-list {name}" for word, name in lists if name]
    community = section.word("set", "community")
    if community:
        found.append(f"set community {' '.join(COMMUNITY_WORDS.get(word, word) for word in community.split())}")
    preference = section.word("set", "local-preference")
    if preference:
        found.append(f"set local-preference {preference}")
    return found


def _bfd(config: EosSection) -> Iterator[str]:
    found = config.section("router", "bfd").one("interval") or ("300", "min-rx", "300", "multiplier", "3", "default")
    yield "bfd"
    yield " profile eos"
    yield f"  detect-multiplier {found[4]}"
    yield f"  transmit-interval {found[0]}"
    yield f"  receive-interval {found[2]}"
    yield " exit"
    yield " !"
    yield "exit"
    yield "!"

"""Translates the routing configuration to FRR."""

import ipaddress
from collections.abc import Iterator

from netkit.lab.netlink import PEER_INTERFACE
from netkit.lab.personalities.nvue.schema import PORT
from netkit.lab.personalities.nvue.tree import Path, Tree, child, has, is_on, is_set, number, text

VERSIONS = (4, 6)
"""The IP versions of the address families."""
DEFAULT_PATHS = 64
DIRECTIONS = (("inbound", "in"), ("outbound", "out"))


def group_lines(bgp: Tree) -> Iterator[str]:
    groups = child(bgp, "peer-group")
    for name in groups:
        group = child(groups, name)
        yield f" neighbor {name} peer-group"
        if text(group, "remote-as"):
            yield f" neighbor {name} remote-as {text(group, 'remote-as')}"
        yield from _session(name, group, f"group-{name}")


def neighbor_lines(bgp: Tree) -> Iterator[str]:
    groups, neighbors = child(bgp, "peer-group"), child(bgp, "neighbor")
    for name in neighbors:
        neighbor = child(neighbors, name)
        group = text(neighbor, "peer-group")
        remote = "" if text(groups, group or "-", "remote-as") else text(neighbor, "remote-as")
        member = f" peer-group {group}" if group else ""
        if PORT.fullmatch(name) or name == PEER_INTERFACE:
            yield f" neighbor {name} interface v6only{member}"
            member = ""
        if remote:
            yield f" neighbor {name} remote-as {remote}"
        if member:
            yield f" neighbor {name}{member}"
        if not is_on(neighbor, default=True):
            yield f" neighbor {name} shutdown"
        yield from _session(name, neighbor, f"neighbor-{name}")


def _session(name: str, session: Tree, profile: str) -> Iterator[str]:
    if text(session, "description"):
        yield f" neighbor {name} description {text(session, 'description')}"
    bfd_profile = text(session, "bfd", "profile") or (profile if is_on(session, "bfd") else "")
    if bfd_profile:
        yield f" neighbor {name} bfd"
        yield f" neighbor {name} bfd profile {bfd_profile}"
    timers = child(session, "timers")
    if has(timers, "keepalive") or has(timers, "hold"):
        yield f" neighbor {name} timers {number(timers, 'keepalive', default=3)} {number(timers, 'hold', default=9)}"
    if has(timers, "connection-retry"):
        yield f" neighbor {name} timers connect {number(timers, 'connection-retry')}"


def group_profiles(bgp: Tree) -> Tree:
    """The BFD timers that older releases keep per session, as profiles."""
    profiles: Tree = {}
    for kind, label in (("peer-group", "group"), ("neighbor", "neighbor")):
        for name in child(bgp, kind):
            timers = child(bgp, kind, name, "bfd")
            if is_on(timers) and not text(timers, "profile"):
                profiles[f"{label}-{name}"] = timers
    return profiles


def _family(version: int) -> Path:
    return ("address-family", f"ipv{version}-unicast")


def address_family(bgp: Tree, version: int) -> Iterator[str]:
    family = child(bgp, *_family(version))
    yield " !"
    yield f" address-family ipv{version} unicast"
    for prefix in child(family, "aggregate-route"):
        summary = " summary-only" if is_set(family, "aggregate-route", prefix, "summary-only") else ""
        yield f"  aggregate-address {prefix}{summary}"
    for source in ("connected", "static"):
        if is_on(family, "redistribute", source):
            name = text(family, "redistribute", source, "route-map")
            yield f"  redistribute {source}" + (f" route-map {name}" if name else "")
    for kind in ("peer-group", "neighbor"):
        for name in child(bgp, kind):
            yield from _activation(bgp, name, child(bgp, kind, name), version)
    yield f"  maximum-paths {number(family, 'multipaths', 'ebgp', default=DEFAULT_PATHS)}"
    yield f"  maximum-paths ibgp {number(family, 'multipaths', 'ibgp', default=DEFAULT_PATHS)}"
    yield " exit-address-family"


def _activation(bgp: Tree, name: str, session: Tree, version: int) -> Iterator[str]:
    family = child(session, *_family(version))
    is_member = bool(text(session, "peer-group"))
    if is_on(family, default=version == 4 and not is_member):
        yield f"  neighbor {name} activate"
    elif is_member and not is_on(family, default=True):
        yield f"  no neighbor {name} activate"
    if is_on(family, "aspath", "allow-my-asn"):
        times = text(family, "aspath", "allow-my-asn", "occurrences")
        yield f"  neighbor {name} allowas-in" + (f" {times}" if times else "")
    if text(family, "nexthop-setting") == "self":
        yield f"  neighbor {name} next-hop-self"
    if limit := text(family, "prefix-limits", "inbound", "maximum"):
        yield f"  neighbor {name} maximum-prefix {limit}"
    for direction, short in DIRECTIONS:
        route_map = applied_map(bgp, session, direction, version)
        if is_drained(bgp, session):
            yield f"  neighbor {name} route-map {drained_name(route_map, short)} {short}"
        elif text(family, "policy", direction, "route-map"):
            yield f"  neighbor {name} route-map {route_map} {short}"


def applied_map(bgp: Tree, session: Tree, direction: str, version: int) -> str:
    """The route map of a session, its own or that of its group."""
    path = (*_family(version), "policy", direction, "route-map")
    own = text(session, *path)
    group = text(session, "peer-group") or "-"
    return own or text(bgp, "peer-group", group, *path)


def is_drained(bgp: Tree, session: Tree) -> bool:
    """Whether graceful-shutdown is set for a session, its own or that of its group."""
    group = child(bgp, "peer-group", text(session, "peer-group") or "-")
    word = text(session, "graceful-shutdown") or text(group, "graceful-shutdown")
    return word in {"on", "enabled"}


def drained_name(route_map: str, short: str) -> str:
    return f"{route_map or 'ANY'}-drained-{short}"


BANDWIDTH = {"multipaths": "num-multipaths", "cumulative": "cumulative"}
DRAIN_SETS = {"in": " set local-preference 0", "out": " set community graceful-shutdown additive"}


def prefix_lists(tree: Tree) -> Iterator[str]:
    lists = child(tree, "router", "policy", "prefix-list")
    for name in lists:
        rules = child(lists, name, "rule")
        for rank in sorted(rules, key=int):
            action = text(rules, rank, "action")
            for prefix in child(rules, rank, "match"):
                match = child(rules, rank, "match", prefix)
                network = ipaddress.ip_interface(prefix).network
                own, word = network.prefixlen, "ip" if network.version == 4 else "ipv6"
                low, high = text(match, "min-prefix-len"), text(match, "max-prefix-len")
                bounds = f" ge {low}" if low and int(low) > own else ""
                bounds += f" le {high}" if high and int(high) > own else ""
                yield f"{word} prefix-list {name} seq {rank} {action} {prefix}{bounds}"
        yield "!"


def route_maps(tree: Tree) -> Iterator[str]:
    for name in child(tree, "router", "policy", "route-map"):
        yield from _map(tree, name, name, "")


def drained_maps(tree: Tree) -> Iterator[str]:
    """Yield a copy of each route map used by a drained session, with the drain's set clause added."""
    bgp = child(tree, "vrf", "default", "router", "bgp")
    needed: dict[str, tuple[str, str]] = {}
    for kind in ("peer-group", "neighbor"):
        for name in child(bgp, kind):
            session = child(bgp, kind, name)
            if is_drained(bgp, session):
                for version in (one for one in VERSIONS if is_on(bgp, *_family(one))):
                    for direction, short in DIRECTIONS:
                        route_map = applied_map(bgp, session, direction, version)
                        needed[drained_name(route_map, short)] = (route_map, short)
    for name, (route_map, short) in needed.items():
        if route_map:
            yield from _map(tree, route_map, name, DRAIN_SETS[short])
        else:
            yield from (f"route-map {name} permit 10", DRAIN_SETS[short], "exit", "!")


def _map(tree: Tree, source: str, name: str, extra: str) -> Iterator[str]:
    rules = child(tree, "router", "policy", "route-map", source, "rule")
    for rank in sorted(rules, key=int):
        rule = child(rules, rank)
        action = next(iter(child(rule, "action")), "permit")
        yield f"route-map {name} {action} {rank}"
        if text(rule, "match", "interface"):
            yield f" match interface {text(rule, 'match', 'interface')}"
        if text(rule, "match", "ip-prefix-list"):
            word = "ipv6" if text(rule, "match", "type") == "ipv6" else "ip"
            yield f" match {word} address prefix-list {text(rule, 'match', 'ip-prefix-list')}"
        if extra and action == "permit":
            yield extra
        elif text(rule, "set", "local-preference"):
            yield f" set local-preference {text(rule, 'set', 'local-preference')}"
        if text(rule, "set", "ext-community-bw"):
            yield f" set extcommunity bandwidth {BANDWIDTH[text(rule, 'set', 'ext-community-bw')]}"
        yield from ("exit", "!")


BGP: Path = ("vrf", "default", "router", "bgp")
# After a link flap FRR 8.4 believes that a nexthop group the kernel has dropped is still installed, and loses ECMP.
HEAD = ("log syslog informational", "no zebra nexthop kernel enable")
DEFAULT_MULTIPLIER = 3  # FRR does not print its default, so setting it would differ at every reload


def frr_text(tree: Tree) -> str:
    lines = ["frr defaults datacenter", f"hostname {text(tree, 'system', 'hostname') or 'cumulus'}", *HEAD, "!"]
    static = child(tree, "vrf", "default", "router", "static")
    lines += [f"ip route {prefix} {via}" for prefix in static for via in child(static, prefix, "via")]
    lines += ["!"] if static else []
    if is_on(tree, *BGP):
        lines += _bgp(tree)
    lines += prefix_lists(tree)
    lines += route_maps(tree)
    lines += drained_maps(tree)
    lines += _bfd(tree)
    return "\n".join(lines) + "\n"


def _bgp(tree: Tree) -> Iterator[str]:
    bgp, everywhere = child(tree, *BGP), child(tree, "router", "bgp")
    yield f"router bgp {text(bgp, 'autonomous-system') or text(everywhere, 'autonomous-system')}"
    yield f" bgp router-id {text(bgp, 'router-id') or text(everywhere, 'router-id')}"
    if is_draining(tree):
        yield " bgp graceful-shutdown"
    yield " no bgp default ipv4-unicast"
    if text(everywhere, "graceful-restart", "mode") == "full":
        yield " bgp graceful-restart"
    if is_set(bgp, "path-selection", "multipath", "aspath-ignore"):
        yield " bgp bestpath as-path multipath-relax"
    yield from group_lines(bgp)
    yield from neighbor_lines(bgp)
    for version in VERSIONS:
        if is_on(bgp, *_family(version)):
            yield from address_family(bgp, version)
    yield from ("exit", "!")


def is_draining(tree: Tree) -> bool:
    """Whether the whole switch is in graceful shutdown."""
    in_maintenance = text(tree, "maintenance", "unit", "all-protocols", "mode") == "enabled"
    return is_set(tree, "router", "bgp", "graceful-shutdown") or in_maintenance


def _bfd(tree: Tree) -> Iterator[str]:
    profiles = dict(child(tree, "router", "bfd", "profile")) if is_on(tree, "router", "bfd") else {}
    profiles |= group_profiles(child(tree, *BGP))
    if not profiles:
        return
    yield "bfd"
    for name in profiles:
        yield from _bfd_profile(name, child(profiles, name))
    yield from ("exit", "!")


def _bfd_profile(name: str, profile: Tree) -> Iterator[str]:
    yield f" profile {name}"
    multiplier = number(profile, "detect-multiplier", default=DEFAULT_MULTIPLIER)
    if multiplier != DEFAULT_MULTIPLIER:
        yield f"  detect-multiplier {multiplier}"
    yield f"  transmit-interval {number(profile, 'min-tx-interval', default=300)}"
    yield f"  receive-interval {number(profile, 'min-rx-interval', default=300)}"
    if is_set(profile, "shutdown"):
        yield "  shutdown"
    if is_set(profile, "passive-mode"):
        yield "  passive-mode"
    if text(profile, "minimum-ttl"):
        yield f"  minimum-ttl {number(profile, 'minimum-ttl')}"
    yield from (" exit", " !")

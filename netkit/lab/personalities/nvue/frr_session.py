"""BGP neighbours and peer groups in FRR's language."""

from collections.abc import Iterator

from netkit.lab.personalities.nvue.kinds import PORT
from netkit.lab.personalities.nvue.tree import Path, Tree, child, has, is_on, is_set, number, text

FAMILY: Path = ("address-family", "ipv4-unicast")
DEFAULT_PATHS = 64
DIRECTIONS = (("inbound", "in"), ("outbound", "out"))


def group_lines(bgp: Tree) -> Iterator[str]:
    """Yield what peer groups say of all their members."""
    groups = child(bgp, "peer-group")
    for name in groups:
        group = child(groups, name)
        yield f" neighbor {name} peer-group"
        if text(group, "remote-as"):
            yield f" neighbor {name} remote-as {text(group, 'remote-as')}"
        yield from _session(name, group, f"group-{name}")


def neighbor_lines(bgp: Tree) -> Iterator[str]:
    """Yield the neighbours."""
    groups, neighbors = child(bgp, "peer-group"), child(bgp, "neighbor")
    for name in neighbors:
        neighbor = child(neighbors, name)
        group = text(neighbor, "peer-group")
        remote = "" if text(groups, group or "-", "remote-as") else text(neighbor, "remote-as")
        member = f" peer-group {group}" if group else ""
        if PORT.fullmatch(name):
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
    chosen = text(session, "bfd", "profile") or (profile if is_on(session, "bfd") else "")
    if chosen:
        yield f" neighbor {name} bfd"
        yield f" neighbor {name} bfd profile {chosen}"
    timers = child(session, "timers")
    if has(timers, "keepalive") or has(timers, "hold"):
        yield f" neighbor {name} timers {number(timers, 'keepalive', default=3)} {number(timers, 'hold', default=9)}"
    if has(timers, "connection-retry"):
        yield f" neighbor {name} timers connect {number(timers, 'connection-retry')}"


def group_profiles(bgp: Tree) -> Tree:
    """Return the BFD timers that older releases keep with the session, as profiles."""
    profiles: Tree = {}
    for kind, label in (("peer-group", "group"), ("neighbor", "neighbor")):
        for name in child(bgp, kind):
            timers = child(bgp, kind, name, "bfd")
            if is_on(timers) and not text(timers, "profile"):
                profiles[f"{label}-{name}"] = timers
    return profiles


def address_family(bgp: Tree) -> Iterator[str]:
    """Yield the IPv4 address family."""
    family = child(bgp, *FAMILY)
    yield " !"
    yield " address-family ipv4 unicast"
    for prefix in child(family, "aggregate-route"):
        summary = " summary-only" if is_set(family, "aggregate-route", prefix, "summary-only") else ""
        yield f"  aggregate-address {prefix}{summary}"
    for source in ("connected", "static"):
        if is_on(family, "redistribute", source):
            name = text(family, "redistribute", source, "route-map")
            yield f"  redistribute {source}" + (f" route-map {name}" if name else "")
    for kind in ("peer-group", "neighbor"):
        for name in child(bgp, kind):
            yield from _activation(bgp, name, child(bgp, kind, name))
    yield f"  maximum-paths {number(family, 'multipaths', 'ebgp', default=DEFAULT_PATHS)}"
    yield f"  maximum-paths ibgp {number(family, 'multipaths', 'ibgp', default=DEFAULT_PATHS)}"
    yield " exit-address-family"


def _activation(bgp: Tree, name: str, session: Tree) -> Iterator[str]:
    family = child(session, *FAMILY)
    is_member = bool(text(session, "peer-group"))
    if is_on(family, default=not is_member):
        yield f"  neighbor {name} activate"
    elif is_member and not is_on(family, default=True):
        yield f"  no neighbor {name} activate"
    if is_on(family, "aspath", "allow-my-asn"):
        times = text(family, "aspath", "allow-my-asn", "occurrences")
        yield f"  neighbor {name} allowas-in" + (f" {times}" if times else "")
    for direction, short in DIRECTIONS:
        chosen = applied_map(bgp, session, direction)
        if is_drained(bgp, session):
            yield f"  neighbor {name} route-map {drained_name(chosen, short)} {short}"
        elif text(family, "policy", direction, "route-map"):
            yield f"  neighbor {name} route-map {chosen} {short}"


def applied_map(bgp: Tree, session: Tree, direction: str) -> str:
    """Return the route map of a session, its own or its group's."""
    own = text(session, *FAMILY, "policy", direction, "route-map")
    group = text(session, "peer-group") or "-"
    return own or text(bgp, "peer-group", group, *FAMILY, "policy", direction, "route-map")


def is_drained(bgp: Tree, session: Tree) -> bool:
    """Whether one session is to be left by traffic, by its own word or its group's."""
    group = child(bgp, "peer-group", text(session, "peer-group") or "-")
    asked = text(session, "graceful-shutdown") or text(group, "graceful-shutdown")
    return asked in {"on", "enabled"}


def drained_name(chosen: str, short: str) -> str:
    """Return the name of the map that also makes traffic leave."""
    return f"{chosen or 'ANY'}-drained-{short}"

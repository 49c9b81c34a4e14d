"""Neighbours by LLDP, BGP sessions and routes."""

import re
from collections.abc import Iterator
from typing import Any

from netkit.facts import Absent, Facts
from netkit.facts.device import Neighbor
from netkit.facts.host import BgpSession
from netkit.platforms.nvue.facts.interface import PORT
from netkit.platforms.nvue.facts.json_access import (
    Shown,
    document,
    duration_s,
    objects,
    switched,
    tree,
    under,
    unread,
    whole,
    word,
)
from netkit.platforms.view import View

LLDP = "nv show interface lldp -o json"


def neighbor_facts(text: str) -> Facts:
    """Return the neighbours of each port, the freshest first: NVUE keeps showing who was there before."""
    shown = tree(text)
    if shown is None:
        return Facts(neighbors=unread(LLDP, text))
    found = {name: _ends(under(port, "lldp", "neighbor")) for name, port in objects(shown) if PORT.fullmatch(name)}
    return Facts(neighbors={name: ends for name, ends in found.items() if ends})


def _ends(neighbors: Shown) -> tuple[Neighbor, ...]:
    ends = [_neighbor(name, found) for name, found in objects(neighbors)]
    return tuple(sorted(ends, key=lambda end: (end.age_s is None, end.age_s or 0, end.system)))


def _neighbor(name: str, found: Shown) -> Neighbor:
    port = under(found, "port")
    return Neighbor(
        system=word(under(found, "chassis"), "system-name") or name,
        port=word(port, "name"),
        description=word(port, "description"),
        age_s=duration_s(found.get("age")),
    )


NEIGHBORS_VIEW = View((LLDP,), frozenset({"neighbors"}), neighbor_facts)


NEIGHBORS = "nv show vrf default router bgp neighbor"
BFD = "nv show vrf default router bfd peers -o json"
BFD_BEFORE = "sudo -n vtysh -c 'show bfd peers json'"
"""What tells of BFD in releases whose NVUE does not."""
BGP = "nv show router bgp --applied -o json"


def session_view(*, is_brief: bool, has_bfd: bool) -> View:
    """Return the view; releases that show neighbours in brief are asked for detail."""
    neighbors = f"{NEIGHBORS}{' --view=detail' if is_brief else ''} -o json"
    return View((neighbors, BFD if has_bfd else BFD_BEFORE, BGP), frozenset({"sessions"}), session_facts)


def session_facts(neighbor_text: str, bfd_text: str, bgp_text: str) -> Facts:
    """Return the sessions by the interface they run on."""
    shown = tree(neighbor_text)
    if shown is None:
        return Facts(sessions=unread(NEIGHBORS, neighbor_text))
    bfd, bgp = document(bfd_text), tree(bgp_text)
    alive, unlisted = dict(_alive(bfd)), _unlisted(bfd)
    is_draining = None if bgp is None else bool(switched(bgp.get("graceful-shutdown")))
    sessions = {
        name: _session(found, alive.get(name, unlisted), is_draining=is_draining) for name, found in objects(shown)
    }
    return Facts(sessions=sessions)


def _peers(found: object) -> list[object]:
    """Return the peers of BFD: NVUE lists them by address or discriminator, FRR one by one."""
    return [*found.values()] if isinstance(found, dict) else found if isinstance(found, list) else []


def _alive(found: object) -> Iterator[tuple[str, bool]]:
    """Yield whether BFD is up, by interface."""
    for peer in _peers(found):
        if isinstance(peer, dict) and (interface := _interface(peer)):
            yield interface, word(peer, "status", "state", "session-state").lower() == "up"


def _unlisted(found: object) -> bool | None:
    """Return whether BFD is up where no peer is listed: it is not, if all that are listed have an interface."""
    return False if isinstance(found, dict | list) and all(map(_interface, _peers(found))) else None


def _interface(peer: object) -> str:
    return word(peer, "interface", "local-interface") if isinstance(peer, dict) else ""


def _session(found: Shown, is_bfd_up: bool | None, *, is_draining: bool | None) -> BgpSession:
    state = word(found, "session-state", "state").lower()
    family = under(found, "address-family", "ipv4-unicast")
    is_established = state == "established"
    own = switched(found.get("graceful-shutdown"))
    return BgpSession(
        is_established=is_established,
        state=state,
        peer_asn=whole(found.get("remote-as")),
        received_prefixes=whole(family.get("rx-prefix")),
        sent_prefixes=whole(family.get("tx-prefix")),
        uptime_s=duration_s(found.get("uptime")) if is_established else None,
        drops=whole(found.get("connections-dropped")),
        is_bfd_up=is_bfd_up,
        is_draining=True if own else is_draining if is_draining is not None else own,
    )


ROUTES, NEXTHOPS = "ip -j -4 route show", "ip -j nexthop show"
IN_NVUE = {ROUTES: "nv show vrf default router rib ipv4 route -o json"}
"""What tells the same over REST, in its own shape."""
PREFIX = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?")
DOWN = frozenset({"dead", "linkdown"})


def route_facts(route_text: str, nexthop_text: str) -> Facts:
    """Return the interfaces that each prefix is sent to; none where it is thrown away."""
    found = document(route_text)
    if isinstance(found, list):
        return Facts(routes=_joined(_kernel(found, _groups(nexthop_text))))
    if isinstance(found, dict):
        return Facts(routes=_joined(_table(found)))
    return Facts(routes=unread(ROUTES, route_text))


def _joined(found: Iterator[tuple[str, frozenset[str]]]) -> dict[str, tuple[str, ...]] | Absent:
    """Return one entry a prefix: the kernel lists the best one first."""
    routes: dict[str, tuple[str, ...]] = {}
    for prefix, interfaces in found:
        routes.setdefault(prefix, tuple(sorted(interfaces)))
    return routes or Absent(f"{ROUTES}: shows no routes")


def _kernel(found: list[Any], groups: dict[int, frozenset[str]]) -> Iterator[tuple[str, frozenset[str]]]:
    for route in found:
        prefix = _prefix(route.get("dst")) if isinstance(route, dict) else ""
        if prefix:
            ways = route.get("nexthops")
            interfaces = _interfaces(ways if isinstance(ways, list) else [route])
            group = route.get("nhid")
            yield prefix, interfaces or (groups.get(group, interfaces) if isinstance(group, int) else interfaces)


def _prefix(name: object) -> str:
    """Return a prefix with its length; empty when it is none."""
    if name == "default":
        return "0.0.0.0/0"
    is_one = isinstance(name, str) and PREFIX.fullmatch(name)
    return (name if "/" in name else f"{name}/32") if is_one and isinstance(name, str) else ""


def _interfaces(ways: list[Any]) -> frozenset[str]:
    found = (way for way in ways if isinstance(way, dict) and not DOWN & set(_flags(way)))
    return frozenset(way["dev"] for way in found if isinstance(way.get("dev"), str))


def _flags(way: dict[str, Any]) -> list[str]:
    flags = way.get("flags")
    return [flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list) else []


def _groups(text: str) -> dict[int, frozenset[str]]:
    """Return the interfaces of each next hop and each group of them, by id."""
    found = document(text)
    hops = {hop["id"]: hop for hop in found if _has_id(hop)} if isinstance(found, list) else {}
    return {number: _interfaces(_members(hop, hops)) for number, hop in hops.items()}


def _has_id(hop: object) -> bool:
    return isinstance(hop, dict) and isinstance(hop.get("id"), int)


def _members(hop: dict[str, Any], hops: dict[int, dict[str, Any]]) -> list[Any]:
    group = hop.get("group")
    return [hops.get(one["id"]) for one in group if _has_id(one)] if isinstance(group, list) else [hop]


def _table(found: Shown) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the routes of NVUE's own table: those that were chosen."""
    for name, route in objects(found):
        entries = [entry for _, entry in objects(route.get("route-entry"))]
        chosen = [entry for entry in entries if "selected" in under(entry, "flags")]
        if _prefix(name) and chosen:
            ways = (way.get("interface") for entry in chosen for _, way in objects(entry.get("via-entry")))
            interfaces = frozenset(way for way in ways if isinstance(way, str) and way)
            if interfaces != {"lo"}:  # the kernel has those in a table of its own
                yield _prefix(name), interfaces


ROUTES_VIEW = View((ROUTES, NEXTHOPS), frozenset({"routes"}), route_facts)

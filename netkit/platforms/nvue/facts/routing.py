"""LLDP neighbours, BGP sessions with BFD, and routes."""

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
    """Parse LLDP neighbours, newest first: NVUE keeps listing former ones."""
    shown = tree(text)
    if shown is None:
        return Facts(neighbors=unread(LLDP, text))
    found = {}
    for name, port in objects(shown):
        ends = [_neighbor(system, end) for system, end in objects(under(port, "lldp", "neighbor"))]
        if ends and PORT.fullmatch(name):
            ends.sort(key=lambda end: (end.age_s is None, end.age_s or 0, end.system))
            found[name] = tuple(ends)
    return Facts(neighbors=found)


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
"""For releases whose NVUE does not show BFD."""
BGP = "nv show router bgp --applied -o json"


def session_view(*, is_brief: bool, has_bfd: bool) -> View:
    """Build the view; since 5.12 only the detail view has all values of neighbours."""
    neighbors = f"{NEIGHBORS}{' --view=detail' if is_brief else ''} -o json"
    return View((neighbors, BFD if has_bfd else BFD_BEFORE, BGP), frozenset({"sessions"}), session_facts)


def session_facts(neighbor_text: str, bfd_text: str, bgp_text: str) -> Facts:
    shown = tree(neighbor_text)
    if shown is None:
        return Facts(sessions=unread(NEIGHBORS, neighbor_text))
    bgp = tree(bgp_text)
    is_draining = None if bgp is None else bool(switched(bgp.get("graceful-shutdown")))
    bfd = _bfd_states(document(bfd_text))
    return Facts(
        sessions={
            name: _session(found, bfd.get(name, bfd.get("")), is_draining=is_draining) for name, found in objects(shown)
        }
    )


def _bfd_states(found: object) -> dict[str, bool]:
    """Map interface and address to whether BFD is up.

    "" is the peer of interfaces that certainly have none.
    NVUE keys peers by address or discriminator, FRR prints a list.
    """
    if not isinstance(found, dict | list):
        return {}
    states: dict[str, bool] = {}
    is_complete = True
    for peer in found.values() if isinstance(found, dict) else found:
        interface = word(peer, "interface", "local-interface") if isinstance(peer, dict) else ""
        if interface:
            is_up = word(peer, "status", "state", "session-state").lower() == "up"
            states |= {interface: is_up, word(peer, "peer") or interface: is_up}
        else:
            is_complete = False
    return {**states, "": False} if is_complete else states


def _session(found: Shown, is_bfd_up: bool | None, *, is_draining: bool | None) -> BgpSession:
    state = word(found, "session-state", "state").lower()
    family = under(found, "address-family", "ipv4-unicast")
    is_established = state == "established"
    own = switched(found.get("graceful-shutdown"))
    if own or is_draining is None:
        is_draining = own
    return BgpSession(
        is_established=is_established,
        state=state,
        peer_asn=whole(found.get("remote-as")),
        received_prefixes=whole(family.get("rx-prefix")),
        sent_prefixes=whole(family.get("tx-prefix")),
        uptime_s=duration_s(found.get("uptime")) if is_established else None,
        drops=whole(found.get("connections-dropped")),
        is_bfd_up=is_bfd_up,
        is_draining=is_draining,
    )


ROUTES, NEXTHOPS = "ip -j -4 route show", "ip -j nexthop show"
IN_NVUE = {ROUTES: "nv show vrf default router rib ipv4 route -o json"}
"""The equivalent over REST."""
PREFIX = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?")
DOWN = frozenset({"dead", "linkdown"})


def route_facts(route_text: str, nexthop_text: str) -> Facts:
    """Parse the interfaces of each route; a blackhole route has none."""
    found = document(route_text)
    if isinstance(found, list):
        routes = _joined(_kernel(found, _groups(nexthop_text)))
        # The kernel's main table is empty without a session; NVUE's table always has the loopback.
        return Facts(routes=routes if routes or not found else Absent(f"{ROUTES}: shows no routes"))
    if isinstance(found, dict):
        return Facts(routes=_joined(_table(found)) or Absent(f"{IN_NVUE[ROUTES]}: shows no routes"))
    return Facts(routes=unread(ROUTES, route_text))


def _joined(found: Iterator[tuple[str, frozenset[str]]]) -> dict[str, tuple[str, ...]]:
    """Keep the first entry of each prefix: the kernel lists the best one first."""
    routes: dict[str, tuple[str, ...]] = {}
    for prefix, interfaces in found:
        routes.setdefault(prefix, tuple(sorted(interfaces)))
    return routes


def _kernel(found: list[Any], groups: dict[int, frozenset[str]]) -> Iterator[tuple[str, frozenset[str]]]:
    for route in found:
        prefix = _prefix(route.get("dst")) if isinstance(route, dict) else ""
        if prefix:
            nexthops = route.get("nexthops")
            interfaces = _interfaces(nexthops if isinstance(nexthops, list) else [route])
            group = route.get("nhid")
            yield prefix, interfaces or (groups.get(group, interfaces) if isinstance(group, int) else interfaces)


def _prefix(name: object) -> str:
    """Normalise a prefix; empty if it is not one."""
    if name == "default":
        return "0.0.0.0/0"
    is_one = isinstance(name, str) and PREFIX.fullmatch(name)
    return (name if "/" in name else f"{name}/32") if is_one and isinstance(name, str) else ""


def _interfaces(nexthops: list[Any]) -> frozenset[str]:
    found = set()
    for nexthop in nexthops:
        device = nexthop.get("dev") if isinstance(nexthop, dict) else None
        if isinstance(device, str):
            flags = nexthop.get("flags")
            is_down = isinstance(flags, list) and any(flag in flags for flag in DOWN)
            if not is_down:
                found.add(device)
    return frozenset(found)


def _groups(text: str) -> dict[int, frozenset[str]]:
    """Map the id of each nexthop and nexthop group to its interfaces."""
    found = document(text)
    hops = {hop["id"]: hop for hop in found if _has_id(hop)} if isinstance(found, list) else {}
    groups = {}
    for number, hop in hops.items():
        members = hop.get("group")
        is_group = isinstance(members, list)
        groups[number] = _interfaces([hops.get(one["id"]) for one in members if _has_id(one)] if is_group else [hop])
    return groups


def _has_id(hop: object) -> bool:
    return isinstance(hop, dict) and isinstance(hop.get("id"), int)


def _table(found: Shown) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the selected routes of NVUE's RIB."""
    for name, route in objects(found):
        entries = [entry for _, entry in objects(route.get("route-entry"))]
        chosen = [entry for entry in entries if "selected" in under(entry, "flags")]
        if _prefix(name) and chosen:
            names = (hop.get("interface") for entry in chosen for _, hop in objects(entry.get("via-entry")))
            interfaces = frozenset(name for name in names if isinstance(name, str) and name)
            if interfaces != {"lo"}:  # local routes, which the kernel keeps in another table
                yield _prefix(name), interfaces


ROUTES_VIEW = View((ROUTES, NEXTHOPS), frozenset({"routes"}), route_facts)

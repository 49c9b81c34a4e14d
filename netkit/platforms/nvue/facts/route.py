"""Routes: what the kernel forwards by, which is what switchd programs; over REST, what the routing table has."""

import re
from collections.abc import Iterator
from typing import Any

from netkit.facts import Absent, Facts
from netkit.platforms.nvue.facts.shown import Shown, document, objects, under, unread
from netkit.platforms.view import View

ROUTES, NEXTHOPS = "ip -j -4 route show", "ip -j nexthop show"
IN_NVUE = {ROUTES: "nv show vrf default router rib ipv4 route -o json"}
"""What tells the same over REST, in its own shape."""
PREFIX = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?:/[0-9]{1,2})?")
DOWN = frozenset({"dead", "linkdown"})


def parse(route_text: str, nexthop_text: str) -> Facts:
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


VIEW = View((ROUTES, NEXTHOPS), frozenset({"routes"}), parse)

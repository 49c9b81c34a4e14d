"""Where a host sends what it knows no better way to: `ip -j route show default`, once for each family."""

from collections.abc import Iterator, Mapping
from typing import Any

from netkit.facts.routing import DefaultRoute
from netkit.platforms.linux.facts.reading import document, member, members, sections, whole, word


def default_routes(text: str) -> tuple[DefaultRoute, ...] | None:
    """Return the default routes of both families; None when those of IPv4 were not told."""
    told = {family: document(shown) for family, shown in sections(text).items()}
    if not isinstance(told.get("4"), list):
        return None
    return tuple(way for family in (4, 6) for route in members(told.get(str(family))) for way in _ways(route, family))


def _ways(route: Mapping[str, Any], family: int) -> Iterator[DefaultRoute]:
    """Yield each next hop of a route; one that refuses packets has none."""
    if word(route, "type") not in {"", "unicast"}:
        return
    for hop in (route, *members(route.get("nexthops"))):
        if word(hop, "dev"):
            gateway = word(hop, "gateway") or word(member(hop, "via"), "host")
            yield DefaultRoute(word(hop, "dev"), gateway, whole(route.get("metric")) or 0, family)

"""BGP sessions and BFD from FRR, and BGP routes from the kernel."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netkit.facts import Absent, Facts
from netkit.facts.host import BgpSession
from netkit.platforms.sonic.facts.dump import value, values

MS_PER_S = 1000
MOST = 1 << 63
SESSIONS = (
    "vtysh -c 'show bgp ipv4 unicast summary json' -c 'show bfd peers json' -c 'show running-config bgpd' "
    "2>&1 | sed '/ password /d'"
)
"""One call, because each goes through the container. Passwords of sessions do not leave the switch."""
ROUTES = "ip -j -4 route show proto bgp"
GONE = frozenset({"dead", "linkdown"})
ROUTER, DRAIN = "router bgp ", " bgp graceful-shutdown"
NEIGHBOR = re.compile(
    r"^ +neighbor (\S+) (?:interface (?:v6only )?)?(peer-group|graceful-shutdown|route-map)(?: (\S+))?(?: (\S+))?$"
)
MAP = re.compile(r"^route-map (\S+) permit \d+$")
ASKS = " set community graceful-shutdown"


def sessions(text: str) -> Facts:
    found = list(values(text))
    summary = next((one for one in found if isinstance(one, dict)), {})
    family = summary.get("ipv4Unicast", summary)  # some releases nest the peers in the address family
    peers = family.get("peers") if isinstance(family, dict) else None
    if not isinstance(peers, dict):
        is_down = "bgpd is not running" in text
        return Facts(sessions=Absent("bgpd does not run" if is_down else "FRR does not show BGP sessions"))
    bfd = _bfd_states(found)
    drains = SonicDrains(text)
    return Facts(
        sessions={name: _session(name, peer, bfd, drains) for name, peer in peers.items() if isinstance(peer, dict)}
    )


def _bfd_states(found: Iterable[object]) -> Mapping[str, bool] | None:
    """Map interface and address to whether BFD is up; None if bfdd does not answer."""
    shown = next((one for one in found if isinstance(one, list)), None)
    if shown is None:
        return None
    peers = [peer for peer in shown if isinstance(peer, dict) and isinstance(peer.get("status"), str)]
    return {str(peer.get(key)): peer["status"] == "up" for key in ("interface", "peer") for peer in peers}


def _session(name: str, peer: Mapping[str, Any], bfd: Mapping[str, bool] | None, drains: "SonicDrains") -> BgpSession:
    state, uptime_ms = peer.get("state"), _whole(peer.get("peerUptimeMsec"))
    is_established = state == "Established"
    return BgpSession(
        is_established=is_established,
        state=state if isinstance(state, str) else "",
        peer_asn=_whole(peer.get("remoteAs")),
        received_prefixes=_whole(peer.get("pfxRcd")),
        sent_prefixes=_whole(peer.get("pfxSnt")),
        uptime_s=uptime_ms / MS_PER_S if is_established and uptime_ms is not None else None,
        drops=_whole(peer.get("connectionsDropped")),
        is_bfd_up=None if bfd is None else bfd.get(name, False),
        is_draining=drains.includes(name),
    )


class SonicDrains:
    """Which neighbours this switch asks to route around it, from bgpd's running configuration."""

    def __init__(self, text: str) -> None:
        lines = [line.rstrip() for line in text.splitlines()]
        self._is_shown = any(line.startswith(ROUTER) for line in lines)
        self._is_whole_switch = DRAIN in lines
        self._drained: set[str] = set()
        self._group_of: dict[str, str] = {}
        draining_maps = frozenset(_asking(lines))
        for found in filter(None, map(NEIGHBOR.match, lines)):
            name, keyword, first, second = found.groups()
            if keyword == "peer-group" and first:
                self._group_of[name] = first
            elif keyword == "graceful-shutdown" or (second == "out" and first in draining_maps):
                self._drained.add(name)

    def includes(self, name: str) -> bool | None:
        """Whether a neighbour is asked; None if the configuration was not shown."""
        if not self._is_shown:
            return None
        return self._is_whole_switch or bool(self._drained & {name, self._group_of.get(name, name)})


def _asking(lines: Iterable[str]) -> Iterator[str]:
    """Yield the route maps that set the graceful-shutdown community."""
    name = ""
    for line in lines:
        found = MAP.match(line)
        name = found[1] if found else name
        if line.startswith(ASKS):
            yield name


def routes(text: str) -> Facts:
    """Parse the interfaces of each BGP route."""
    found = value(text)
    if not isinstance(found, list):
        return Facts(routes=Absent("the kernel does not show its routes"))
    shown: dict[str, tuple[str, ...]] = {}
    for route in found:
        prefix = route.get("dst") if isinstance(route, dict) else None
        if not isinstance(prefix, str):
            continue
        if prefix == "default":
            prefix = "0.0.0.0/0"
        elif "/" not in prefix:
            prefix = f"{prefix}/32"
        shown[prefix] = shown.get(prefix) or _interfaces(route)  # the kernel lists the best one first
    return Facts(routes=shown)


def _interfaces(route: Mapping[str, Any]) -> tuple[str, ...]:
    hops = route.get("nexthops")
    names = []
    for hop in hops if isinstance(hops, list) else [route]:
        name, flags = (hop.get("dev"), hop.get("flags")) if isinstance(hop, dict) else (None, None)
        is_gone = isinstance(flags, list) and any(flag in flags for flag in GONE)  # the port is down
        if isinstance(name, str) and not is_gone:
            names.append(name)
    return tuple(sorted(names))


def _whole(found: object) -> int | None:
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found < MOST
    return int(str(found)) if is_count else None

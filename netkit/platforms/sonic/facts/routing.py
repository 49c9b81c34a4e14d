"""BGP sessions with their BFD, and the routes that lead over them: FRR in JSON, and the kernel's table."""

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
"""One call, because each goes through the container. Passwords of sessions stay on the switch."""
ROUTES = "ip -j -4 route show proto bgp"
GONE = frozenset({"dead", "linkdown"})
ROUTER, DRAIN = "router bgp ", " bgp graceful-shutdown"
NEIGHBOR = re.compile(
    r"^ +neighbor (\S+) (?:interface (?:v6only )?)?(peer-group|graceful-shutdown|route-map)(?: (\S+))?(?: (\S+))?$"
)
MAP = re.compile(r"^route-map (\S+) permit \d+$")
ASKS = " set community graceful-shutdown"


def sessions(text: str) -> Facts:
    """Return the sessions by the interface or address they run on."""
    found = list(values(text))
    peers = _peers(found)
    if peers is None:
        return Facts(sessions=_no_sessions(text))
    bfd = _bfd(found)
    drained = SonicDrains(text)
    told = {name: _session(name, peer, bfd, drained) for name, peer in peers.items() if isinstance(peer, dict)}
    return Facts(sessions=told)


def _no_sessions(text: str) -> Absent:
    if "bgpd is not running" in text:
        return Absent("bgpd does not run")
    return Absent("FRR does not say what BGP sessions there are")


def _peers(found: Iterable[object]) -> Mapping[str, Any] | None:
    """Return the peers of the summary; some releases put the address family around it."""
    for one in found:
        if isinstance(one, dict):
            family = one.get("ipv4Unicast", one)
            peers = family.get("peers") if isinstance(family, dict) else None
            return peers if isinstance(peers, dict) else None
    return None


def _bfd(found: Iterable[object]) -> Mapping[str, bool] | None:
    """Return interface → whether BFD is up there; None when bfdd does not tell."""
    told = next((one for one in found if isinstance(one, list)), None)
    if told is None:
        return None
    peers = [peer for peer in told if isinstance(peer, dict) and isinstance(peer.get("status"), str)]
    return {str(peer.get("interface") or peer.get("peer")): peer["status"] == "up" for peer in peers}


def _session(name: str, peer: Mapping[str, Any], bfd: Mapping[str, bool] | None, drained: "SonicDrains") -> BgpSession:
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
        is_draining=drained.asks(name),
    )


class SonicDrains:
    """Which neighbours are asked to go around this switch, by bgpd's running configuration."""

    def __init__(self, text: str) -> None:
        lines = [line.rstrip() for line in text.splitlines()]
        self._is_told = any(line.startswith(ROUTER) for line in lines)
        self._is_whole = DRAIN in lines
        self._asking = frozenset(_asking(lines))
        self._named: set[str] = set()
        self._group_of: dict[str, str] = {}
        for found in filter(None, map(NEIGHBOR.match, lines)):
            self._add(*found.groups())

    def _add(self, name: str, what: str, first: str | None, second: str | None) -> None:
        if what == "peer-group" and first:
            self._group_of[name] = first
        elif what == "graceful-shutdown" or (second == "out" and first in self._asking):
            self._named.add(name)

    def asks(self, name: str) -> bool | None:
        """Whether a neighbour is asked; nothing when the configuration was not shown."""
        if not self._is_told:
            return None
        return self._is_whole or bool(self._named & {name, self._group_of.get(name, name)})


def _asking(lines: Iterable[str]) -> Iterator[str]:
    """Yield the route maps that mark all they let out."""
    name = ""
    for line in lines:
        found = MAP.match(line)
        name = found[1] if found else name
        if line.startswith(ASKS):
            yield name


def routes(text: str) -> Facts:
    """Return the interfaces the next hops of each BGP route are on."""
    found = value(text)
    if not isinstance(found, list):
        return Facts(routes=Absent("the kernel does not show its routes"))
    told: dict[str, tuple[str, ...]] = {}
    for one in found:
        if isinstance(one, dict) and isinstance(one.get("dst"), str):
            prefix = _prefix(one["dst"])
            told[prefix] = told.get(prefix) or _interfaces(one)  # the kernel lists the best one first
    return Facts(routes=told)


def _interfaces(route: Mapping[str, Any]) -> tuple[str, ...]:
    hops = route.get("nexthops")
    alive = [
        hop for hop in (hops if isinstance(hops, list) else [route]) if isinstance(hop, dict) and not _is_gone(hop)
    ]
    return tuple(sorted(name for hop in alive if isinstance(name := hop.get("dev"), str)))


def _is_gone(hop: Mapping[str, Any]) -> bool:
    """Whether the kernel sends nothing there: the port is down, and the route still stands."""
    flags = hop.get("flags")
    return isinstance(flags, list) and any(flag in GONE for flag in flags if isinstance(flag, str))


def _prefix(text: str) -> str:
    return "0.0.0.0/0" if text == "default" else text if "/" in text else f"{text}/32"


def _whole(found: object) -> int | None:
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found < MOST
    return int(str(found)) if is_count else None

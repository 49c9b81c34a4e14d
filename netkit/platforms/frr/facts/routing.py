"""BGP sessions with their BFD and drains as FRR tells them, and the kernel's routes."""

from collections.abc import Iterable, Iterator, Mapping

from netkit.errors import NetkitError
from netkit.facts import Absent, Facts
from netkit.facts.host import BgpSession
from netkit.platforms.frr.model import GRAMMAR
from netkit.platforms.frr.reply import SHOWN
from netkit.platforms.shown import Shown, documents, named, parsed, rows, table, text, whole
from netkit.platforms.written import ConfigLine, lines

ESTABLISHED, UP = "Established", "up"
MS_PER_S = 1000
WHOLE = "bgp graceful-shutdown"
MARKS = "set community graceful-shutdown"
NEIGHBOR, ROUTER, MAP = "neighbor ", "router bgp ", "route-map "
GONE = frozenset({"dead", "linkdown"})


def sessions(printed: str) -> Facts:
    """Return the sessions by the interface or address they run on."""
    told = list(documents(printed))
    peers = next((found for one in told if (found := _peers(one)) is not None), None)
    if peers is None:
        return Facts(sessions=Absent("FRR shows no BGP sessions"))
    alive, drained = _alive(told), FrrDrains(configuration(printed))
    return Facts(sessions={name: _session(name, peer, alive, drained) for name, peer in named(peers)})


def _peers(document: object) -> Shown | None:
    """Return the peers of the summary; some releases put the address family around it."""
    family = table(document, "ipv4Unicast") or table(document)
    found = family.get("peers")
    return found if isinstance(found, dict) else None


def _alive(told: Iterable[object]) -> Mapping[str, bool] | None:
    """Return interface → whether BFD is up there; None when bfdd does not tell."""
    found = next((one for one in told if isinstance(one, list)), None)
    if found is None:
        return None
    return {text(peer.get("interface")) or text(peer.get("peer")): peer.get("status") == UP for peer in rows(found)}


def _session(name: str, peer: Shown, alive: Mapping[str, bool] | None, drained: "FrrDrains") -> BgpSession:
    state, uptime_ms = text(peer.get("state")), whole(peer.get("peerUptimeMsec"))
    is_established = state == ESTABLISHED
    return BgpSession(
        is_established=is_established,
        state=state,
        peer_asn=whole(peer.get("remoteAs")) or None,  # 0 until the first OPEN of a neighbour
        received_prefixes=whole(peer.get("pfxRcd")),
        sent_prefixes=whole(peer.get("pfxSnt")),
        uptime_s=uptime_ms / MS_PER_S if is_established and uptime_ms is not None else None,
        drops=whole(peer.get("connectionsDropped")),
        is_bfd_up=None if alive is None else alive.get(name, False),
        is_draining=drained.asks(name),
    )


def configuration(printed: str) -> tuple[ConfigLine, ...]:
    """Return the lines of FRR's configuration in what it printed; none when it is not whole."""
    _, found, shown = printed.partition(SHOWN)
    if not found or not shown.rstrip().endswith("\nend"):
        return ()
    try:
        return tuple(lines(shown, GRAMMAR))
    except (NetkitError, ValueError, RecursionError):
        return ()


class FrrDrains:
    """Which neighbours are asked to go around this switch."""

    def __init__(self, found: tuple[ConfigLine, ...]) -> None:
        self._is_told = any(line.text.startswith(ROUTER) for line in found)
        self._is_whole = any(line.text == WHOLE for line in found)
        marking = {
            line.headers[0].split(" ")[1]
            for line in found
            if line.text.startswith(MARKS) and line.headers and line.headers[0].startswith(MAP)
        }
        words = [line.text.split(" ") for line in found if line.text.startswith(NEIGHBOR)]
        self._asked = {name for _, name, *rest in filter(_has_name, words) if _asks(rest, marking)}
        self._group_of = {name: rest[-1] for _, name, *rest in filter(_has_name, words) if "peer-group" in rest[:-1]}

    def asks(self, name: str) -> bool | None:
        """Whether a neighbour is asked; None when the configuration is not told."""
        if not self._is_told:
            return None
        return self._is_whole or bool(self._asked & {name, self._group_of.get(name, name)})


def _has_name(words: list[str]) -> bool:
    return len(words) > 1


def _asks(rest: list[str], marking: Iterable[str]) -> bool:
    """Whether a neighbour is asked by a command of its own, or by a route map that marks what goes out."""
    return rest[:1] == ["graceful-shutdown"] or (
        rest[:1] == ["route-map"] and rest[2:] == ["out"] and rest[1] in marking
    )


def routes(printed: str) -> Facts:
    """Return prefix → the interfaces its next hops are on, of the kernel: that is what forwards."""
    found = parsed(printed)
    if not isinstance(found, list):
        return Facts(routes=Absent("the kernel does not show its routes"))
    told: dict[str, tuple[str, ...]] = {}
    for route in rows(found):
        prefix, devices = _prefix(text(route.get("dst"))), tuple(sorted(_devices(route)))
        if prefix and devices:
            told.setdefault(prefix, devices)  # the kernel lists the best one first
    return Facts(routes=told)


def _devices(route: Shown) -> Iterator[str]:
    hops = rows(route.get("nexthops")) or [route]
    for hop in hops:
        flags = hop.get("flags")
        is_gone = isinstance(flags, list) and any(flag in GONE for flag in flags if isinstance(flag, str))
        if (name := text(hop.get("dev"))) and not is_gone:
            yield name


def _prefix(shown: str) -> str:
    if shown == "default":
        return "0.0.0.0/0"
    return f"{shown}/32" if shown and "/" not in shown else shown

"""BGP sessions with their BFD and drains, and the forwarding table."""

from collections.abc import Iterator, Mapping

from netkit.facts import Absent, Facts
from netkit.facts.host import BgpSession
from netkit.platforms.eos.facts.interface import BGP, ROUTES, long_name
from netkit.platforms.shown import Shown, flag, named, number, parsed, rows, table, text, whole

ESTABLISHED, UP, ACTIVE = "Established", "up", "active"
SYSTEM_UNIT = "System"
NOWHERE = frozenset({"", "Null0"})
DEFAULT = "default"


def sessions(neighbors: str, summary: str, bfd: str, maintenance: str) -> Facts:
    """Return the sessions by interface; an unnumbered neighbour has no address before it is found."""
    answer = parsed(neighbors)
    if not isinstance(table(answer).get("vrfs"), dict):
        return Facts(sessions=Absent(f"{BGP} cannot be read"))
    counted, alive, drained = dict(_counted(parsed(summary))), _alive(parsed(bfd)), _drained(parsed(maintenance))
    found = {}
    for _, vrf in named(answer, "vrfs"):
        for peer in rows(vrf.get("peerList")):
            name = long_name(text(peer.get("ifName")) or text(peer.get("peerAddress")))
            if name:
                found[name] = _session(name, peer, counted.get(name, {}), alive, drained)
    return Facts(sessions=found)


def _session(
    name: str, peer: Shown, counted: Shown, alive: Mapping[str, bool] | None, drained: Mapping[str, bool] | None
) -> BgpSession:
    state = text(peer.get("state"))
    is_established = state == ESTABLISHED
    received = whole(counted.get("prefixReceived"))
    return BgpSession(
        is_established=is_established,
        state=state,
        peer_asn=whole(peer.get("asn")) or whole(counted.get("asn")),
        received_prefixes=whole(peer.get("prefixesReceived")) if received is None else received,
        sent_prefixes=whole(peer.get("prefixesSent")),
        uptime_s=number(peer.get("establishedTime")) if is_established else None,
        is_bfd_up=None if alive is None else alive.get(name, False),
        is_draining=_is_draining(name, flag(counted.get("underMaintenance")), drained),
    )


def _counted(answer: object) -> Iterator[tuple[str, Shown]]:
    """Yield peers by what stands behind the %: that is the port of an unnumbered one."""
    for _, vrf in named(answer, "vrfs"):
        for address, peer in named(vrf, "peers"):
            yield long_name(address.rpartition("%")[2]), peer


def _alive(answer: object) -> Mapping[str, bool] | None:
    """Return interface → whether BFD is up there; None when EOS does not tell."""
    if not isinstance(table(answer).get("vrfs"), dict):
        return None
    found: dict[str, bool] = {}
    for _, vrf in named(answer, "vrfs"):
        for family in ("ipv4Neighbors", "ipv6Neighbors"):
            for address, peer in named(vrf, family):
                for interface, one in named(peer, "peerStats"):
                    is_up = text(one.get("status")) == UP
                    found |= {long_name(interface): is_up, address: is_up}
    return found


def _drained(answer: object) -> Mapping[str, bool] | None:
    """Return what is in maintenance: interfaces, and units by name; None when EOS does not tell."""
    shown = table(answer)
    if not isinstance(shown.get("units"), dict):
        return None
    units = {name: text(one.get("state")) not in {ACTIVE, ""} for name, one in named(shown, "units")}
    ports = {long_name(name): text(one.get("status")) not in {ACTIVE, ""} for name, one in named(shown, "interfaces")}
    return {**ports, SYSTEM_UNIT: units.get(SYSTEM_UNIT, False)}


def _is_draining(name: str, is_peer: bool | None, drained: Mapping[str, bool] | None) -> bool | None:
    if drained is None:
        return is_peer
    return bool(is_peer) or drained.get(name, False) or drained[SYSTEM_UNIT]


def routes(shown: str) -> Facts:
    """Return prefix → the interfaces its next hops are on, as far as the hardware has them."""
    vrf = table(parsed(shown), "vrfs", DEFAULT)
    if not isinstance(vrf.get("routes"), dict):
        return Facts(routes=Absent(f"{ROUTES} cannot be read"))
    found = {prefix: _interfaces(one) for prefix, one in named(vrf, "routes")}
    return Facts(routes={prefix: names for prefix, names in found.items() if names})


def _interfaces(route: Shown) -> tuple[str, ...]:
    if flag(route.get("hardwareProgrammed")) is False:
        return ()
    names = (text(via.get("interface")) for via in rows(route.get("vias")))
    return tuple(sorted({long_name(name) for name in names if name not in NOWHERE}))

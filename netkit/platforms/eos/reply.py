"""What EOS answers about its sessions, as netkit reads it. What is not told is 0."""

from collections.abc import Iterator, Mapping
from typing import Any

from netkit.platforms.driver import SessionState

ESTABLISHED = "Established"
SHORT, LONG = "Et", "Ethernet"


def sessions(neighbors: Mapping[str, Any], summary: Mapping[str, Any], now_s: float) -> Iterator[SessionState]:
    """Yield the sessions of `show bgp neighbors vrf all`, with the prefixes of `show ip bgp summary vrf all`."""
    counted = {
        name: peer
        for vrf in _objects(summary.get("vrfs"))
        for address, peer in _named(vrf.get("peers"))
        for name in (address, _port(address))
    }
    for vrf in _objects(neighbors.get("vrfs")):
        peers = vrf.get("peerList")
        for peer in peers if isinstance(peers, list) else []:
            name = str(peer.get("ifName") or peer.get("peerAddress", ""))
            yield _session(name, peer, counted.get(name, {}), now_s)


def _session(name: str, peer: Mapping[str, Any], counted: Mapping[str, Any], now_s: float) -> SessionState:
    is_established = peer.get("state") == ESTABLISHED
    since_s = counted.get("upDownTime", now_s)
    uptime_s = int(max(0, now_s - since_s)) if is_established and isinstance(since_s, int | float) else 0
    return SessionState(name, is_established, int(counted.get("prefixReceived", 0)), uptime_s)


def _port(address: str) -> str:
    """Return the interface of `fe80::1%Et1/5`, or of `Et1/5` before there is an address."""
    name = address.rpartition("%")[2]
    is_short = name.startswith(SHORT) and not name.startswith(LONG)
    return f"{LONG}{name.removeprefix(SHORT)}" if is_short else name


def _named(found: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((name, one) for name, one in found.items() if isinstance(one, dict)) if isinstance(found, dict) else ()


def _objects(found: object) -> Iterator[Mapping[str, Any]]:
    yield from (one for _, one in _named(found))

"""BGP sessions from EOS's answers. Missing values are 0."""

from collections.abc import Iterator, Mapping
from typing import Any

from netkit.platforms.driver import SessionState
from netkit.platforms.eos.facts.interface import long_name

ESTABLISHED = "Established"


def sessions(neighbors: Mapping[str, Any], summary: Mapping[str, Any], now_s: float) -> Iterator[SessionState]:
    """Parse the sessions of `show bgp neighbors vrf all`, with the prefixes of `show ip bgp summary vrf all`."""
    counted = {
        name: peer
        for vrf in _objects(summary.get("vrfs"))
        for address, peer in _named(vrf.get("peers"))
        for name in (address, long_name(address.rpartition("%")[2]))  # fe80::1%Et1/5, or Et1/5 without an address yet
    }
    for vrf in _objects(neighbors.get("vrfs")):
        peers = vrf.get("peerList")
        for peer in peers if isinstance(peers, list) else []:
            name = str(peer.get("ifName") or peer.get("peerAddress", ""))
            counts = counted.get(name, {})
            is_established = peer.get("state") == ESTABLISHED
            since_s = counts.get("upDownTime", now_s)
            uptime_s = int(max(0, now_s - since_s)) if is_established and isinstance(since_s, int | float) else 0
            yield SessionState(name, is_established, int(counts.get("prefixReceived", 0)), uptime_s)


def _named(found: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((name, one) for name, one in found.items() if isinstance(one, dict)) if isinstance(found, dict) else ()


def _objects(found: object) -> Iterator[Mapping[str, Any]]:
    yield from (one for _, one in _named(found))

"""The proof that a lab is what its design says: sessions, routes, and pings between its NICs."""

from collections.abc import Mapping
from typing import Any

from netkit.design.fabric import Fabric
from netkit.lab.live import LiveNode
from netkit.lab.proof import convergence, reach

Nodes = Mapping[str, LiveNode]


def check(fabric: Fabric, nodes: Nodes) -> Mapping[str, Any]:
    """Examine the lab as it is now, with a ping between every two NICs that the design connects."""
    missing = convergence.missing(fabric, nodes)
    return _tripped(fabric, nodes, [f"{name}: {what}" for name, whats in missing.items() for what in whats])


def examine(fabric: Fabric, nodes: Nodes, most: int, patience_s: float) -> Mapping[str, Any]:
    """Examine the lab once all is quiet, by packets as large as its hosts may send, on so many trips."""
    lacks = convergence.wait(fabric, nodes, patience_s, lambda _done, _total: None)
    packet_bytes = min((host.mtu_bytes for host in fabric.hosts), default=0)
    return _tripped(fabric, nodes, [str(lack) for lack in lacks], most, packet_bytes)


def _tripped(
    fabric: Fabric, nodes: Nodes, lacks: list[str], most: int | None = None, packet_bytes: int = 0
) -> Mapping[str, Any]:
    """Return what is lacking, with the trips that fail, or pass where the design blocks them."""
    every_own = list(reach.every_trip(fabric, is_across=False))
    every_across = list(reach.every_trip(fabric, is_across=True))
    own, across = reach.sampled(every_own, most), reach.sampled(every_across, most)
    found = [*lacks, *map(str, reach.unreached(nodes, own, packet_bytes))]
    silent = reach.unreached(nodes, across, packet_bytes)
    if fabric.cross_rail == "routed":
        found += map(str, silent)
    elif passed := len(across) - len(silent):
        found.append(f"{passed} of {len(across)} trips across rails succeed; the design blocks them")
    return {
        "shortfalls": found,
        "own": len(own),
        "across": len(across),
        "own_trips": len(every_own),
        "across_trips": len(every_across),
        "beyond": len([trip for trip in (*own, *across) if trip.nic.leaf != trip.to_nic.leaf]),
        "is_blocked": fabric.cross_rail == "blocked",
        "packet_bytes": packet_bytes,
    }

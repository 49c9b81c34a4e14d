"""Whether hosts reach each other: from the right source address, on the right NIC, by real packets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from netkit.design.expectation import ways
from netkit.design.fabric import Fabric, Host, Nic
from netkit.lab.live import LiveNode
from netkit.lab.proof import convergence
from netkit.lab.proof.convergence import ASKERS, Shortfall

PATIENCE_S = 300.0
HEADERS_BYTES = 28
"""Of IPv4 and ICMP."""
TRY = """try() {
  for n in 1 2 3 4 5 6; do ping -q -n -c 1 -W 1 $SIZE -I $1 -I $2 $3 >/dev/null 2>&1 && return; sleep 0.2; done
  echo "$1 $2 $3"
}"""


@dataclass(frozen=True, slots=True)
class NicPing:
    """A ping from a NIC to a NIC."""

    host: str
    nic: Nic
    to_host: str
    to_nic: Nic


def every_trip(fabric: Fabric, *, is_across: bool) -> Iterator[NicPing]:
    """Yield every ordered pair of NICs of different hosts that have a way: on the same rail, or on different ones."""
    known = ways(fabric)
    for host in fabric.hosts:
        for nic in host.nics:
            for other in fabric.hosts:
                for far in other.nics if other.name != host.name else ():
                    if (far.rail != nic.rail) is is_across and far.leaf in known[nic.leaf]:
                        yield NicPing(host.name, nic, other.name, far)


def some_trips(fabric: Fabric) -> Iterator[NicPing]:
    """Yield enough to use each NIC and each of its routes' kinds: the next host on the same rail and on the next."""
    known = ways(fabric)
    hosts = fabric.hosts
    for index, host in enumerate(hosts):
        other = hosts[(index + 1) % len(hosts)]
        rails = [nic.rail for nic in host.nics]
        for place, nic in enumerate(host.nics):
            across = rails[(place + 1) % len(rails)]
            for rail in dict.fromkeys((nic.rail, across if fabric.cross_rail == "routed" else nic.rail)):
                far = _on_rail(other, rail)
                if other.name != host.name and far and far.leaf in known[nic.leaf]:
                    yield NicPing(host.name, nic, other.name, far)


def sampled(trips: Sequence[NicPing], most: int | None) -> Sequence[NicPing]:
    """Return no more trips than that, from among all of them."""
    return trips if most is None or len(trips) <= most else [trips[len(trips) * n // most] for n in range(most)]


def unreached(nodes: Mapping[str, LiveNode], trips: Iterable[NicPing], packet_bytes: int = 0) -> list[Shortfall]:
    """Ping, all hosts at once, by packets of a size that nobody may cut up; return the trips that got no answer."""
    by_host: dict[str, list[NicPing]] = {}
    for trip in trips:
        by_host.setdefault(trip.host, []).append(trip)
    size = f"-M do -s {packet_bytes - HEADERS_BYTES}" if packet_bytes > HEADERS_BYTES else ""
    with ThreadPoolExecutor(ASKERS) as pool:
        answers = pool.map(lambda item: list(_unreached_from(nodes[item[0]], item[1], size)), by_host.items())
        return [lack for lacks in answers for lack in lacks]


def _unreached_from(node: LiveNode, trips: list[NicPing], size: str) -> Iterator[Shortfall]:
    """Ping from all NICs of a host at once, each NIC one destination after the other."""
    words = {f"{trip.nic.interface} {trip.nic.address} {trip.to_nic.address}": trip for trip in trips}
    by_nic: dict[str, list[str]] = {}
    for text, trip in words.items():
        by_nic.setdefault(trip.nic.interface, []).append(f"try {text}")
    rounds = [f"({'; '.join(lines)}) &" for lines in by_nic.values()]
    large = " to whole packets" if size else ""
    done = node.run("sh", "-s", stdin="\n".join([f"SIZE='{size}'", TRY, *rounds, "wait"]), timeout_s=PATIENCE_S)
    if done.exit_code != 0:
        yield Shortfall(node.name, f"the pings did not end: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        trip = words[line]
        what = f"no answer{large} from {trip.to_host} on rail {trip.to_nic.rail} ({trip.to_nic.address})"
        yield Shortfall(node.name, what, trip.nic.interface)


def _on_rail(host: Host, rail: int) -> Nic | None:
    return next((nic for nic in host.nics if nic.rail == rail), None)


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
    every_own = list(every_trip(fabric, is_across=False))
    every_across = list(every_trip(fabric, is_across=True))
    own, across = sampled(every_own, most), sampled(every_across, most)
    found = [*lacks, *map(str, unreached(nodes, own, packet_bytes))]
    silent = unreached(nodes, across, packet_bytes)
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

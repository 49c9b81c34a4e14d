"""Proofs in a running lab: its state matches the design, hosts reach each other, and pings lost during a change."""

import json
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import IO, Any

from netkit.design.expectation import Expectation, expectations, ways
from netkit.design.fabric import Fabric, Nic, Switch
from netkit.errors import LabError, Problem
from netkit.lab.live import LiveNode
from netkit.lab.namespace_holder import ENVIRONMENT

PAUSE_S = 0.5
ASKERS = 4
ESTABLISHED = "Established"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A difference between a device and the design."""

    device: str
    what: str
    port: str = ""

    def __str__(self) -> str:
        return f"{self.device}{':' + self.port if self.port else ''}: {self.what}"


def wait(
    fabric: Fabric, nodes: Mapping[str, LiveNode], patience_s: float, progress: Callable[[int, int], None]
) -> list[Shortfall]:
    """Poll all switches until nothing is missing or time runs out; return what is still missing."""
    wanted = expectations(fabric)
    open_devices = [name for name in wanted if name in nodes]
    deadline = time.monotonic() + patience_s
    with ThreadPoolExecutor(ASKERS) as pool:
        while True:
            answers = pool.map(lambda name: shortfalls(fabric, nodes[name], wanted[name]), open_devices)
            found = dict(zip(open_devices, answers, strict=True))
            open_devices = [name for name, missing in found.items() if missing]
            progress(len(wanted) - len(open_devices), len(wanted))
            if not open_devices or time.monotonic() > deadline:
                return [shortfall for missing in found.values() for shortfall in missing]
            time.sleep(PAUSE_S)


def missing(fabric: Fabric, nodes: Mapping[str, LiveNode]) -> Mapping[str, list[str]]:
    """What each switch lacks now."""
    wanted = {name: expected for name, expected in expectations(fabric).items() if name in nodes}
    with ThreadPoolExecutor(ASKERS) as pool:
        answers = pool.map(lambda name: shortfalls(fabric, nodes[name], wanted[name]), wanted)
        return {
            name: [f"{found.port}: {found.what}" if found.port else found.what for found in shortfalls]
            for name, shortfalls in zip(wanted, answers, strict=True)
        }


def shortfalls(fabric: Fabric, node: LiveNode, wanted: Expectation) -> list[Shortfall]:
    """What one switch lacks now."""
    switch = fabric.switch(node.name)
    try:
        found = list(_sessions(fabric, node, switch, wanted))
        return found or list(_routes(node, switch, wanted))
    except (OSError, ValueError) as error:
        return [Shortfall(switch.name, f"routing does not answer: {error}")]


def _sessions(fabric: Fabric, node: LiveNode, switch: Switch, wanted: Expectation) -> Iterator[Shortfall]:
    if not wanted.sessions:
        return
    summary = json.loads(node.vty("show bgp ipv4 unicast summary json") or "{}")
    summary = summary.get("ipv4Unicast", summary)
    peers = summary.get("peers", {})
    if not peers:
        yield Shortfall(switch.name, "BGP is not configured")
        return
    local_as = summary.get("as")
    if local_as != switch.asn:
        yield Shortfall(switch.name, f"BGP runs as AS {local_as}, the design has {switch.asn}")
    neighbors = _neighbors(node, switch)
    for port, peer in wanted.sessions.items():
        interface = neighbors[port]
        state = peers.get(interface, {}).get("state", "not configured")
        if state != ESTABLISHED:
            yield Shortfall(switch.name, f"session to {peer} is {state}{_reason(fabric, node, peer, interface)}", port)
    for outside in switch.external:
        state = peers.get(outside.peer, {}).get("state", "not configured")
        if state != ESTABLISHED:
            yield Shortfall(switch.name, f"session to {outside.peer_name} is {state}", outside.name)


def _neighbors(node: LiveNode, switch: Switch) -> Mapping[str, str]:
    """The name of the neighbour that FRR has on each port."""
    return {port.name: port.peer_address or node.kernel_names[port.name] for port in switch.fabric_ports}


def _reason(fabric: Fabric, node: LiveNode, peer: str, interface: str) -> str:
    """Why a session is not established, as far as the node knows."""
    details = json.loads(node.vty(f"show bgp neighbors {interface} json") or "{}").get(interface, {})
    asn = details.get("remoteAs")
    designed = fabric.switch(peer).asn
    if asn and asn != designed:
        return f": AS {asn} is expected there, {peer} is AS {designed} in the design"
    for key in ("lastNotificationReason", "lastResetDueTo"):
        if reason := str(details.get(key, "")).strip():
            return f": {reason}"
    return ""


def _routes(node: LiveNode, switch: Switch, wanted: Expectation) -> Iterator[Shortfall]:
    """Compare next hops in use with the design, leaf prefix by leaf prefix."""
    if not wanted.widths:
        return
    table = json.loads(node.vty("show ip route json", "zebra") or "{}")
    hops = {prefix: installed(table, prefix) for prefix in wanted.widths}
    too_few = {prefix: count for prefix, count in hops.items() if count < wanted.widths[prefix]}
    if too_few:
        yield from _without_policy(node, switch, wanted)
    for prefix, count in too_few.items():
        what = f"{count} of {wanted.widths[prefix]} next hops to {prefix}" if count else f"no route to {prefix}"
        yield Shortfall(switch.name, what)


def _without_policy(node: LiveNode, switch: Switch, wanted: Expectation) -> Iterator[Shortfall]:
    """Yield the sessions that carry no routes because a route policy is missing."""
    peers = json.loads(node.vty("show bgp neighbors json") or "{}")
    neighbors = _neighbors(node, switch)
    for port, peer in wanted.sessions.items():
        families = peers.get(neighbors[port], {}).get("addressFamilyInfo", {})
        family = families.get("ipv4Unicast", {})
        for direction in ("inbound", "outbound"):
            if family.get(f"{direction}EbgpRequiresPolicy"):
                what = f"no {direction} route policy towards {peer}: every route is discarded"
                yield Shortfall(switch.name, what, port)


def installed(table: Mapping[str, Any], prefix: str) -> int:
    """How many next hops the kernel uses for a prefix."""
    for route in table.get(prefix, ()):
        if route.get("selected"):
            hops = [hop for hop in route.get("nexthops", ()) if hop.get("active") and hop.get("fib")]
            return len(hops)
    return 0


ANSWER = re.compile(r"^\[(\d+\.\d+)\] \d+ bytes from .* icmp_seq=(\d+) .*time=([\d.]+) ms")
UNSENT = re.compile(r"^ping: send(?:msg|to): ")
"""A host without a route for a packet; ping neither numbers nor counts these."""
SENT = re.compile(r"^(\d+) packets transmitted", re.MULTILINE)
NUMBERS = 1 << 16
"""The range of ping's sequence numbers."""
ENDING_S = 10.0
IN_FLIGHT = 1
"""The last packet of a ping may have no answer yet when the ping ends."""
Request = Mapping[str, Any]
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrafficPair:
    """A ping from a NIC to an address."""

    name: str
    host: str
    interface: str
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Consecutive unanswered packets, between the answered ones around them, in seconds since the epoch."""

    began_s: float
    ended_s: float
    lost: int


@dataclass(frozen=True, slots=True)
class PingResult:
    """The result of one ping; `problem` is the reason if nothing was sent."""

    name: str
    sent: int
    gaps: tuple[Gap, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    began_s: float


class Caller:
    """Starts and stops the continuous pings of a lab."""

    def __init__(self, nodes: Mapping[str, LiveNode]) -> None:
        self._nodes = nodes
        self._running: dict[str, _Running] = {}

    def begin(self, request: Request) -> Answer:
        """Start pings, which run until they are ended."""
        if self._running:
            raise LabError(Problem("the hosts of this lab ping each other already", "end the other proof first"))
        interval_s = float(request["interval_s"])
        for call in (TrafficPair(**fields) for fields in request["calls"]):
            words = ["ping", "-n", "-D", "-i", f"{interval_s:g}", "-I", call.interface, "-I", call.source]
            output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the ping; a pipe would fill up)
            process = subprocess.Popen(  # noqa: S603
                [*self._nodes[call.host].holder.enter(), *words, call.destination],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=ENVIRONMENT,
            )
            self._running[call.name] = _Running(process, output, time.time())
        return {}

    def end(self, _request: Request) -> Answer:
        """Stop all pings, and return their results."""
        running, self._running = self._running, {}
        ended_s = time.time()
        for ping in running.values():
            ping.process.send_signal(signal.SIGINT)
        results = [parse_ping(name, _output(ping), ping.began_s, ended_s) for name, ping in running.items()]
        return {"heard": [asdict(result) for result in results]}


def parse_ping(name: str, text: str, began_s: float, ended_s: float) -> PingResult:
    sent_s = {0: began_s}
    unsent: Counter[int] = Counter()
    last = 0
    for line in text.splitlines():
        if answer := ANSWER.match(line):
            at_s, number, took_ms = answer.groups()
            last = last + (int(number) - last + NUMBERS // 2) % NUMBERS - NUMBERS // 2
            sent_s[last] = float(at_s) - float(took_ms) / 1000
        elif UNSENT.match(line):
            unsent[max(sent_s)] += 1
    found = SENT.search(text)
    sent = int(found[1]) if found else max(sent_s)
    if not sent and not unsent:
        return PingResult(name, 0, (), (text.strip().splitlines() or ["ping printed nothing"])[-1])
    return PingResult(name, sent + unsent.total(), tuple(_gaps(sent_s, unsent, sent, ended_s)))


def _gaps(sent_s: Mapping[int, float], unsent: Mapping[int, int], sent: int, ended_s: float) -> Iterator[Gap]:
    """Yield the gaps between answered packets, by sequence number; number 0 is the start."""
    for before, after in pairwise(sorted(sent_s)):
        if lost := after - before - 1 + unsent.get(before, 0):
            yield Gap(sent_s[before], sent_s[after], lost)
    last = max(sent_s)
    if (lost := sent - last + unsent.get(last, 0)) > IN_FLIGHT:
        yield Gap(sent_s[last], ended_s, lost)


def _output(ping: _Running) -> str:
    try:
        ping.process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        ping.process.kill()
        ping.process.wait()
    with ping.output as file:
        file.seek(0)
        return file.read().decode(errors="replace")


PATIENCE_S = 300.0
HEADERS_BYTES, HEADERS_V6_BYTES = 28, 48
"""Of IPv4 or IPv6, and ICMP."""
TRY = """try() {
  [ $4 = 0 ] && size= || size="-M do -s $4"
  for n in 1 2 3 4 5 6; do ping -q -n -c 1 -W 1 $size -I $1 -I $2 $3 >/dev/null 2>&1 && return; sleep 0.2; done
  echo "$1 $2 $3"
}"""


@dataclass(frozen=True, slots=True)
class NicPing:
    """A ping from a NIC to a NIC, over IPv4 or IPv6."""

    host: str
    nic: Nic
    to_host: str
    to_nic: Nic
    is_ipv6: bool = False

    @property
    def source(self) -> str:
        return self.nic.address_v6 if self.is_ipv6 else self.nic.address

    @property
    def destination(self) -> str:
        return self.to_nic.address_v6 if self.is_ipv6 else self.to_nic.address


def over_each_family(trips: Iterable[NicPing]) -> Iterator[NicPing]:
    """Yield each ping, and the same over IPv6 where both ends have it."""
    for trip in trips:
        yield trip
        if trip.nic.address_v6 and trip.to_nic.address_v6:
            yield replace(trip, is_ipv6=True)


def every_trip(fabric: Fabric, *, is_across: bool) -> Iterator[NicPing]:
    """Yield every ordered pair of NICs of different hosts that have a path: on the same rail, or on different ones."""
    known = ways(fabric)
    for host in fabric.hosts:
        for nic in host.nics:
            for other in fabric.hosts:
                for far in other.nics if other.name != host.name else ():
                    if (far.rail != nic.rail) is is_across and far.leaf in known[nic.leaf]:
                        yield NicPing(host.name, nic, other.name, far)


def some_trips(fabric: Fabric) -> Iterator[NicPing]:
    """Yield pairs that use every NIC and every kind of route: to the next host, on the same rail and on the next."""
    known = ways(fabric)
    hosts = fabric.hosts
    for index, host in enumerate(hosts):
        other = hosts[(index + 1) % len(hosts)]
        rails = [nic.rail for nic in host.nics]
        for place, nic in enumerate(host.nics):
            across = rails[(place + 1) % len(rails)]
            for rail in dict.fromkeys((nic.rail, across if fabric.cross_rail == "routed" else nic.rail)):
                far = next((nic for nic in other.nics if nic.rail == rail), None)
                if other.name != host.name and far and far.leaf in known[nic.leaf]:
                    yield NicPing(host.name, nic, other.name, far)


def sampled(trips: Sequence[NicPing], most: int | None) -> Sequence[NicPing]:
    """At most `most` pings, evenly spread."""
    return trips if most is None or len(trips) <= most else [trips[len(trips) * n // most] for n in range(most)]


def unreached(nodes: Mapping[str, LiveNode], trips: Iterable[NicPing], packet_bytes: int = 0) -> list[Shortfall]:
    """Ping from all hosts in parallel, with unfragmented packets of a size; return the pings without an answer."""
    by_host: dict[str, list[NicPing]] = {}
    for trip in over_each_family(trips):
        by_host.setdefault(trip.host, []).append(trip)
    with ThreadPoolExecutor(ASKERS) as pool:
        answers = pool.map(lambda item: list(_unreached_from(nodes[item[0]], item[1], packet_bytes)), by_host.items())
        return [shortfall for found in answers for shortfall in found]


def _unreached_from(node: LiveNode, trips: list[NicPing], packet_bytes: int) -> Iterator[Shortfall]:
    """Ping from all NICs of a host in parallel, from each NIC one destination after the other."""
    words = {f"{trip.nic.interface} {trip.source} {trip.destination}": trip for trip in trips}
    by_nic: dict[str, list[str]] = {}
    for text, trip in words.items():
        size = max(0, packet_bytes - (HEADERS_V6_BYTES if trip.is_ipv6 else HEADERS_BYTES))
        by_nic.setdefault(trip.nic.interface, []).append(f"try {text} {size}")
    rounds = [f"({'; '.join(lines)}) &" for lines in by_nic.values()]
    large = " to whole packets" if packet_bytes else ""
    done = node.run("sh", "-s", stdin="\n".join([TRY, *rounds, "wait"]), timeout_s=PATIENCE_S)
    if done.exit_code != 0:
        yield Shortfall(node.name, f"the pings did not end: {done.stderr.strip()}")
    for line in done.stdout.splitlines():
        trip = words[line]
        what = f"no answer{large} from {trip.to_host} on rail {trip.to_nic.rail} ({trip.destination})"
        yield Shortfall(node.name, what, trip.nic.interface)


Nodes = Mapping[str, LiveNode]


def check(fabric: Fabric, nodes: Nodes) -> Mapping[str, Any]:
    """Examine the current state of the lab, with a ping between every two NICs that the design connects."""
    found = missing(fabric, nodes)
    return _with_pings(fabric, nodes, [f"{name}: {what}" for name, whats in found.items() for what in whats])


def examine(fabric: Fabric, nodes: Nodes, most: int, patience_s: float) -> Mapping[str, Any]:
    """Examine the converged lab, with packets of the hosts' MTU, on a sample of pings."""
    shortfalls = wait(fabric, nodes, patience_s, lambda _done, _total: None)
    packet_bytes = min((host.mtu_bytes for host in fabric.hosts), default=0)
    return _with_pings(fabric, nodes, [str(shortfall) for shortfall in shortfalls], most, packet_bytes)


def _with_pings(
    fabric: Fabric, nodes: Nodes, shortfalls: list[str], most: int | None = None, packet_bytes: int = 0
) -> Mapping[str, Any]:
    """What is missing, with the pings that fail, or succeed where the design blocks them."""
    every_own = list(every_trip(fabric, is_across=False))
    every_across = list(every_trip(fabric, is_across=True))
    own, across = sampled(every_own, most), sampled(every_across, most)
    found = [*shortfalls, *map(str, unreached(nodes, own, packet_bytes))]
    unanswered = unreached(nodes, across, packet_bytes)
    if fabric.cross_rail == "routed":
        found += map(str, unanswered)
    elif passed := len(every := list(over_each_family(across))) - len(unanswered):
        found.append(f"{passed} of {len(every)} trips across rails succeed; the design blocks them")
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

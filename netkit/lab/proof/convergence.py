"""Waits until a lab is what its design says, and says of what is not: which device, which port, and why."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from netkit.design.expectation import Expectation, expectations
from netkit.design.fabric import Fabric, Switch
from netkit.lab.live import LiveNode

PAUSE_S = 0.5
ASKERS = 4
ESTABLISHED = "Established"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Something a device lacks."""

    device: str
    what: str
    port: str = ""

    def __str__(self) -> str:
        return f"{self.device}{':' + self.port if self.port else ''}: {self.what}"


def wait(
    fabric: Fabric, nodes: Mapping[str, LiveNode], patience_s: float, tell: Callable[[int, int], None]
) -> list[Shortfall]:
    """Ask all switches again and again until nothing is missing or patience ends; return what is missing then."""
    wanted = expectations(fabric)
    open_devices = [name for name in wanted if name in nodes]
    deadline = time.monotonic() + patience_s
    with ThreadPoolExecutor(ASKERS) as pool:
        while True:
            answers = pool.map(lambda name: shortfalls(fabric, nodes[name], wanted[name]), open_devices)
            lacking = dict(zip(open_devices, answers, strict=True))
            open_devices = [name for name, lacks in lacking.items() if lacks]
            tell(len(wanted) - len(open_devices), len(wanted))
            if not open_devices or time.monotonic() > deadline:
                return [lack for lacks in lacking.values() for lack in lacks]
            time.sleep(PAUSE_S)


def missing(fabric: Fabric, nodes: Mapping[str, LiveNode]) -> Mapping[str, list[str]]:
    """Return what each switch lacks at this moment."""
    wanted = {name: one for name, one in expectations(fabric).items() if name in nodes}
    with ThreadPoolExecutor(ASKERS) as pool:
        answers = pool.map(lambda name: shortfalls(fabric, nodes[name], wanted[name]), wanted)
        return {
            name: [f"{lack.port}: {lack.what}" if lack.port else lack.what for lack in lacks]
            for name, lacks in zip(wanted, answers, strict=True)
        }


def shortfalls(fabric: Fabric, node: LiveNode, wanted: Expectation) -> list[Shortfall]:
    """Return what a switch lacks now."""
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
        yield Shortfall(switch.name, f"BGP runs as AS {local_as}, the design says {switch.asn}")
    for port, peer in wanted.sessions.items():
        interface = node.kernel_names[port]
        state = peers.get(interface, {}).get("state", "not configured")
        if state != ESTABLISHED:
            yield Shortfall(switch.name, f"session to {peer} is {state}{_reason(fabric, node, peer, interface)}", port)


def _reason(fabric: Fabric, node: LiveNode, peer: str, interface: str) -> str:
    """Return why a session is not established, as far as the node knows."""
    details = json.loads(node.vty(f"show bgp neighbors {interface} json") or "{}").get(interface, {})
    asn = details.get("remoteAs")
    designed = fabric.switch(peer).asn
    if asn and asn != designed:
        return f": AS {asn} is expected there, {peer} is AS {designed} in the design"
    for key in ("lastNotificationReason", "lastResetDueTo"):
        if said := str(details.get(key, "")).strip():
            return f": {said}"
    return ""


def _routes(node: LiveNode, switch: Switch, wanted: Expectation) -> Iterator[Shortfall]:
    """Compare the routing table with the design: next hops in use, leaf prefix by leaf prefix."""
    if not wanted.widths:
        return
    table = json.loads(node.vty("show ip route json", "zebra") or "{}")
    short = {prefix: installed(table, prefix) for prefix in wanted.widths}
    short = {prefix: found for prefix, found in short.items() if found < wanted.widths[prefix]}
    if short:
        yield from _without_policy(node, switch, wanted)
    for prefix, found in short.items():
        what = f"{found} of {wanted.widths[prefix]} next hops to {prefix}" if found else f"no route to {prefix}"
        yield Shortfall(switch.name, what)


def _without_policy(node: LiveNode, switch: Switch, wanted: Expectation) -> Iterator[Shortfall]:
    """Yield the sessions that carry nothing because a route policy is missing."""
    peers = json.loads(node.vty("show bgp neighbors json") or "{}")
    for port, peer in wanted.sessions.items():
        families = peers.get(node.kernel_names[port], {}).get("addressFamilyInfo", {})
        family = families.get("ipv4Unicast", {})
        for way in ("inbound", "outbound"):
            if family.get(f"{way}EbgpRequiresPolicy"):
                what = f"no {way} route policy towards {peer}: every route is discarded"
                yield Shortfall(switch.name, what, port)


def installed(table: Mapping[str, Any], prefix: str) -> int:
    """Return how many next hops the kernel uses for a prefix."""
    for route in table.get(prefix, ()):
        if route.get("selected"):
            hops = [hop for hop in route.get("nexthops", ()) if hop.get("active") and hop.get("fib")]
            return len(hops)
    return 0

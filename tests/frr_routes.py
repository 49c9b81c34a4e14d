"""The BGP routes every switch of a fabric should have, computed from the design alone, and those that real FRR has.

The former come from a path-vector model of a few lines: AS paths are propagated, by the fabric's rules, until nothing
changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from netkit.design.fabric import Fabric, Switch
from tests.frr_daemons import RunningFabric, until

Routes = Mapping[str, Mapping[str, frozenset[str]]]
"""For each switch and prefix, the egress ports."""

End = tuple[str, str]


def expected(fabric: Fabric, dead: Iterable[End] = ()) -> Routes:
    """The routes BGP should find, by propagating AS paths until nothing changes."""
    down = set(dead)
    found: dict[str, dict[str, frozenset[str]]] = {switch.name: {} for switch in fabric.switches}
    for origin in fabric.switches:
        for name, ports in _ways_to(fabric, origin, down).items():
            found[name] |= dict.fromkeys(own_prefixes(origin), ports)
        if origin.leaf_prefix and fabric.attachment == "p2p" and origin.fabric_ports:
            found[origin.name][origin.leaf_prefix] = frozenset()  # the aggregate, which drops what no /31 has
    return found


def _ways_to(fabric: Fabric, origin: Switch, dead: set[End]) -> dict[str, frozenset[str]]:
    paths: dict[str, tuple[int, ...]] = {origin.name: ()}
    ways: dict[str, frozenset[str]] = {}
    while True:
        before = dict(paths)
        for switch in fabric.switches:
            offers = dict(_offers(fabric, switch, before, origin, dead))
            if switch is origin or not offers:
                continue
            shortest = min(map(len, offers.values()))
            ways[switch.name] = frozenset(port for port, path in offers.items() if len(path) == shortest)
            paths[switch.name] = min(offers.values(), key=len)
        if paths == before:
            return ways


def _offers(
    fabric: Fabric, switch: Switch, paths: Mapping[str, tuple[int, ...]], origin: Switch, dead: set[End]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    for port in switch.fabric_ports:
        peer = fabric.switch(port.peer)
        is_alive = not dead & {(switch.name, port.name), (port.peer, port.peer_port)}
        is_announced = peer is origin or peer.role != "leaf"
        if is_alive and is_announced and peer.name in paths and switch.asn not in paths[peer.name]:
            yield port.name, (peer.asn, *paths[peer.name])


def own_prefixes(switch: Switch) -> list[str]:
    return [f"{switch.loopback}/32", *([switch.leaf_prefix] if switch.leaf_prefix else [])]


def observed(running: RunningFabric) -> Routes:
    """The BGP routes that the switches have installed."""
    return {name: dict(_installed(box.json("zebra", "show ip route bgp json"))) for name, box in running.boxes.items()}


def _installed(table: Mapping[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    for prefix, routes in table.items():
        for route in routes:
            if route.get("selected") and route.get("installed"):
                yield (
                    prefix,
                    frozenset(hop["interfaceName"] for hop in route["nexthops"] if hop.get("fib") and "ip" in hop),
                )


def differences(wanted: Routes, found: Routes) -> str:
    lines = []
    for name in wanted:
        for prefix in sorted(wanted[name].keys() | found[name].keys()):
            ways = [ports.get(prefix) for ports in (wanted[name], found[name])]
            if ways[0] != ways[1]:
                lines.append(f"{name} {prefix}: wanted {ways[0]}, found {ways[1]}")
    return "; ".join(lines[:20])


def settle(running: RunningFabric, wanted: Routes, when: str) -> float:
    found: list[Routes] = []

    def is_there() -> bool:
        found.append(observed(running))
        return found[-1] == wanted

    return until(is_there, lambda: f"{when}: {differences(wanted, found[-1])}", pause_s=0.25)


def as_paths(running: RunningFabric, name: str) -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """Every path in the BGP table of a switch: prefix, AS path, and whether it is one of the best."""
    table = running.boxes[name].json("bgpd", "show bgp ipv4 unicast json")
    for prefix, paths in table["routes"].items():
        for path in paths:
            yield prefix, tuple(map(int, path["path"].split())), bool(path.get("bestpath") or path.get("multipath"))


def valley_paths(running: RunningFabric) -> list[str]:
    """Every path that goes down and then up again, at any point."""
    tiers = {"leaf": 0, "spine": 1, "core": 2}
    level = {switch.asn: tiers[switch.role] for switch in running.fabric.switches}
    seen = []
    for switch in running.fabric.switches:
        for prefix, path, _ in as_paths(running, switch.name):
            levels = [level[asn] for asn in (switch.asn, *path)]
            steps = [after - before for before, after in pairwise(levels)]
            first_down = next((index for index, step in enumerate(steps) if step < 0), len(steps))
            if any(step > 0 for step in steps[first_down:]):
                seen.append(f"{switch.name} {prefix}: {path}")
    return seen

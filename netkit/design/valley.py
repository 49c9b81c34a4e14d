"""Valley paths: leaf–spine–leaf–spine–leaf. Lossless traffic on one closes a circle of pauses, and the fabric deadlocks.

A switch admits a valley when it passes a route it learned from above on to another switch above, and that
switch accepts it. It accepts whatever does not already carry its own AS number; with allowas-in, anything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Switch


@dataclass(frozen=True, slots=True)
class Valley:
    """A path that goes down and up again, and what makes it the best one."""

    path: tuple[str, ...]
    failed_link: tuple[str, str] | None

    def __str__(self) -> str:
        when = f"once {self.failed_link[0]}–{self.failed_link[1]} is down" if self.failed_link else "with all links up"
        return f"{' → '.join(self.path)} {when}"


def valleys(fabric: Fabric) -> Iterator[Valley]:
    """Yield one example for each switch that admits a valley path."""
    below = _below(fabric)
    for switch in fabric.switches:
        if not passes_up(fabric, switch):
            continue
        pair = _accepting_pair(fabric, switch)
        if pair:
            yield _example(switch, pair, below)


def passes_up(fabric: Fabric, switch: Switch) -> bool:
    """Whether the switch announces upwards what it learned from above."""
    if switch.role == "leaf":
        return fabric.routing.leaf_exports_all
    return switch.role == "spine"


def _accepting_pair(fabric: Fabric, switch: Switch) -> tuple[str, str] | None:
    """Return two switches above of which the second accepts what the first announced."""
    above = {port.peer: port.peer_asn for port in switch.ports if port.role == "up"}
    first = next(iter(above), None)
    for name, asn in above.items():
        if name != first and first is not None and (fabric.routing.allowas_in or asn != above[first]):
            return first, name
    return None


def _below(fabric: Fabric) -> Mapping[str, frozenset[str]]:
    return {
        switch.name: frozenset(port.peer for port in switch.ports if port.role == "down")
        for switch in fabric.switches
        if switch.role != "leaf"
    }


def _example(middle: Switch, pair: tuple[str, str], below: Mapping[str, frozenset[str]]) -> Valley:
    first, second = pair
    targets = sorted(below[first] - {middle.name})
    sources = sorted(below[second] - {middle.name})
    target = targets[0] if targets else middle.name
    source = next((name for name in sources if name != target), middle.name)
    failed = (second, target) if target in below[second] else None
    return Valley((source, second, middle.name, first, target), failed)

"""Valley paths: leaf–spine–leaf–spine–leaf.

Lossless traffic on one closes a cycle of pauses, and the fabric deadlocks.

A switch admits a valley when it passes a route it learned from above on to another switch above, and that
switch accepts it. A switch accepts whatever does not already carry its own AS number; with allowas-in, anything.
What is accepted counts, not only what is best with one link down: two failures, or one and a drain, make it best.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Switch


@dataclass(frozen=True, slots=True)
class Valley:
    """A path that goes down and up again at one switch, and the link whose loss makes it the shortest."""

    path: tuple[str, ...]
    turn: str
    failed_link: tuple[str, str]

    def __str__(self) -> str:
        return f"{' → '.join(self.path)} once {self.failed_link[0]}–{self.failed_link[1]} is down"


def valleys(fabric: Fabric) -> Iterator[Valley]:
    """Yield one example for each switch that admits a valley path."""
    below = {
        switch.name: frozenset(port.peer for port in switch.ports if port.role == "down")
        for switch in fabric.switches
        if switch.role != "leaf"
    }
    for switch in fabric.switches:
        valley = _valley(fabric, switch, below) if passes_up(fabric, switch) else None
        if valley:
            yield valley


def passes_up(fabric: Fabric, switch: Switch) -> bool:
    """Whether the switch announces upwards what it learned from above."""
    if switch.role == "leaf":
        return fabric.routing.leaf_exports_all
    return switch.role == "spine"


def _above(switch: Switch) -> Mapping[str, int]:
    return {port.peer: port.peer_asn for port in switch.ports if port.role == "up"}


def _valley(fabric: Fabric, turn: Switch, below: Mapping[str, frozenset[str]]) -> Valley | None:
    """Return a valley at a switch: it learns a route from one switch above, and another above accepts it."""
    above = _above(turn)
    is_lax = fabric.routing.allowas_in
    for first, first_asn in above.items():
        second = next((name for name, asn in above.items() if name != first and (is_lax or asn != first_asn)), None)
        onward = _onward(fabric, turn, fabric.switch(first), below) if second else ()
        if second and onward:
            source = next((name for name in sorted(below[second]) if name not in {onward[0], turn.name}), None)
            failed = onward[0] if onward[0] in below[second] else next(iter(_above(fabric.switch(second))), turn.name)
            return Valley(
                (*((source,) if source else ()), second, turn.name, first, *onward), turn.name, (second, failed)
            )
    return None


def _onward(fabric: Fabric, turn: Switch, first: Switch, below: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Return the rest of a path from the switch above, as far as the switch below accepts the route."""
    for name in sorted(below[first.name] - {turn.name}):
        if fabric.routing.allowas_in or fabric.switch(name).asn != turn.asn:
            return (name,)
    for core in _above(first) if turn.role == "leaf" else ():
        for spine in sorted(below[core] - {first.name}):
            if fabric.switch(spine).pod != turn.pod:
                return core, spine, min(below[spine])
    return ()

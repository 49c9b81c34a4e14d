"""Which leaves depend on the sessions that a change interrupts, by the sessions that carry routes now."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from netkit.design.fabric import Fabric, Port, Switch

Sessions = Mapping[str, int]
"""Interface → prefixes received, of established sessions."""
End = tuple[str, str]
"""A device and one of its ports."""
ADDRESS = re.compile(r"^\d+\.|:")
GOES_ON = "--disruptive goes on"


class LivePaths:
    """The ways up from switches, over sessions that carry routes; by default over all of the design.

    A switch that was not read counts as connected: its neighbors see whether their sessions with it are up.
    """

    def __init__(self, fabric: Fabric, sessions: Mapping[str, Sessions] | None = None) -> None:
        self._fabric, self._sessions = fabric, sessions

    def has_route(self, name: str, without: Collection[End] = ()) -> bool:
        """Whether a switch has routes from any switch above it."""
        return self._has_unknown(name) or any(True for _ in self._above(name, without))

    def reaches_the_top(self, name: str, without: Collection[End] = ()) -> bool:
        """Whether such routes lead up to a switch of the highest tier."""
        if not _up(self._fabric.switch(name)) or self._has_unknown(name):
            return True
        return any(self.reaches_the_top(above, without) for above in self._above(name, without))

    def _above(self, name: str, without: Collection[End]) -> Iterator[str]:
        sessions = (self._sessions or {}).get(name)
        for port in _up(self._fabric.switch(name)):
            if (name, port.name) not in without and (sessions is None or sessions.get(port.name)):
                yield port.peer

    def _has_unknown(self, name: str) -> bool:
        """Whether there are routes over a port without a place in the design: a switch that leaves it still carries.

        Sessions by address do not count: they may be those of hosts, or of peers outside.
        """
        switch = self._fabric.switch(name)
        known = {port.name for port in switch.ports} | {one.name for one in switch.external}
        sessions = (self._sessions or {}).get(name, {})
        return any(count for port, count in sessions.items() if port not in known and not ADDRESS.search(port))


def cut_off(
    fabric: Fabric, device: str, interrupted: Collection[str], read: Callable[[Iterable[str]], Mapping[str, Sessions]]
) -> Iterator[str]:
    """Yield what is wrong with interrupting ports of a switch: the leaves that have no other way now.

    Where the design has no other way either, the plan names the loss.
    """
    switch = fabric.device(device)
    ports = [port for port in switch.ports if port.name in interrupted] if isinstance(switch, Switch) else []
    without = {(device, port.name) for port in ports} | {(port.peer, port.peer_port) for port in ports}
    names = [device] if any(port.role == "up" for port in ports) else []
    names += _below(ports)
    designed, seen, judged = LivePaths(fabric), dict[str, Sessions](), set[str]()
    while names := [name for name in dict.fromkeys(names) if name not in judged]:
        judged.update(names)
        above = [port.peer for name in names for port in _up(fabric.switch(name)) if _up(fabric.switch(port.peer))]
        seen |= read([name for name in dict.fromkeys([*names, *above]) if name not in seen])
        live = LivePaths(fabric, seen)
        leaves = [name for name in names if fabric.switch(name).role == "leaf"]
        for name in leaves:
            if live.has_route(name) and not live.has_route(name, without) and designed.has_route(name, without):
                yield f"{name}: it has routes from no other switch: the change would cut it off; {GOES_ON}"
            elif (
                live.reaches_the_top(name)
                and not live.reaches_the_top(name, without)
                and designed.reaches_the_top(name, without)
            ):
                yield f"{name}: it has no other way to a core: the change would cut it off from there; {GOES_ON}"
        lost = [name for name in names if name not in leaves and not live.reaches_the_top(name, without)]
        names = [below for name in lost for below in _below(fabric.switch(name).ports)]


def _up(switch: Switch) -> list[Port]:
    return [port for port in switch.ports if port.role == "up"]


def _below(ports: Iterable[Port]) -> list[str]:
    return [port.peer for port in ports if port.role == "down"]

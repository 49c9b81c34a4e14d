"""The part of a fabric that is booted to prove a change of it: all of a small one, a slice of a large one.

A slice is made of whole devices of the same design: nothing is numbered anew, a leaf keeps every uplink, and so every
path between what was chosen is there. Ports that lead to what was left out are left out with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from netkit.design.fabric import Fabric, Host, Switch
from netkit.errors import LabError, Problem

MOST_DEVICES = 40
HOSTS_PER_LEAF = 2
Group = Sequence[str]


@dataclass(frozen=True, slots=True)
class Part:
    """What is booted."""

    fabric: Fabric
    left_out: tuple[str, ...] = ()
    unseen: tuple[tuple[str, ...], ...] = ()
    """Groups of devices that change alike of which none is booted."""
    witnesses: tuple[str, ...] = ()
    """Leaves of another unit that are booted beside those that change."""


def choose(fabric: Fabric, groups: Iterable[Group], most: int = MOST_DEVICES) -> Part:
    """Return the part in which a change shows; devices of a group change alike.

    LabError when so few devices cannot be any part of it.
    """
    if len(fabric.names) <= most:
        return Part(fabric)
    felt = [tuple(name for name in group if fabric.device(name) is not None) for group in groups]
    slice_ = _Slice(fabric, most, [group for group in felt if group])
    slice_.fill()
    kept = frozenset(slice_.names)
    return Part(
        cut(fabric, kept),
        tuple(name for name in fabric.names if name not in kept),
        tuple(group for group in slice_.groups if kept.isdisjoint(group)),
        tuple(name for name in slice_.witnesses if name in kept),
    )


def cut(fabric: Fabric, kept: Iterable[str]) -> Fabric:
    """Return a fabric with some of its devices only, and the cables between them."""
    names = frozenset(kept)
    return replace(
        fabric,
        switches=tuple(_switch(one, names) for one in fabric.switches if one.name in names),
        hosts=tuple(_host(one, names) for one in fabric.hosts if one.name in names),
        notes=(),
    )


def _switch(switch: Switch, names: frozenset[str]) -> Switch:
    ports = tuple(port for port in switch.ports if port.peer in names)
    there = {port.name for port in ports}
    cages = tuple(cage for cage in switch.cages if not there.isdisjoint(cage.ports))
    neighbors = tuple(name for name in switch.drain_neighbors if name in names)
    return replace(switch, ports=ports, cages=cages, drain_neighbors=neighbors)


def _host(host: Host, names: frozenset[str]) -> Host:
    return replace(host, nics=tuple(nic for nic in host.nics if nic.leaf in names))


class _Slice:
    """Grows leaf by leaf, each with all that is above it and a few hosts, as long as there is room."""

    def __init__(self, fabric: Fabric, most: int, groups: Sequence[Group]) -> None:
        self._fabric, self._most = fabric, most
        self._felt = frozenset(name for group in groups for name in group)
        self.groups = tuple(map(tuple, groups))
        self.names: set[str] = set()
        self.witnesses: tuple[str, ...] = ()

    def fill(self) -> None:
        """Take the first leaf, one beside it, a witness elsewhere, then what stands for each group, then more."""
        first = next((leaf for group in self.groups for leaf in self._representatives(group)), self._any_leaf())
        if not self._took(first):
            smallest = len(self._wanted(first))
            remedy = f"--prove-devices {smallest}, if this machine can carry them"
            raise LabError(Problem(f"a leaf with all above it and its hosts is {smallest} devices", remedy))
        self._took_one_of(self._beside(first))
        before = frozenset(self.names)
        self._took_one_of(self._elsewhere(first))
        self.witnesses = tuple(one.name for one in self._fabric.tier("leaf") if one.name in self.names - before)
        for group in self.groups[1:]:
            if self.names.isdisjoint(group):
                self._took_one_of(islice(self._representatives(group), 1), group)
        for leaf in self._fabric.tier("leaf"):
            if leaf.name in self._felt:
                self._took(leaf)

    def _any_leaf(self) -> Switch:
        return self._fabric.tier("leaf")[0]

    def _took_one_of(self, leaves: Iterable[Switch], wanted: Group = ()) -> bool:
        return any(self._took(leaf, wanted) for leaf in leaves)

    def _took(self, leaf: Switch, wanted: Group = ()) -> bool:
        """Add a leaf when it fits, else the same with one host."""
        for hosts in (HOSTS_PER_LEAF, 1):
            more = self._wanted(leaf, wanted, hosts)
            if len(self.names | more) <= self._most:
                self.names |= more
                return True
        return False

    def _wanted(self, leaf: Switch, wanted: Group = (), hosts: int = HOSTS_PER_LEAF) -> set[str]:
        below = dict.fromkeys(port.peer for port in leaf.host_ports)
        order = sorted(below, key=lambda name: (name not in wanted, name not in self.names, name not in self._felt))
        return {leaf.name, *_above(self._fabric, leaf), *order[:hosts]}

    def _representatives(self, group: Group) -> Iterator[Switch]:
        """Yield the leaves that show what changes on a group: those of it, or those that hang on one of it."""
        for name in group:
            if (device := self._fabric.device(name)) is not None:
                yield from self._leaves_of(device)

    def _leaves_of(self, device: Switch | Host) -> Iterator[Switch]:
        if isinstance(device, Host):
            yield from (self._fabric.switch(nic.leaf) for nic in device.nics)
        elif device.role == "leaf":
            yield device
        else:
            below = (self._fabric.switch(port.peer) for port in device.ports if port.role == "down")
            yield from (leaf for one in below for leaf in self._leaves_of(one))

    def _beside(self, first: Switch) -> list[Switch]:
        """Return the other leaves of a unit, those that change and share its hosts first."""
        near = [one for one in self._fabric.tier("leaf") if _unit(one) == _unit(first) and one.name != first.name]
        return sorted(near, key=lambda one: one.name not in self._felt)

    def _elsewhere(self, first: Switch) -> list[Switch]:
        """Return the leaves of other units, those of the same rail that do not change first."""
        far = [one for one in self._fabric.tier("leaf") if _unit(one) != _unit(first)]
        return sorted(far, key=lambda one: (one.rail != first.rail, one.name in self._felt))


def _unit(leaf: Switch) -> tuple[int, int]:
    return leaf.pod, leaf.unit


def _above(fabric: Fabric, switch: Switch) -> Iterator[str]:
    """Yield all that is above a switch."""
    for name in dict.fromkeys(port.peer for port in switch.ports if port.role == "up"):
        yield name
        yield from _above(fabric, fabric.switch(name))

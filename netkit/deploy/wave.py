"""Which devices change together. Pure: a plan and a fabric go in, waves come out."""

from collections.abc import Iterator
from dataclasses import dataclass

from netkit.deploy.shape import Options
from netkit.design.fabric import Fabric, Switch
from netkit.plan import DevicePlan, Plan
from netkit.platforms.compare import natural

ROLES = ("leaf", "spine", "core", "host")
"""Tiers never change together. Hosts come last: a switch must know a traffic class before somebody uses it."""
MOST_HOSTS = 16
"""Hosts that change together, rail by rail: as many as Ansible works on at once, since their timers run on."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Devices that change at the same time."""

    number: int
    devices: tuple[str, ...]
    is_canary: bool = False


def waves(plan: Plan, fabric: Fabric, options: Options) -> tuple[Wave, ...]:
    """Return the devices that have something to do, in the order they have their turn."""
    todo = [device for device in plan.changed if options.limit is None or device.name in options.limit]
    groups: list[tuple[str, ...]] = []
    has_canary = options.has_canary and bool(todo) and not options.is_backward
    if has_canary:
        first = min(todo, key=_weight)
        groups.append((first.name,))
        todo.remove(first)
    groups += _together(todo, options) if options.is_together else _apart(todo, fabric, options)
    if options.is_backward:
        groups.reverse()
    return tuple(Wave(number, names, has_canary and number == 1) for number, names in enumerate(groups, 1))


def depends_on(device: DevicePlan, fabric: Fabric) -> frozenset[str]:
    """Return whom a device serves: two devices that share one of these never change together.

    For a leaf these are its hosts, for a spine or core what hangs below it and its plane, for a host itself.
    """
    found = fabric.device(device.name)
    if not isinstance(found, Switch):
        return frozenset({device.name})
    below = {port.peer for port in found.ports if port.role != "up"}
    if found.role == "leaf":
        return frozenset(below.union(device.blast.hosts))
    return frozenset(below | {f"{found.role} plane {found.plane}"})


def _weight(device: DevicePlan) -> tuple[object, ...]:
    """Return a sort key by which the device that harms least comes first; a host never before its leaves."""
    blast = device.blast
    sizes = (len(blast.gpus), len(blast.hosts), len(blast.sessions), len(blast.links))
    place = ROLES.index(device.role), natural((device.name,))
    return (device.role == "host", blast.is_disruptive, *sizes, device.risk, *place)


def _together(todo: list[DevicePlan], options: Options) -> Iterator[tuple[str, ...]]:
    """Yield as many devices as fit, whoever depends on them; hosts wait for all switches even so."""
    hosts = [device for device in todo if device.role == "host"]
    switches = [device for device in todo if device.role != "host"]
    for group, most in ((switches, options.parallel), (hosts, min(options.parallel, MOST_HOSTS))):
        for start in range(0, len(group), most):
            yield tuple(device.name for device in group[start : start + most])


def _apart(todo: list[DevicePlan], fabric: Fabric, options: Options) -> Iterator[tuple[str, ...]]:
    """Yield groups of one tier in which nobody depends on two devices."""
    for role in ROLES:
        most = min(options.parallel, MOST_HOSTS) if role == "host" else options.parallel
        groups: list[tuple[list[str], set[str]]] = []
        for device in sorted((device for device in todo if device.role == role), key=lambda one: natural((one.name,))):
            served = depends_on(device, fabric)
            for names, taken in groups:
                if len(names) < most and not taken & served:
                    break
            else:
                names, taken = [], set()
                groups.append((names, taken))
            names.append(device.name)
            taken |= served
        yield from (tuple(names) for names, _ in groups)

"""How much of a change a lab had to make: what is only on ports that lead to what was left out is not in its plan."""

import re
from collections.abc import Collection, Iterator

from netkit.plan import Plan
from netkit.plan.shape import DevicePlan

NUMBER = re.compile(r"\d+")
NOWHERE = "not tried: the change is only on ports that lead to what is not booted"
Kind = tuple[tuple[str, ...], bool, bool]


def untried(wanted: Plan, tried: Plan, names: Collection[str]) -> tuple[str, ...]:
    """Return those of some devices on which a change is of a kind that the lab's plan has not, be it one of many."""
    return tuple(one.name for one in wanted.changed if one.name in names and _kinds(one) - _kinds_of(tried, one.name))


def _kinds_of(plan: Plan, name: str) -> frozenset[Kind]:
    device = plan.device(name)
    return _kinds(device) if device is not None else frozenset()


def _kinds(device: DevicePlan) -> frozenset[Kind]:
    """Return what comes, goes and changes, whatever the number of a port or the address of a neighbor."""
    return frozenset(_each(device))


def _each(device: DevicePlan) -> Iterator[Kind]:
    for change in device.changes:
        yield tuple(NUMBER.sub("#", part) for part in change.path), change.is_addition, change.is_removal

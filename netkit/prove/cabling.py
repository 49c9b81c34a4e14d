"""Whether what ran before a change can run on the cables of after it: only then can the change be rolled."""

import re
from collections.abc import Collection, Iterator

from netkit.design.fabric import Fabric, Host, Switch
from netkit.plan import Plan
from netkit.plan.model import DevicePlan

Place = tuple[str, ...]


def obstacle(running: Fabric, intended: Fabric) -> str:
    """Return why a fabric cannot run on the devices and cables of another; empty when it can."""
    if not any(intended.device(name) for name in running.names):
        return "no device of before is left"
    return next(_replaced(running, intended), "") or _recabled(running, intended)


def _replaced(running: Fabric, intended: Fabric) -> Iterator[str]:
    for name in running.names:
        before, after = running.device(name), intended.device(name)
        if before is None or after is None or _make(before) == _make(after):
            continue
        yield f"{name} becomes another device: {_named(before)} → {_named(after)}"


def _make(device: Switch | Host) -> Place:
    if isinstance(device, Switch):
        return device.platform, device.version, device.model.name
    nics = (f"{nic.interface} {nic.pci} {nic.mac}" for nic in device.nics)
    return device.platform, device.backend, device.model.name, *nics


def _named(device: Switch | Host) -> str:
    return " ".join(_make(device)[:3])


def _recabled(running: Fabric, intended: Fabric) -> str:
    there = {place for place, _ in _cables(intended)}
    lacking = [text for place, text in _cables(running) if place not in there]
    if not lacking:
        return ""
    more = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    return f"cables of before are not there any more: {lacking[0]}{more}"


def _cables(fabric: Fabric) -> Iterator[tuple[Place, str]]:
    for link in fabric.links():
        place = link.device, link.port, link.peer, link.peer_port
        yield place, f"{link.device}:{link.port}–{link.peer}:{link.peer_port}"


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

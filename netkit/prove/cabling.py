"""Whether the old configuration can run on the new cables: only then can a change be rolled out in the lab."""

import re
from collections.abc import Collection, Iterator

from netkit.design.fabric import Fabric, Host, Switch
from netkit.plan import Plan
from netkit.plan.model import DevicePlan

Place = tuple[str, ...]


def obstacle(running: Fabric, intended: Fabric) -> str:
    """Return why a fabric cannot run on the devices and cables of another; empty if it can."""
    if not any(intended.device(name) for name in running.names):
        return "no device from before is left"
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
    """Return the devices on which the fabric's plan has a kind of change that the lab's plan lacks."""
    in_lab = {device.name: _kinds(device) for device in tried.devices}
    return tuple(
        one.name for one in wanted.changed if one.name in names and _kinds(one) - in_lab.get(one.name, frozenset())
    )


def _kinds(device: DevicePlan) -> frozenset[Kind]:
    """Return the kinds of changes, regardless of port numbers and neighbor addresses."""
    return frozenset(
        (tuple(NUMBER.sub("#", part) for part in change.path), change.is_addition, change.is_removal)
        for change in device.changes
    )

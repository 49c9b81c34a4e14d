"""`--limit`: choosing devices by name, glob or attribute."""

import difflib
import fnmatch
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import get_args

from netkit.design.clusters import Cluster
from netkit.design.fabric import Fabric, Host, Role, Switch
from netkit.errors import Problem, UsageError
from netkit.platforms.registry import ACCESS

Device = Switch | Host


def neighborhood(device: Device) -> tuple[int, int]:
    """Pod and unit, as a key to sort by: a unit's switches and hosts share most cables. What is in none comes last."""
    return device.pod or sys.maxsize, device.unit or sys.maxsize


ATTRIBUTES: Mapping[str, Callable[[Device], str]] = {
    "name": lambda device: device.name,
    "role": lambda device: device.role if isinstance(device, Switch) else "host",
    "platform": lambda device: device.platform,
    "model": lambda device: device.model.name,
    "version": lambda device: device.version if isinstance(device, Switch) else "",
    "pod": lambda device: str(device.pod),
    "unit": lambda device: str(device.unit),
    "rail": lambda device: str(device.rail) if isinstance(device, Switch) and device.role == "leaf" else "",
    "plane": lambda device: str(device.plane) if isinstance(device, Switch) else "",
    "slot": lambda device: str(device.slot),
    "rack": lambda device: device.rack,
    "serial": lambda device: device.serial,
}

GROUPED = ("role", "rail", "unit", "plane", "platform")
"""Attributes by which inventories of other tools group devices."""

KNOWN: Mapping[str, Collection[str]] = {"role": get_args(Role), "platform": ACCESS}
"""Values that are not typos, though no device of a fabric may have them."""


def select(fabric: Fabric, expression: str) -> tuple[Device, ...]:
    """The devices an expression selects.

    Terms are separated by commas or spaces: `leaf0*`, `role=spine`, `rail=3`. Terms on one attribute add up, different
    attributes narrow each other, and `!` before a term excludes. Selecting nothing is an error, and so is a term that
    matches nothing: with two devices, a typo in an exclusion would change the wrong one. Roles and platforms of other
    fabrics are not typos, so that one `!role=host` fits fabrics with hosts and without.
    """
    devices: tuple[Device, ...] = (*fabric.switches, *fabric.hosts)
    if not expression:
        return devices
    terms = expression.replace(",", " ").split()
    if not terms:
        raise UsageError(Problem(f"--limit {expression!r} names nothing", "use names, globs, role=spine or rail=3"))
    wanted: dict[str, list[str]] = {}
    excluded: list[tuple[str, str]] = []
    for term in terms:
        attribute, pattern = _parse(term.removeprefix("!"))
        if term.startswith("!"):
            excluded.append((attribute, pattern))
        else:
            wanted.setdefault(attribute, []).append(pattern)
    for term in terms:
        attribute, pattern = _parse(term.removeprefix("!"))
        if pattern not in KNOWN.get(attribute, ()):
            _refuse_unmatched(devices, term)
    chosen = tuple(
        device
        for device in devices
        if all(
            any(_matches(device, attribute, pattern) for pattern in patterns) for attribute, patterns in wanted.items()
        )
        and not any(_matches(device, attribute, pattern) for attribute, pattern in excluded)
    )
    if not chosen:
        for term in terms:
            _refuse_unmatched(devices, term)
        raise UsageError(
            Problem(f"--limit {expression!r} selects no device", "each term matches some, but no device fits them all")
        )
    return chosen


def select_clusters(fabric: Fabric, expression: str) -> tuple[tuple[Cluster, ...], str]:
    """The clusters that an expression names, all without one, and the rest, which selects devices."""
    terms = expression.replace(",", " ").split()
    if not terms:
        return fabric.clusters, expression
    named = tuple(cluster for cluster in fabric.clusters if cluster.kind in terms)
    kinds = {cluster.kind for cluster in named}
    return named, " ".join(term for term in terms if term not in kinds) if kinds else expression


def _refuse_unmatched(devices: tuple[Device, ...], term: str) -> None:
    attribute, pattern = _parse(term.removeprefix("!"))
    if not any(_matches(device, attribute, pattern) for device in devices):
        raise UsageError(Problem(f"--limit {term!r} matches no device", _hint(devices, attribute, pattern)))


def _parse(term: str) -> tuple[str, str]:
    attribute, separator, pattern = term.partition("=")
    if not separator:
        return "name", term
    if attribute not in ATTRIBUTES:
        close = difflib.get_close_matches(attribute, ATTRIBUTES, 1)
        guess = f"did you mean {close[0]}?" if close else f"use one of {', '.join(ATTRIBUTES)}"
        raise UsageError(Problem(f"--limit knows no attribute {attribute!r}", guess))
    return attribute, pattern


def _matches(device: Device, attribute: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(ATTRIBUTES[attribute](device), pattern)


def _hint(devices: tuple[Device, ...], attribute: str, pattern: str) -> str:
    known = sorted({ATTRIBUTES[attribute](device) for device in devices} - {""})
    close = difflib.get_close_matches(pattern, known, 1)
    if close:
        return f"did you mean {close[0]}?"
    return f"there are {', '.join(known)}" if len(known) <= 8 else "`netkit design --addresses` lists the devices"


def groups(device: Device) -> Iterator[str]:
    """Yield the groups a device is in, such as `role_leaf` and `rail_3`; a leaf has no plane, a spine no unit."""
    is_leaf = isinstance(device, Switch) and device.role == "leaf"
    foreign = "plane" if is_leaf else "unit" if isinstance(device, Switch) else ""
    for attribute in GROUPED:
        value = ATTRIBUTES[attribute](device)
        if value and attribute != foreign:
            yield f"{attribute}_{value}"

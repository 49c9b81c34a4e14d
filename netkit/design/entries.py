"""The rows of the intent's tables: found by position in the design, and checked against what is installed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network

from netkit.design import overrides
from netkit.design.fabric import Fabric, Host, Switch
from netkit.design.hardware_lookup import version_problems
from netkit.design.numbering import LEAF_LENGTH_V6, Numbering
from netkit.errors import Path, Problem
from netkit.intent.model import DeviceEntry, Intent

Position = tuple[str | int, ...]
"""A role, and the numbers that find a device of this role."""
KEYS: Mapping[str, tuple[str, ...]] = {
    "leaf": ("pod", "unit", "rail"),
    "spine": ("pod", "plane", "slot"),
    "core": ("plane", "slot"),
    "host": ("pod", "unit", "slot"),
}
WORDS = {"core": "core switch"}
DEFAULTS = {"pod": 1, "plane": 0}
OF_SWITCHES = ("platform", "version", "management_gateway", "loopback", "asn", "management_v6", "loopback_v6")
OF_LEAVES = ("prefix", "vlan", "vlan_gateway", "prefix_v6")
AS_OVERRIDES = ("version", "management", "loopback", "asn", "rack")
"""Columns that are keys of overrides too."""


def position(entry: DeviceEntry) -> Position:
    """The position that a row names; -1 for a missing number."""
    return (entry.role, *(_number(entry, key) for key in KEYS[entry.role]))


def _number(entry: DeviceEntry, key: str) -> int:
    given = getattr(entry, key)
    return DEFAULTS.get(key, -1) if given is None else int(given)


def keys_of(fabric: Fabric, role: str) -> tuple[str, ...]:
    """The columns that find a device; those whose number is always the same are left out."""
    unused = {"two-tier": "pod", "rail-only": "pod", "three-tier": "plane" if role == "spine" else ""}[fabric.topology]
    return tuple(key for key in KEYS[role] if key != unused)


def position_of(fabric: Fabric, device: Switch | Host) -> Position:
    role = device.role if isinstance(device, Switch) else "host"
    used = keys_of(fabric, role)
    return (role, *(getattr(device, key) if key in used else DEFAULTS[key] for key in KEYS[role]))


class DeviceEntries:
    """The rows of the table of devices by position."""

    def __init__(self, intent: Intent) -> None:
        self._by_position: dict[Position, DeviceEntry] = {}
        for entry in intent.tables.devices:
            self._by_position.setdefault(position(entry), entry)

    def at(self, role: str, *numbers: int) -> DeviceEntry | None:
        return self._by_position.get((role, *numbers)) if self._by_position else None


@dataclass(frozen=True, slots=True)
class EntryPlaces:
    """Where the value of a device is written, if a table has it."""

    fabric: Fabric
    rows: Mapping[Position, tuple[int, DeviceEntry]]
    names: Mapping[str, Path]
    """Given name → where it is written."""

    @classmethod
    def of(cls, fabric: Fabric, intent: Intent) -> "EntryPlaces":
        rows: dict[Position, tuple[int, DeviceEntry]] = {}
        for index, entry in enumerate(intent.tables.devices):
            rows.setdefault(position(entry), (index, entry))
        names = {
            entry.name: ("tables", "devices", index, "name")
            for index, entry in enumerate(intent.tables.devices)
            if entry.name
        }
        return cls(fabric, rows, names)

    def path(self, name: str, column: str) -> Path:
        """The path of a value; empty if no table has it."""
        device = self.fabric.device(name) if self.rows else None
        return self._path(position_of(self.fabric, device), column) if device else ()

    def shared_path(self, value: str) -> Path:
        """The path of a gateway or of a spine's or core switch's AS number; empty if no table has it."""
        for index, entry in self.rows.values():
            for column in ("management_gateway",) if entry.role == "leaf" else ("management_gateway", "asn"):
                if str(getattr(entry, column)) == value:
                    return ("tables", "devices", index, column)
        return ()

    def asn_path(self) -> Path:
        """The path of the first AS number of a spine or core switch; empty if no table has one."""
        found = (self._path(at, "asn") for at, (_, entry) in self.rows.items() if entry.role in {"spine", "core"})
        return next(filter(None, found), ())

    def _path(self, at: Position, column: str) -> Path:
        index, entry = self.rows.get(at, (0, None))
        return ("tables", "devices", index, column) if entry and getattr(entry, column, None) is not None else ()


def problems(fabric: Fabric, intent: Intent) -> Iterator[Problem]:
    """Yield every row that does not fit the design, and every value that contradicts it or another row."""
    if not intent.tables.devices:
        return
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    installed = {position_of(fabric, device): device for device in devices}
    names = _names_of_units(intent)
    found: dict[Position, tuple[Switch | Host, DeviceEntry, Path]] = {}
    for index, entry in enumerate(intent.tables.devices):
        at, path = position(entry), ("tables", "devices", index)
        misplaced = tuple(_misplaced(fabric, entry, path))
        if misplaced:
            yield from misplaced
        elif at in found:
            yield Problem(f"{_shown(fabric, entry)} has a row already", "keep one", path)
        elif at not in installed:
            remedy = "correct the numbers, install it in units or switches, or remove the row"
            yield Problem(f"the design has no {_shown(fabric, entry)}", remedy, path)
        else:
            found[at] = installed[at], entry, path
            yield from _of_device(fabric, installed[at], entry, intent, path)
            if entry.name and names.get(at, entry.name) != entry.name:
                yield Problem(f"units calls this host {names[at]}", "name it in one place", (*path, "name"))
    yield from _shared(found.values())


def _names_of_units(intent: Intent) -> dict[Position, str]:
    """The names of hosts that `units` gives, by position."""
    return {
        ("host", pod, unit, slot): name
        for entry in intent.units
        for pod in entry.pod
        for unit in entry.unit
        for slot, name in entry.host_names.items()
    }


def _misplaced(fabric: Fabric, entry: DeviceEntry, path: Path) -> Iterator[Problem]:
    """Yield numbers of a position that are missing, or that no device of this role has."""
    role, keys = entry.role, keys_of(fabric, entry.role)
    what = WORDS.get(role, role)
    words = " and ".join((", ".join(keys[:-1]), keys[-1])) if len(keys) > 1 else keys[0]
    for key in ("pod", "unit", "rail", "plane", "slot"):
        given = getattr(entry, key)
        unused = DEFAULTS.get(key) if key in KEYS[role] else None
        if key not in keys and given not in {None, unused}:
            message = f"a {what} of a {fabric.topology} fabric has no {key}"
            yield Problem(message, f"clear it: {words} find the {what}", (*path, key))
        elif key in keys and given is None and key not in DEFAULTS:
            yield Problem(f"a {what} is found by {words}, and has no {key} here", f"add {key}", path)


def _shown(fabric: Fabric, entry: DeviceEntry) -> str:
    numbers = (f"{key} {_number(entry, key)}" for key in keys_of(fabric, entry.role))
    return f"{WORDS.get(entry.role, entry.role)} at {', '.join(numbers)}"


def _of_device(
    fabric: Fabric, device: Switch | Host, entry: DeviceEntry, intent: Intent, path: Path
) -> Iterator[Problem]:
    """Yield values that this device cannot have, or that are given elsewhere too."""
    role, foreign = (device.role, OF_LEAVES) if isinstance(device, Switch) else ("host", (*OF_SWITCHES, *OF_LEAVES))
    for key in foreign if role != "leaf" else ():
        if getattr(entry, key) is not None:
            owner = "leaves" if key in OF_LEAVES else "switches"
            message = f"{key} belongs to {owner}, {device.name} is a {WORDS.get(role, role)}"
            yield Problem(message, "clear it", (*path, key))
    if isinstance(device, Switch):
        if role == "leaf":
            yield from _of_leaf(fabric, device, entry, intent, path)
        given = {key for key in (*OF_SWITCHES, "management") if getattr(entry, key) is not None}
        yield from overrides.addresses(fabric, device, given, path)
        yield from _of_ipv6(fabric, device, entry, intent, path)
        if entry.version:
            at = (*path, "version")
            found = version_problems(device.platform, entry.version, device.routing_mode, at)
            yield from (replace(problem, path=at) for problem in found)
    own = intent.overrides.get(device.name)
    for key in AS_OVERRIDES:
        if own and getattr(entry, key) is not None and getattr(own, key, None) is not None:
            yield Problem(f"overrides has {key} of {device.name} too", "give it in one place", (*path, key))
    if entry.rack_unit and not device.rack:
        yield Problem(f"the rack of {device.name} is not known", "name the rack too", (*path, "rack_unit"))


def _of_leaf(fabric: Fabric, leaf: Switch, entry: DeviceEntry, intent: Intent, path: Path) -> Iterator[Problem]:
    """Yield a prefix that routes or filters would not carry, and a gateway or VLAN that the leaf cannot have."""
    prefix, length = entry.prefix, Numbering(intent).leaf_length
    rail = IPv4Network(fabric.rails[leaf.rail].prefix)
    # With a route to each leaf, the prefixes of a rail need not lie together, except for the pools of pods.
    needs_rail = intent.host_routes == "supernet" or intent.clusters.kubernetes is not None
    within = rail if needs_rail else intent.pools.hosts
    if prefix and prefix.prefixlen != length:
        remedy = f"write a /{length}, or set pools.leaf_length for all"
        yield Problem(f"{prefix} is not a /{length}, as all prefixes of leaves", remedy, (*path, "prefix"))
    elif prefix and not prefix.subnet_of(within):
        what = f"{within}, the prefix of rail {leaf.rail}" if needs_rail else f"{within}, pools.hosts"
        remedy = "choose it within; tables.rails gives the rail another prefix" if needs_rail else "choose it within"
        yield Problem(f"{prefix} is outside {what}", remedy, (*path, "prefix"))
    if leaf.vlan is None:
        for key in ("vlan", "vlan_gateway"):
            if getattr(entry, key) is not None:
                yield Problem("p2p attachment has no VLANs", "clear it, or set attachment: vlan", (*path, key))
    elif entry.vlan_gateway:
        subnet = IPv4Network(leaf.vlan.subnet)
        if not subnet.network_address < entry.vlan_gateway < subnet.broadcast_address:
            message = f"{entry.vlan_gateway} is not an address for a gateway of {subnet}"
            yield Problem(message, f"use one of {subnet[1]} to {subnet[-2]}", (*path, "vlan_gateway"))


def _of_ipv6(fabric: Fabric, switch: Switch, entry: DeviceEntry, intent: Intent, path: Path) -> Iterator[Problem]:
    """Yield IPv6 addresses and prefixes outside their pools."""
    management, is_of_rail = intent.management, intent.host_routes == "supernet" and switch.role == "leaf"
    hosts = fabric.rails[switch.rail].prefix_v6 if is_of_rail else fabric.host_pool_v6
    prefix = entry.prefix_v6
    if prefix and prefix.prefixlen != LEAF_LENGTH_V6:
        message = f"{prefix} is not a /{LEAF_LENGTH_V6}, as all IPv6 prefixes of leaves"
        yield Problem(message, f"write a /{LEAF_LENGTH_V6}", (*path, "prefix_v6"))
    for column, given, pool, name in (
        ("management_v6", entry.management_v6, management.pool_v6 if management else "", "management.pool_v6"),
        ("loopback_v6", entry.loopback_v6, fabric.loopback_pool_v6, "pools.loopbacks_v6"),
        ("prefix_v6", prefix and prefix.network_address, hosts, "pools.hosts_v6"),
    ):
        if given and not pool:
            yield Problem(f"there is no {name}", "give it too, or clear the cell", (*path, column))
        elif given and given not in IPv6Network(pool):
            where = f"the prefix of rail {switch.rail}" if is_of_rail and column == "prefix_v6" else name
            yield Problem(f"{given} is outside {pool}, {where}", "choose one within it", (*path, column))


def _shared(rows: Iterable[tuple[Switch | Host, DeviceEntry, Path]]) -> Iterator[Problem]:
    """Yield serial numbers and places that two devices have."""
    serials: dict[str, str] = {}
    places: dict[tuple[str, int], str] = {}
    """Each unit of a rack that a device surely fills: without a known height, the lowest one."""
    for device, entry, path in rows:
        if entry.serial and (other := serials.setdefault(entry.serial, device.name)) != device.name:
            yield Problem(f"{other} has this serial number too", "give each device its own", (*path, "serial"))
        if not device.rack or not entry.rack_unit:
            continue
        for unit in range(entry.rack_unit, entry.rack_unit + (device.model.height_u or 1)):
            if (other := places.setdefault((device.rack, unit), device.name)) != device.name:
                message = f"{other} fills unit {unit} of rack {device.rack} too"
                if unit > entry.rack_unit:
                    message += f", and {device.model.name} is {device.model.height_u} units high"
                yield Problem(message, "give each device its own", (*path, "rack_unit"))
                break

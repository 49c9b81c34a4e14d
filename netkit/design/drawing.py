"""A fabric as boxes and lines. A large one is summarised: devices that stand for each other share one symbol."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from netkit.design.fabric import Fabric, Host, Role, Switch
from netkit.design.select import Device

Grouping = Literal["unit", "rack"]
ROWS: tuple[Role, ...] = ("core", "spine", "leaf", "host", "storage", "frontend", "oob")
PLURALS = {
    "core": "core switches",
    "spine": "spines",
    "leaf": "leaves",
    "host": "hosts",
    "storage": "storage switches",
    "frontend": "front-end switches",
    "oob": "out-of-band switches",
}
MOST = {"core": 16, "spine": 16, "leaf": 32, "host": 16, "storage": 16, "frontend": 16, "oob": 16}
"""Devices of a role that are drawn one by one."""
MOST_RACKS = 24
"""Racks that are drawn one by one."""
NO_RACK = "no rack given"

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class DrawnSymbol:
    """One device, or several that are drawn as one."""

    id: str
    role: Role
    title: str
    details: tuple[str, ...]
    devices: tuple[str, ...]
    rail: int | None
    """Of a leaf."""
    is_drained: bool
    box: tuple[str, ...]
    """The boxes around it, the outermost first."""


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """All cables between two symbols."""

    lower: str
    upper: str
    cables: int
    speed: str
    rail: int | None
    """Of the leaf at one end; None between spines and core switches."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A fabric to be drawn."""

    title: str
    subtitle: str
    symbols: tuple[DrawnSymbol, ...]
    lines: tuple[DrawnLine, ...]

    @property
    def rails(self) -> tuple[int, ...]:
        return tuple(sorted({line.rail for line in self.lines if line.rail is not None}))

    @property
    def is_summary(self) -> bool:
        return any(len(symbol.devices) > 1 for symbol in self.symbols)


def draw(fabric: Fabric, chosen: Collection[str], by: Grouping = "unit") -> Drawing:
    """Draw the chosen devices, all cables at them, and the devices at the other ends."""
    links = [link for link in fabric.cables() if link.device in chosen or link.peer in chosen]
    shown = {*chosen, *(link.device for link in links), *(link.peer for link in links)}
    every: tuple[Device, ...] = (*fabric.switches, *fabric.hosts)
    devices = [device for device in every if device.name in shown]
    keys = _by_rack(devices) if by == "rack" else _by_unit(devices)
    members: dict[_Key, list[Device]] = defaultdict(list)
    for device in sorted(devices, key=lambda one: ROWS.index(_role(one))):
        members[keys[device.name]].append(device)
    boxes: Callable[[Sequence[Device]], tuple[str, ...]] = _rack if by == "rack" else _Boxes(fabric)
    symbols = {key: _symbol(f"n{place}", found, boxes(found)) for place, (key, found) in enumerate(members.items(), 1)}
    rails = {leaf.name: leaf.rail for leaf in fabric.tier("leaf")}
    counts: Counter[tuple[str, str, int | None]] = Counter()
    speeds: dict[tuple[str, str, int | None], set[int]] = defaultdict(set)
    for link in links:
        rail = rails.get(link.peer, rails.get(link.device))
        pair = [symbols[keys[link.device]], symbols[keys[link.peer]]]
        pair.sort(key=lambda symbol: ROWS.index(symbol.role), reverse=True)  # networks are drawn below hosts
        ends = (pair[0].id, pair[1].id, rail)
        counts[ends] += 1
        speeds[ends].add(link.speed_gbps)
    lines = (DrawnLine(*ends[:2], count, _speed(speeds[ends]), ends[2]) for ends, count in counts.items())
    return Drawing(fabric.name, _subtitle(fabric), tuple(symbols.values()), tuple(lines))


def _subtitle(fabric: Fabric) -> str:
    gpus = sum(host.model.gpus for host in fabric.hosts)
    parts = (fabric.topology, f"{gpus} GPUs", f"{len(fabric.hosts)} hosts", f"{len(fabric.switches)} switches")
    return ", ".join(parts)


def _speed(speeds: set[int]) -> str:
    return "/".join(f"{speed}G" for speed in sorted(speeds))


def _role(device: Device) -> Role:
    return device.role if isinstance(device, Switch) else "host"


def _by_rack(devices: Sequence[Device]) -> Mapping[str, _Key]:
    """The symbol of each device: those of one role in a rack share one where the role has many.

    Alike racks share their symbols where there are many racks.
    """
    many = {role for role, count in Counter(map(_role, devices)).items() if count > MOST[role]}
    contents: dict[str, Counter[tuple[Role, str]]] = defaultdict(Counter)
    for device in devices:
        contents[device.rack][(_role(device), device.model.name)] += 1
    has_many = len(contents) > MOST_RACKS
    alike = {rack: tuple(sorted(found.items())) if has_many and rack else rack for rack, found in contents.items()}
    return {
        device.name: (_role(device), alike[device.rack]) if has_many or _role(device) in many else (device.name,)
        for device in devices
    }


def _rack(found: Sequence[Device]) -> tuple[str, ...]:
    racks = sorted({one.rack for one in found})
    if len(racks) > 1:
        return (f"{len(racks)} racks: {racks[0]} … {racks[-1]}",)
    return (f"rack {racks[0]}" if racks[0] else NO_RACK,)


def _by_unit(devices: Sequence[Device]) -> Mapping[str, _Key]:
    """The symbol of each device: alike units share theirs where there are many leaves, alike pods too."""
    many = {role for role, count in Counter(map(_role, devices)).items() if count > MOST[role]}
    units: dict[tuple[int, int], list[Device]] = defaultdict(list)
    pods: dict[int, list[object]] = defaultdict(list)
    for device in devices:
        if isinstance(device, Host) or device.role == "leaf":
            units[(device.pod, device.unit)].append(device)
    alike = {place: _shape(found) for place, found in sorted(units.items())}
    for (pod, _), shape in alike.items():
        pods[pod].append(shape)
    for device in devices:
        if isinstance(device, Switch) and device.role == "spine":
            pods[device.pod].append((device.plane, device.model.name))
    are_alike = "leaf" in many and len(pods) > 2
    pod_keys: dict[int, object] = {pod: tuple(found) if are_alike else pod for pod, found in pods.items()}

    def key(device: Device) -> _Key:
        role, pod = _role(device), pod_keys.get(device.pod)
        if isinstance(device, Switch) and role == "core":
            return (role, device.plane) if "core" in many else (device.name,)
        if isinstance(device, Switch) and role == "spine":
            return (role, pod, device.plane) if "spine" in many or are_alike else (device.name,)
        if isinstance(device, Switch) and device.access:
            return (role, device.access.network) if role in many else (device.name,)
        place = (device.pod, device.unit)
        unit: object = alike[place] if "leaf" in many else place
        if isinstance(device, Switch):
            return (role, pod, unit, device.rail) if "leaf" in many else (device.name,)
        return (role, pod, unit) if "host" in many or "leaf" in many else (device.name,)

    return {device.name: key(device) for device in devices}


def _shape(unit: Sequence[Device]) -> object:
    """What two units must share to be drawn as one."""
    leaves = tuple((one.rail, one.model.name) for one in unit if isinstance(one, Switch))
    return leaves, tuple(sorted(Counter(one.model.name for one in unit if isinstance(one, Host)).items()))


class _Boxes:
    """The boxes around symbols: pods, units, and planes where there are several."""

    def __init__(self, fabric: Fabric) -> None:
        self.has_pods = fabric.topology == "three-tier"
        self.has_planes = {role: len({one.plane for one in fabric.tier(role)}) > 1 for role in ROWS[:2]}

    def __call__(self, found: Sequence[Device]) -> tuple[str, ...]:
        first = found[0]
        if isinstance(first, Switch) and first.role == "core":
            return (f"core plane {first.plane}",) if self.has_planes["core"] else ()
        if isinstance(first, Switch) and first.access:
            return (first.access.network,)
        pod = (_numbered("pod", [one.pod for one in found]),) if self.has_pods else ()
        if isinstance(first, Switch) and first.role == "spine":
            return (*pod, f"plane {first.plane}") if self.has_planes["spine"] else pod
        return (*pod, _numbered("unit", [one.unit for one in found]))


def _numbered(what: str, numbers: Sequence[int]) -> str:
    """Write numbers as `unit 3` or `units 1-4,7`."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    return f"{what} {text}" if len(set(numbers)) == 1 else f"{what}s {text}"


def _symbol(name: str, found: Sequence[Device], box: tuple[str, ...]) -> DrawnSymbol:
    first, role = found[0], _role(found[0])
    leaves = [one for one in found if isinstance(one, Switch) and one.role == "leaf"]
    rails = sorted({leaf.rail for leaf in leaves})
    drained = sum(1 for one in found if isinstance(one, Switch) and one.drain)
    details = [", ".join(dict.fromkeys(one.model.name for one in found))]
    if len(found) > 1:
        details.insert(0, f"{first.name} … {found[-1].name}")
    if rails:
        details.append(_numbered("rail", rails))
    if drained:
        details.append("drained" if len(found) == 1 else f"{drained} drained")
    return DrawnSymbol(
        id=name,
        role=role,
        title=first.name if len(found) == 1 else f"{len(found)} {PLURALS[role]}",
        details=tuple(details),
        devices=tuple(one.name for one in found),
        rail=rails[0] if len(rails) == 1 else None,
        is_drained=drained > 0,
        box=box,
    )

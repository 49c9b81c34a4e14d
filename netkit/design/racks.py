"""The rack and units of each device. A height without a source stays unknown."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Switch


@dataclass(frozen=True, slots=True)
class RackDevice:
    """A device in a rack."""

    name: str
    role: str
    model: str
    unit: int
    """The lowest one that it fills; 0 if it is not given."""
    height_u: int | None

    @property
    def top(self) -> int:
        """The highest unit that it surely fills."""
        return self.unit + (self.height_u or 1) - 1


@dataclass(frozen=True, slots=True)
class Rack:
    """A rack, with the devices in it from bottom to top, and those of which no unit is given."""

    name: str
    devices: tuple[RackDevice, ...]
    unplaced: tuple[RackDevice, ...]

    @property
    def units(self) -> int:
        """The highest unit in use; the intent does not contain the height of the rack."""
        return max((one.top for one in self.devices), default=0)


def racks(fabric: Fabric, chosen: Collection[str]) -> Iterator[Rack]:
    """Yield the racks of the chosen devices, with everything in them."""
    found: dict[str, list[RackDevice]] = defaultdict(list)
    wanted: set[str] = set()
    every: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    for device in every:
        if device.rack:
            found[device.rack].append(placed(device))
            wanted |= {device.rack} if device.name in chosen else set()
    for name in sorted(wanted):
        devices = sorted(found[name], key=lambda one: (one.unit, one.name))
        yield Rack(name, tuple(one for one in devices if one.unit), tuple(one for one in devices if not one.unit))


def placed(device: Switch | Host) -> RackDevice:
    """A device with its place in its rack."""
    role = "host" if isinstance(device, Host) else device.role
    return RackDevice(device.name, role, device.model.name, device.rack_unit or 0, device.model.height_u)

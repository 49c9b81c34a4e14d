"""Where each end of a cable is plugged in: the cage, the lanes of it that are the port's own, and what sits there."""

from dataclasses import dataclass

from netkit.design.fabric import Cable, Fabric, Host, Nic, Port, Switch
from netkit.lab.model.parts import Part, part
from netkit.lab.model.wiring import End, Wiring

LANES_PER_CAGE = 8


@dataclass(frozen=True, slots=True)
class Place:
    """One end's place in a cage."""

    device: str
    cage: str
    form: str
    first_lane: int
    lanes_shown: int
    """Lanes a module reports for this port; those beyond the part's own stay dark."""
    part: Part
    cable: Cable


def places(fabric: Fabric, wiring: Wiring) -> dict[End, Place]:
    """Return the place of every end."""
    found: dict[End, Place] = {}
    for switch in fabric.switches:
        widths = {cage.number: len(cage.ports) for cage in switch.cages}
        for port in switch.ports:
            found[End(switch.name, port.name)] = _of_port(switch, port, widths.get(port.cage, 1))
    for host in fabric.hosts:
        for nic in host.nics:
            end = End(host.name, nic.interface)
            if end in wiring.way_out:
                found[end] = _of_nic(host, nic, wiring.way_out[end].cable)
    return found


def _of_port(switch: Switch, port: Port, width: int) -> Place:
    plugged = part(port.profile.cable, width, port.profile.split.lanes_per_port)
    form = switch.model.cage_form
    return _place(switch.name, str(port.cage), form, port.lane_port, plugged, port.profile.cable)


def _of_nic(host: Host, nic: Nic, cable: Cable) -> Place:
    place = next((rail for rail in host.model.rails if rail.pci == nic.pci), None)
    width = host.model.ports_per_cage or 1
    plugged = part(cable, width, 4)
    cage = place.cage if place and place.cage else nic.interface
    position = (place.cage_port or 1) - 1 if place else 0
    return _place(host.name, cage, host.model.cage_form, position, plugged, cable)


def _place(device: str, cage: str, form: str, position: int, plugged: Part, cable: Cable) -> Place:
    is_shared = plugged.ports > 1
    shown = plugged.lanes if is_shared else max(plugged.lanes, LANES_PER_CAGE)
    return Place(device, cage, form, position * plugged.lanes + 1 if is_shared else 1, shown, plugged, cable)

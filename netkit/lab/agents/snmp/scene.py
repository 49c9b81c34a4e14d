"""What the SNMP tables of a switch are drawn from: its ports, what they are told and show, who is beside them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from netkit.design.fabric import Switch
from netkit.lab.agents.lldp.neighbor import Chassis, Neighbor
from netkit.lab.reading import ModuleReading, PortReading
from netkit.lab.state import PortState, SwitchState

FIRST_LINUX_INDEX = 3
"""lo and eth0 come first."""


@dataclass(frozen=True, slots=True)
class Interface:
    """A port as SNMP numbers and names it."""

    index: int
    label: str
    """What ifDescr and ifName call the port: its name, on SONiC its alias."""
    state: PortState
    reading: PortReading


@dataclass(frozen=True, slots=True)
class Scene:
    """A switch at one moment, its interfaces in the order of their indexes."""

    switch: Switch
    state: SwitchState
    interfaces: tuple[Interface, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What LLDP knows: the chassis itself, and the neighbours by kernel interface."""

    kernel_names: Mapping[str, str]
    chassis: Chassis
    neighbors: tuple[Neighbor, ...]


def scene(switch: Switch, state: SwitchState, readings: Iterable[PortReading]) -> Scene:
    """Return the scene of a switch."""
    told = {port.name: port for port in state.ports}
    found = (
        _interface(switch.platform, position, told.get(reading.name, PortState(reading.name)), reading)
        for position, reading in enumerate(readings)
    )
    return Scene(switch, state, tuple(sorted(found, key=lambda interface: interface.index)))


def interface_index(platform: str, port: str, position: int) -> int:
    """Return the ifIndex of a port.

    SONiC counts from the number in the port's name. That Cumulus and FRR count ports in their order from 3, and EOS by
    1000 for each cage, is the lab's choice: collectors must read ifName.
    """
    numbers = [int(number) for number in re.findall(r"\d+", port)]
    if platform == "sonic" and numbers:
        return numbers[0] + 1
    if platform == "eos" and numbers:
        return reduce(lambda index, number: 1000 * index + number, numbers)
    return FIRST_LINUX_INDEX + position


def modules(shown: Scene) -> Iterator[tuple[Interface, ModuleReading]]:
    """Yield the interfaces that have a transceiver, and the transceiver."""
    for interface in shown.interfaces:
        if interface.reading.module is not None:
            yield interface, interface.reading.module


def _interface(platform: str, position: int, state: PortState, reading: PortReading) -> Interface:
    return Interface(interface_index(platform, reading.name, position), state.alias or reading.name, state, reading)

"""ENTITY-MIB and ENTITY-SENSOR-MIB: the chassis, its transceivers, and what each transceiver measures.

Indexes, texts and precisions are those of SONiC's agent: a transceiver is 10⁹ + 100 × ifIndex, its sensors follow by
kind and lane. EOS names lanes as ports and leaves entPhysicalName empty. What Cumulus shows of optics is not known; it
gets SONiC's form.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from netkit.lab.agents.snmp.row import MIB_2, Oid, Row, integer, string, truth
from netkit.lab.agents.snmp.scene import Interface, Scene, modules
from netkit.lab.reading import Limits, ModuleReading

PHYSICAL = (*MIB_2, 47, 1, 1, 1, 1)
SENSOR = (*MIB_2, 99, 1, 1, 1)
CHASSIS = 1
IS_CHASSIS, IS_SENSOR, IS_PORT = 3, 8, 10
VOLTS, AMPERES, WATTS, CELSIUS = 4, 5, 6, 8
MILLI, UNITS = 8, 9
OK = 1
LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class Unit:
    """How a kind of sensor says its value."""

    name: str
    digit: int
    """Its place in the index."""
    data_type: int
    scale: int
    precision: int
    display: str


TEMPERATURE = Unit("Temperature", 1, CELSIUS, UNITS, 6, "celsius")
TX_POWER = Unit("TX Power", 2, WATTS, MILLI, 4, "milliwatts")
RX_POWER = Unit("RX Power", 3, WATTS, MILLI, 4, "milliwatts")
TX_BIAS = Unit("TX Bias", 4, AMPERES, MILLI, 3, "milliamperes")
VOLTAGE = Unit("Voltage", 5, VOLTS, UNITS, 4, "volts")
EOS_PRECISIONS = {"Temperature": 1, "Voltage": 2, "TX Bias": 2}


@dataclass(frozen=True, slots=True)
class Sensor:
    """One thing a transceiver measures; lanes count from 1 over the whole transceiver, 0 is all of it."""

    interface: Interface
    unit: Unit
    lane: int
    value: float
    limits: Limits | None

    @property
    def index(self) -> int:
        """Return its entPhysicalIndex."""
        return port_index(self.interface) + 10 * self.unit.digit + self.lane


def rows(shown: Scene) -> Iterator[Row]:
    """Yield entPhysicalTable."""
    yield from _physical(CHASSIS, 0, IS_CHASSIS, -1, ("Chassis", shown.switch.model.name))
    is_eos = shown.switch.platform == "eos"
    for interface, module in modules(shown):
        yield from _transceiver(interface, module, is_eos=is_eos)
    for position, sensor in sensors(shown):
        text = sensor_text(sensor, is_eos=is_eos)
        texts = ("" if is_eos else text, text)
        yield from _physical(sensor.index, port_index(sensor.interface), IS_SENSOR, position, texts)


def sensor_rows(shown: Scene) -> Iterator[Row]:
    """Yield entPhySensorTable."""
    is_eos = shown.switch.platform == "eos"
    for _, sensor in sensors(shown):
        precision = unit_precision(sensor.unit, is_eos=is_eos)
        yield integer((*SENSOR, 1, sensor.index), sensor.unit.data_type)
        yield integer((*SENSOR, 2, sensor.index), sensor.unit.scale)
        yield integer((*SENSOR, 3, sensor.index), precision)
        yield integer((*SENSOR, 4, sensor.index), scaled(sensor.unit, sensor.value, precision))
        yield integer((*SENSOR, 5, sensor.index), OK)
        yield string((*SENSOR, 6, sensor.index), sensor.unit.display)


def sensors(shown: Scene) -> Iterator[tuple[int, Sensor]]:
    """Yield all sensors with their position in their transceiver; passive copper has none."""
    for interface, module in modules(shown):
        if module.kind != "copper":
            yield from enumerate(_sensors(interface, module), 1)


def port_index(interface: Interface) -> int:
    """Return the entPhysicalIndex of the transceiver of a port."""
    return 10**9 + 100 * interface.index


def unit_precision(unit: Unit, *, is_eos: bool) -> int:
    """Return the number of decimal places of a kind of sensor."""
    return EOS_PRECISIONS.get(unit.name, unit.precision) if is_eos else unit.precision


def scaled(unit: Unit, value: float, precision: int) -> int:
    """Return a value as entPhySensorValue has it; light is held in dBm and shown in milliwatts."""
    shown = math.pow(10, value / 10) if unit.data_type == WATTS else value
    return max(-LARGEST, min(LARGEST, round(shown * math.pow(10, precision))))


def sensor_text(sensor: Sensor, *, is_eos: bool) -> str:
    """Return what entPhysicalDescr says of a sensor."""
    label = sensor.interface.label
    cage = label.rpartition("/")[0] if is_eos else ""
    place = f"{cage or label}/{sensor.lane}" if sensor.lane else label
    return f"DOM {sensor.unit.name} Sensor for {place}"


def _sensors(interface: Interface, module: ModuleReading) -> Iterator[Sensor]:
    yield Sensor(interface, TEMPERATURE, 0, module.temperature_c, module.temperature_limits)
    for lane, light in enumerate(module.lanes, module.first_lane):
        yield Sensor(interface, TX_POWER, lane, light.tx_dbm, module.tx_limits)
    for lane, light in enumerate(module.lanes, module.first_lane):
        yield Sensor(interface, RX_POWER, lane, light.rx_dbm, module.rx_limits)
    for lane, light in enumerate(module.lanes, module.first_lane):
        yield Sensor(interface, TX_BIAS, lane, light.bias_ma, module.bias_limits)
    yield Sensor(interface, VOLTAGE, 0, module.voltage_v, module.voltage_limits)


def _transceiver(interface: Interface, module: ModuleReading, *, is_eos: bool) -> Iterator[Row]:
    index = port_index(interface)
    text = f"Xcvr for {interface.label}" if is_eos else f"{module.identifier} for {interface.label}"
    texts = ("" if is_eos else interface.reading.name, text)
    yield from _physical(index, CHASSIS, IS_PORT, -1, texts, is_replaceable=True)
    told = {8: module.revision, 9: module.firmware, 11: module.serial, 12: module.vendor, 13: module.part}
    for column, value in told.items():
        yield string((*PHYSICAL, column, index), value)


def _physical(
    index: int, parent: int, entity_class: int, position: int, texts: tuple[str, str], *, is_replaceable: bool = False
) -> Iterator[Row]:
    name, description = texts

    def at(column: int) -> Oid:
        return (*PHYSICAL, column, index)

    yield string(at(2), description)
    yield integer(at(4), parent)
    yield integer(at(5), entity_class)
    yield integer(at(6), position)
    yield string(at(7), name)
    yield truth(at(16), is_replaceable)

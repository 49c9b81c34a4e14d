"""IF-MIB, LLDP-MIB, ENTITY-MIB, ENTITY-SENSOR-MIB and IEEE8021-PFC-MIB."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from netkit.lab.agents.lldp_neighbor import LldpChassis, LldpNeighbor
from netkit.lab.agents.snmp_objects import (
    MIB_2,
    LldpState,
    MibRow,
    Oid,
    SnmpInterface,
    SnmpSnapshot,
    counter32,
    counter64,
    gauge,
    integer,
    mac_octets,
    modules,
    octets,
    string,
    truth,
)
from netkit.lab.reading import ModuleThresholds, TransceiverReading

NUMBER = (*MIB_2, 2, 1, 0)
INTERFACE_TABLE = (*MIB_2, 2, 2, 1)
X_TABLE = (*MIB_2, 31, 1, 1, 1)
ETHERNET = 6
UP, DOWN, NOT_PRESENT = 1, 2, 6
TRAPS_DISABLED = 2


def interface_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    """Yield ifNumber and ifTable."""
    yield integer(NUMBER, len(snapshot.interfaces))
    for interface in snapshot.interfaces:
        yield from _entry(interface)


def extended_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    """Yield ifXTable. A veth does not count multicast separately, so all packets are unicast."""
    for interface in snapshot.interfaces:
        yield from _extended_entry(interface)


def _entry(interface: SnmpInterface) -> Iterator[MibRow]:
    index, reading, traffic = interface.index, interface.reading, interface.reading.traffic
    yield integer((*INTERFACE_TABLE, 1, index), index)
    yield string((*INTERFACE_TABLE, 2, index), interface.label)
    yield integer((*INTERFACE_TABLE, 3, index), ETHERNET)
    yield integer((*INTERFACE_TABLE, 4, index), reading.mtu_bytes)
    yield gauge((*INTERFACE_TABLE, 5, index), reading.speed_gbps * 10**9)
    yield octets((*INTERFACE_TABLE, 6, index), mac_octets(reading.mac))
    yield integer((*INTERFACE_TABLE, 7, index), UP if reading.is_enabled else DOWN)
    yield integer((*INTERFACE_TABLE, 8, index), UP if reading.is_up else DOWN if reading.module else NOT_PRESENT)
    counted = {
        10: traffic.rx_bytes,
        11: traffic.rx_packets,
        13: traffic.rx_dropped,
        14: traffic.rx_errors,
        16: traffic.tx_bytes,
        17: traffic.tx_packets,
        19: traffic.tx_dropped,
        20: traffic.tx_errors,
    }
    for column, value in counted.items():
        yield counter32((*INTERFACE_TABLE, column, index), value)


def _extended_entry(interface: SnmpInterface) -> Iterator[MibRow]:
    """Yield a row of ifXTable; a veth does not count multicast separately, so all packets count as unicast."""
    index, reading, traffic = interface.index, interface.reading, interface.reading.traffic
    yield string((*X_TABLE, 1, index), interface.label)
    counted = {6: traffic.rx_bytes, 7: traffic.rx_packets, 10: traffic.tx_bytes, 11: traffic.tx_packets}
    for column, value in counted.items():
        yield counter64((*X_TABLE, column, index), value)
    yield integer((*X_TABLE, 14, index), TRAPS_DISABLED)
    yield gauge((*X_TABLE, 15, index), reading.speed_gbps * 1000)
    yield truth((*X_TABLE, 16, index), value=False)
    yield truth((*X_TABLE, 17, index), value=True)
    yield string((*X_TABLE, 18, index), interface.state.description)


LLDP = (1, 0, 8802, 1, 1, 2, 1)
LOCAL = (*LLDP, 3)
LOCAL_PORT = (*LOCAL, 7, 1)
REMOTE = (*LLDP, 4, 1, 1)
CHASSIS_KINDS = {"ifalias": 2, "mac": 4, "ip": 5, "ifname": 6, "local": 7}
PORT_KINDS = {"ifalias": 1, "mac": 3, "ip": 4, "ifname": 5, "local": 7}
NO_TIME_FILTER = 0


def lldp_rows(snapshot: SnmpSnapshot, lldp: LldpState) -> Iterator[MibRow]:
    """Yield the local system, its ports, and the remote systems by local port, which is numbered as in IF-MIB."""
    yield from _chassis(lldp.chassis)
    by_kernel_name = {kernel: port for port, kernel in lldp.kernel_names.items()}
    indexes = {}
    for interface in snapshot.interfaces:
        indexes[interface.reading.name] = interface.index
        is_name = interface.label == lldp.kernel_names.get(interface.reading.name)
        kind = PORT_KINDS["ifname" if is_name else "local"]
        yield integer((*LOCAL_PORT, 2, interface.index), kind)
        yield string((*LOCAL_PORT, 3, interface.index), interface.label)
        yield string((*LOCAL_PORT, 4, interface.index), interface.state.description or interface.reading.name)
    seen: Counter[int] = Counter()
    for neighbor in lldp.neighbors:
        index = indexes.get(by_kernel_name.get(neighbor.interface, ""))
        if index is not None:
            seen[index] += 1
            yield from _remote(index, seen[index], neighbor)


def _chassis(chassis: LldpChassis) -> Iterator[MibRow]:
    if not chassis.identifier:
        return
    yield integer((*LOCAL, 1, 0), CHASSIS_KINDS.get(chassis.kind, CHASSIS_KINDS["local"]))
    yield octets((*LOCAL, 2, 0), _identifier(chassis.kind, chassis.identifier))
    yield string((*LOCAL, 3, 0), chassis.name)
    yield string((*LOCAL, 4, 0), chassis.description)


def _remote(index: int, number: int, neighbor: LldpNeighbor) -> Iterator[MibRow]:
    at, chassis = (NO_TIME_FILTER, index, number), neighbor.chassis
    yield integer((*REMOTE, 4, *at), CHASSIS_KINDS.get(chassis.kind, CHASSIS_KINDS["local"]))
    yield octets((*REMOTE, 5, *at), _identifier(chassis.kind, chassis.identifier))
    yield integer((*REMOTE, 6, *at), PORT_KINDS.get(neighbor.port_kind, PORT_KINDS["local"]))
    yield octets((*REMOTE, 7, *at), _identifier(neighbor.port_kind, neighbor.port))
    yield string((*REMOTE, 8, *at), neighbor.port_description)
    yield string((*REMOTE, 9, *at), chassis.name)
    yield string((*REMOTE, 10, *at), chassis.description)


def _identifier(kind: str, identifier: str) -> bytes:
    return mac_octets(identifier) if kind == "mac" else identifier.encode()


PHYSICAL = (*MIB_2, 47, 1, 1, 1, 1)
SENSOR = (*MIB_2, 99, 1, 1, 1)
CHASSIS = 1
IS_CHASSIS, IS_SENSOR, IS_PORT = 3, 8, 10
VOLTS, AMPERES, WATTS, CELSIUS = 4, 5, 6, 8
MILLI, UNITS = 8, 9
OK = 1
LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class SensorUnit:
    """How one kind of sensor encodes its value."""

    name: str
    digit: int
    """Its place in the index."""
    data_type: int
    scale: int
    precision: int
    display: str


TEMPERATURE = SensorUnit("Temperature", 1, CELSIUS, UNITS, 6, "celsius")
TX_POWER = SensorUnit("TX Power", 2, WATTS, MILLI, 4, "milliwatts")
RX_POWER = SensorUnit("RX Power", 3, WATTS, MILLI, 4, "milliwatts")
TX_BIAS = SensorUnit("TX Bias", 4, AMPERES, MILLI, 3, "milliamperes")
VOLTAGE = SensorUnit("Voltage", 5, VOLTS, UNITS, 4, "volts")
EOS_PRECISIONS = {"Temperature": 1, "Voltage": 2, "TX Bias": 2}


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor of a transceiver; lanes count from 1 over the whole transceiver, 0 is the module itself."""

    interface: SnmpInterface
    unit: SensorUnit
    lane: int
    value: float
    limits: ModuleThresholds | None

    @property
    def index(self) -> int:
        """The sensor's entPhysicalIndex."""
        return port_index(self.interface) + 10 * self.unit.digit + self.lane


def entity_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    yield from _physical(CHASSIS, 0, IS_CHASSIS, -1, ("Chassis", snapshot.switch.model.name))
    is_eos = snapshot.switch.platform == "eos"
    for interface, module in modules(snapshot):
        yield from _transceiver(interface, module, is_eos=is_eos)
    for position, sensor in sensors(snapshot):
        text = sensor_text(sensor, is_eos=is_eos)
        texts = ("" if is_eos else text, text)
        yield from _physical(sensor.index, port_index(sensor.interface), IS_SENSOR, position, texts)


def sensor_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    is_eos = snapshot.switch.platform == "eos"
    for _, sensor in sensors(snapshot):
        precision = unit_precision(sensor.unit, is_eos=is_eos)
        yield integer((*SENSOR, 1, sensor.index), sensor.unit.data_type)
        yield integer((*SENSOR, 2, sensor.index), sensor.unit.scale)
        yield integer((*SENSOR, 3, sensor.index), precision)
        yield integer((*SENSOR, 4, sensor.index), scaled(sensor.unit, sensor.value, precision))
        yield integer((*SENSOR, 5, sensor.index), OK)
        yield string((*SENSOR, 6, sensor.index), sensor.unit.display)


def sensors(snapshot: SnmpSnapshot) -> Iterator[tuple[int, Sensor]]:
    """Yield all sensors with their position in their transceiver; passive copper has none."""
    for interface, module in modules(snapshot):
        if module.kind != "copper":
            yield from enumerate(_sensors(interface, module), 1)


def port_index(interface: SnmpInterface) -> int:
    """The entPhysicalIndex of a port's transceiver."""
    return 10**9 + 100 * interface.index


def unit_precision(unit: SensorUnit, *, is_eos: bool) -> int:
    return EOS_PRECISIONS.get(unit.name, unit.precision) if is_eos else unit.precision


def scaled(unit: SensorUnit, value: float, precision: int) -> int:
    """Encode a value as entPhySensorValue; optical power is converted from dBm to milliwatts."""
    converted = math.pow(10, value / 10) if unit.data_type == WATTS else value
    return max(-LARGEST, min(LARGEST, round(converted * math.pow(10, precision))))


def sensor_text(sensor: Sensor, *, is_eos: bool) -> str:
    label = sensor.interface.label
    cage = label.rpartition("/")[0] if is_eos else ""
    place = f"{cage or label}/{sensor.lane}" if sensor.lane else label
    return f"DOM {sensor.unit.name} Sensor for {place}"


def _sensors(interface: SnmpInterface, module: TransceiverReading) -> Iterator[Sensor]:
    yield Sensor(interface, TEMPERATURE, 0, module.temperature_c, module.temperature_limits)
    for number, lane in enumerate(module.lanes, module.first_lane):
        yield Sensor(interface, TX_POWER, number, lane.tx_dbm, module.tx_limits)
    for number, lane in enumerate(module.lanes, module.first_lane):
        yield Sensor(interface, RX_POWER, number, lane.rx_dbm, module.rx_limits)
    for number, lane in enumerate(module.lanes, module.first_lane):
        yield Sensor(interface, TX_BIAS, number, lane.bias_ma, module.bias_limits)
    yield Sensor(interface, VOLTAGE, 0, module.voltage_v, module.voltage_limits)


def _transceiver(interface: SnmpInterface, module: TransceiverReading, *, is_eos: bool) -> Iterator[MibRow]:
    index = port_index(interface)
    text = f"Xcvr for {interface.label}" if is_eos else f"{module.identifier} for {interface.label}"
    texts = ("" if is_eos else interface.reading.name, text)
    yield from _physical(index, CHASSIS, IS_PORT, -1, texts, is_replaceable=True)
    texts_by_column = {8: module.revision, 9: module.firmware, 11: module.serial, 12: module.vendor, 13: module.part}
    for column, value in texts_by_column.items():
        yield string((*PHYSICAL, column, index), value)


def _physical(
    index: int, parent: int, entity_class: int, position: int, texts: tuple[str, str], *, is_replaceable: bool = False
) -> Iterator[MibRow]:
    name, description = texts

    def at(column: int) -> Oid:
        return (*PHYSICAL, column, index)

    yield string(at(2), description)
    yield integer(at(4), parent)
    yield integer(at(5), entity_class)
    yield integer(at(6), position)
    yield string(at(7), name)
    yield truth(at(16), is_replaceable)


PFC_TABLE = (1, 3, 111, 2, 802, 1, 1, 21, 1, 1, 1)


def pfc_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    """Yield ieee8021PfcRequests (frames sent) and ieee8021PfcIndications (frames received)."""
    for interface in snapshot.interfaces:
        priorities = interface.reading.priorities
        yield counter32((*PFC_TABLE, 2, interface.index), sum(priority.tx_pause for priority in priorities))
        yield counter32((*PFC_TABLE, 3, interface.index), sum(priority.rx_pause for priority in priorities))

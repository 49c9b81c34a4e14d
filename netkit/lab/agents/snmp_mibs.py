"""Standard MIBs (IF, LLDP, ENTITY, ENTITY-SENSOR, IEEE8021-PFC), those of the vendors, and which a platform has."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from netkit.lab.agents.lldp_daemon import LldpChassis, LldpNeighbor, LldpState
from netkit.lab.agents.snmp_objects import (
    ENTERPRISES,
    MIB_2,
    Mib,
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


ARISTA = (*ENTERPRISES, 30065, 3)
EGRESS_QUEUE = (*ARISTA, 6, 1, 2, 1)
PFC_PRIORITY = (*ARISTA, 11, 1, 1, 1)
PFC_WATCHDOG = (*ARISTA, 11, 1, 2, 1)
SENSOR_LIMITS = (*ARISTA, 12, 1, 1, 1)
ECN_QUEUE = (*ARISTA, 13, 1, 9, 1)
UNICAST = 0


def arista_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    for interface in snapshot.interfaces:
        index, reading = interface.index, interface.reading
        for number, queue in enumerate(reading.queues):
            for column, value in {4: queue.tx_packets, 5: queue.tx_bytes, 6: queue.dropped_packets}.items():
                yield counter64((*EGRESS_QUEUE, column, index, number, UNICAST), value)
            yield truth((*ECN_QUEUE, 3, index, number), number in interface.state.qos.ecn)
            yield counter64((*ECN_QUEUE, 4, index, number), queue.ecn_marked_packets)
        for number, priority in enumerate(reading.priorities):
            yield counter64((*PFC_PRIORITY, 3, index, number), priority.tx_pause)
            yield counter64((*PFC_PRIORITY, 4, index, number), priority.rx_pause)
        for number, watchdog in enumerate(reading.watchdogs):
            yield integer((*PFC_WATCHDOG, 4, index, UNICAST, number), watchdog.storms_detected)
            yield integer((*PFC_WATCHDOG, 5, index, UNICAST, number), watchdog.storms_restored)
    for _, sensor in sensors(snapshot):
        if (limits := sensor.limits) is None:
            continue
        precision = unit_precision(sensor.unit, is_eos=True)
        columns = {1: limits.warning_low, 2: limits.alarm_low, 3: limits.warning_high, 4: limits.alarm_high}
        for column, threshold in columns.items():
            yield integer((*SENSOR_LIMITS, column, sensor.index), scaled(sensor.unit, threshold, precision))
        yield string((*SENSOR_LIMITS, 5, sensor.index), _sensor_status(sensor.value, limits))


def _sensor_status(value: float, limits: ModuleThresholds) -> str:
    if not limits.alarm_low <= value <= limits.alarm_high:
        return "critical"
    return "ok" if limits.warning_low <= value <= limits.warning_high else "warning"


COUNTERS = (*ENTERPRISES, 40310, 2)
DISCARDS = (*COUNTERS, 1, 2, 1)
PFC = (*COUNTERS, 2, 3, 1)
UP_DOWN = (*COUNTERS, 2, 5, 1)
CLASSES = (*COUNTERS, 2, 6, 1)
FIRST_PFC_COLUMN = 4


def cumulus_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    """Yield the tables of discards, pause frames, carrier changes and traffic classes; what has no source is absent."""
    for interface in snapshot.interfaces:
        index, reading = interface.index, interface.reading
        yield string((*DISCARDS, 1, index), reading.name)
        yield counter64((*DISCARDS, 3, index), sum(buffer.dropped_packets for buffer in reading.buffers))
        yield counter64((*DISCARDS, 6, index), sum(queue.dropped_packets for queue in reading.queues))
        yield from _cumulus_pause_frames(interface)
        changes = reading.carrier_changes
        ups = (changes + reading.is_up) // 2
        yield string((*UP_DOWN, 1, index), reading.name)
        for column, value in {2: ups, 3: changes - ups, 4: changes}.items():
            yield counter64((*UP_DOWN, column, index), value)
        for number, queue in enumerate(reading.queues):
            counted = {3: queue.tx_packets, 4: queue.tx_bytes, 5: queue.dropped_packets, 7: queue.ecn_marked_packets}
            for column, value in counted.items():
                yield counter64((*CLASSES, column, index, number), value)


def _cumulus_pause_frames(interface: SnmpInterface) -> Iterator[MibRow]:
    """Yield PFC frames received and sent by priority; the lab has no port-wide pause."""
    yield string((*PFC, 1, interface.index), interface.reading.name)
    yield counter64((*PFC, 2, interface.index), 0)
    yield counter64((*PFC, 3, interface.index), 0)
    for number, priority in enumerate(interface.reading.priorities):
        column = FIRST_PFC_COLUMN + 2 * number
        yield counter64((*PFC, column, interface.index), priority.rx_pause)
        yield counter64((*PFC, column + 1, interface.index), priority.tx_pause)


CISCO = (*ENTERPRISES, 9, 9)
PFC_OF_PORT = (*CISCO, 813, 1, 1, 1)
PFC_OF_PRIORITY = (*CISCO, 813, 1, 2, 1)
QUEUES = (*CISCO, 580, 1, 5, 5, 1, 4)
EGRESS = 2
PRIORITY_OF_PORT = 3
"""The agent's sums over a port count this priority alone."""


def cisco_pfc_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    """Yield pause frames by port and by priority."""
    for interface in snapshot.interfaces:
        for number, priority in enumerate(interface.reading.priorities):
            if number == PRIORITY_OF_PORT:
                yield counter64((*PFC_OF_PORT, 1, interface.index), priority.tx_pause)
                yield counter64((*PFC_OF_PORT, 2, interface.index), priority.rx_pause)
            yield counter64((*PFC_OF_PRIORITY, 2, interface.index, number), priority.tx_pause)
            yield counter64((*PFC_OF_PRIORITY, 3, interface.index, number), priority.rx_pause)


def cisco_queue_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    """Yield csqIfQosGroupStats: packets, bytes and dropped packets of the egress queues, which count from 1."""
    for interface in snapshot.interfaces:
        for number, queue in enumerate(interface.reading.queues, 1):
            counted = {1: queue.tx_packets, 2: queue.tx_bytes, 5: queue.dropped_packets}
            for column, value in counted.items():
                yield counter64((*QUEUES, interface.index, EGRESS, number, column), value)


Draw = Callable[[SnmpSnapshot], Iterable[MibRow]]

COMMON: Mapping[Oid, Draw] = {
    NUMBER[:-2]: interface_rows,
    X_TABLE[:-1]: extended_rows,
    PHYSICAL[:-1]: entity_rows,
    SENSOR[:-1]: sensor_rows,
    PFC_TABLE[:-3]: pfc_rows,
}
VENDORS: Mapping[str, Mapping[Oid, Draw]] = {
    "nvue": {COUNTERS: cumulus_rows},
    "sonic": {
        PFC_OF_PORT[:-3]: cisco_pfc_rows,
        QUEUES[:-2]: cisco_queue_rows,
    },
    "eos": {ARISTA: arista_rows},
}


def mibs(platform: str, look: Callable[[], SnmpSnapshot], listen: Callable[[], LldpState]) -> list[Mib]:
    """The MIBs of a platform; `look` reads the ports, `listen` reads LLDP."""
    found = [_mib(root, draw, look) for root, draw in {**COMMON, **VENDORS.get(platform, {})}.items()]
    return [*found, Mib(LLDP[:-1], lambda: lldp_rows(look(), listen()))]


def _mib(root: Oid, draw: Draw, look: Callable[[], SnmpSnapshot]) -> Mib:
    return Mib(root, lambda: draw(look()))

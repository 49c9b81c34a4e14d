"""Vendor MIBs, and the MIBs each platform exposes. The object identifiers are those of the published MIBs."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from netkit.lab.agents import snmp_mibs
from netkit.lab.agents.snmp_mibs import scaled, sensors, unit_precision
from netkit.lab.agents.snmp_objects import (
    ENTERPRISES,
    LldpState,
    Mib,
    MibRow,
    Oid,
    SnmpInterface,
    SnmpSnapshot,
    counter64,
    integer,
    string,
    truth,
)
from netkit.lab.reading import ModuleThresholds

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


def pfc_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    """Yield pause frames by port and by priority."""
    for interface in snapshot.interfaces:
        for number, priority in enumerate(interface.reading.priorities):
            if number == PRIORITY_OF_PORT:
                yield counter64((*PFC_OF_PORT, 1, interface.index), priority.tx_pause)
                yield counter64((*PFC_OF_PORT, 2, interface.index), priority.rx_pause)
            yield counter64((*PFC_OF_PRIORITY, 2, interface.index, number), priority.tx_pause)
            yield counter64((*PFC_OF_PRIORITY, 3, interface.index, number), priority.rx_pause)


def queue_rows(snapshot: SnmpSnapshot) -> Iterator[MibRow]:
    """Yield csqIfQosGroupStats: packets, bytes and dropped packets of the egress queues, which count from 1."""
    for interface in snapshot.interfaces:
        for number, queue in enumerate(interface.reading.queues, 1):
            counted = {1: queue.tx_packets, 2: queue.tx_bytes, 5: queue.dropped_packets}
            for column, value in counted.items():
                yield counter64((*QUEUES, interface.index, EGRESS, number, column), value)


Draw = Callable[[SnmpSnapshot], Iterable[MibRow]]

COMMON: Mapping[Oid, Draw] = {
    snmp_mibs.NUMBER[:-2]: snmp_mibs.interface_rows,
    snmp_mibs.X_TABLE[:-1]: snmp_mibs.extended_rows,
    snmp_mibs.PHYSICAL[:-1]: snmp_mibs.entity_rows,
    snmp_mibs.SENSOR[:-1]: snmp_mibs.sensor_rows,
    snmp_mibs.PFC_TABLE[:-3]: snmp_mibs.pfc_rows,
}
VENDORS: Mapping[str, Mapping[Oid, Draw]] = {
    "nvue": {COUNTERS: cumulus_rows},
    "sonic": {
        PFC_OF_PORT[:-3]: pfc_rows,
        QUEUES[:-2]: queue_rows,
    },
    "eos": {ARISTA: arista_rows},
}


def mibs(platform: str, look: Callable[[], SnmpSnapshot], listen: Callable[[], LldpState]) -> list[Mib]:
    """The MIBs of a platform; `look` reads the ports, `listen` reads LLDP."""
    found = [_mib(root, draw, look) for root, draw in {**COMMON, **VENDORS.get(platform, {})}.items()]
    return [*found, Mib(snmp_mibs.LLDP[:-1], lambda: snmp_mibs.lldp_rows(look(), listen()))]


def _mib(root: Oid, draw: Draw, look: Callable[[], SnmpSnapshot]) -> Mib:
    return Mib(root, lambda: draw(look()))

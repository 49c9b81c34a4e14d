"""Arista's own tables: queues, thresholds of sensors, PFC with its watchdog, and ECN marks."""

from collections.abc import Iterator

from netkit.lab.agents.snmp.entity import Sensor, scaled, sensors, unit_precision
from netkit.lab.agents.snmp.row import ENTERPRISES, Row, counter64, integer, string, truth
from netkit.lab.agents.snmp.scene import Interface, Scene
from netkit.lab.reading import Limits

ARISTA = (*ENTERPRISES, 30065, 3)
EGRESS_QUEUE = (*ARISTA, 6, 1, 2, 1)
PFC_PRIORITY = (*ARISTA, 11, 1, 1, 1)
PFC_WATCHDOG = (*ARISTA, 11, 1, 2, 1)
SENSOR_LIMITS = (*ARISTA, 12, 1, 1, 1)
ECN_QUEUE = (*ARISTA, 13, 1, 9, 1)
UNICAST = 0


def rows(shown: Scene) -> Iterator[Row]:
    """Yield all of Arista's tables."""
    for interface in shown.interfaces:
        yield from _queues(interface)
        yield from _pause_frames(interface)
    for _, sensor in sensors(shown):
        if sensor.limits is not None:
            yield from _limits(sensor, sensor.limits)


def _queues(interface: Interface) -> Iterator[Row]:
    for number, queue in enumerate(interface.reading.queues):
        counted = {4: queue.tx_packets, 5: queue.tx_bytes, 6: queue.dropped_packets}
        for column, value in counted.items():
            yield counter64((*EGRESS_QUEUE, column, interface.index, number, UNICAST), value)
        yield truth((*ECN_QUEUE, 3, interface.index, number), number in interface.state.qos.ecn)
        yield counter64((*ECN_QUEUE, 4, interface.index, number), queue.ecn_marked_packets)


def _pause_frames(interface: Interface) -> Iterator[Row]:
    for number, priority in enumerate(interface.reading.priorities):
        yield counter64((*PFC_PRIORITY, 3, interface.index, number), priority.tx_pause)
        yield counter64((*PFC_PRIORITY, 4, interface.index, number), priority.rx_pause)
    for number, watchdog in enumerate(interface.reading.watchdogs):
        yield integer((*PFC_WATCHDOG, 4, interface.index, UNICAST, number), watchdog.storms_detected)
        yield integer((*PFC_WATCHDOG, 5, interface.index, UNICAST, number), watchdog.storms_restored)


def _limits(sensor: Sensor, limits: Limits) -> Iterator[Row]:
    precision = unit_precision(sensor.unit, is_eos=True)
    stated = {1: limits.warning_low, 2: limits.alarm_low, 3: limits.warning_high, 4: limits.alarm_high}
    for column, value in stated.items():
        yield integer((*SENSOR_LIMITS, column, sensor.index), scaled(sensor.unit, value, precision))
    yield string((*SENSOR_LIMITS, 5, sensor.index), _verdict(sensor.value, limits))


def _verdict(value: float, limits: Limits) -> str:
    if not limits.alarm_low <= value <= limits.alarm_high:
        return "critical"
    return "ok" if limits.warning_low <= value <= limits.warning_high else "warning"

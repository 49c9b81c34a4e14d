"""CUMULUS-COUNTERS-MIB: what Cumulus counts beyond IF-MIB."""

from collections.abc import Iterator

from netkit.lab.agents.snmp.row import ENTERPRISES, Row, counter64, string
from netkit.lab.agents.snmp.scene import Interface, Scene

COUNTERS = (*ENTERPRISES, 40310, 2)
DISCARDS = (*COUNTERS, 1, 2, 1)
PFC = (*COUNTERS, 2, 3, 1)
UP_DOWN = (*COUNTERS, 2, 5, 1)
CLASSES = (*COUNTERS, 2, 6, 1)
FIRST_PFC_COLUMN = 4


def rows(shown: Scene) -> Iterator[Row]:
    """Yield the tables of discards, pause frames, carrier changes and traffic classes; what has no source is absent."""
    for interface in shown.interfaces:
        yield from _discards(interface)
        yield from _pause_frames(interface)
        yield from _carrier(interface)
        yield from _classes(interface)


def _discards(interface: Interface) -> Iterator[Row]:
    index, reading = interface.index, interface.reading
    yield string((*DISCARDS, 1, index), reading.name)
    yield counter64((*DISCARDS, 3, index), sum(buffer.dropped_packets for buffer in reading.buffers))
    yield counter64((*DISCARDS, 6, index), sum(queue.dropped_packets for queue in reading.queues))


def _pause_frames(interface: Interface) -> Iterator[Row]:
    """Yield PFC frames received and sent, priority after priority; there is no pause of a whole port in the lab."""
    yield string((*PFC, 1, interface.index), interface.reading.name)
    yield counter64((*PFC, 2, interface.index), 0)
    yield counter64((*PFC, 3, interface.index), 0)
    for number, priority in enumerate(interface.reading.priorities):
        column = FIRST_PFC_COLUMN + 2 * number
        yield counter64((*PFC, column, interface.index), priority.rx_pause)
        yield counter64((*PFC, column + 1, interface.index), priority.tx_pause)


def _carrier(interface: Interface) -> Iterator[Row]:
    changes = interface.reading.carrier_changes
    ups = (changes + interface.reading.is_up) // 2
    yield string((*UP_DOWN, 1, interface.index), interface.reading.name)
    for column, value in {2: ups, 3: changes - ups, 4: changes}.items():
        yield counter64((*UP_DOWN, column, interface.index), value)


def _classes(interface: Interface) -> Iterator[Row]:
    for number, queue in enumerate(interface.reading.queues):
        counted = {3: queue.tx_packets, 4: queue.tx_bytes, 5: queue.dropped_packets, 7: queue.ecn_marked_packets}
        for column, value in counted.items():
            yield counter64((*CLASSES, column, interface.index, number), value)

"""What SONiC's agent shows in Cisco's name: CISCO-PFC-EXT-MIB and CISCO-SWITCH-QOS-MIB."""

from collections.abc import Iterator

from netkit.lab.agents.snmp.row import ENTERPRISES, Row, counter64
from netkit.lab.agents.snmp.scene import Interface, Scene

CISCO = (*ENTERPRISES, 9, 9)
PFC_OF_PORT = (*CISCO, 813, 1, 1, 1)
PFC_OF_PRIORITY = (*CISCO, 813, 1, 2, 1)
QUEUES = (*CISCO, 580, 1, 5, 5, 1, 4)
EGRESS = 2
PRIORITY_OF_PORT = 3
"""The agent's sums over a port count this priority alone."""


def pfc_rows(shown: Scene) -> Iterator[Row]:
    """Yield pause frames by port and by priority."""
    for interface in shown.interfaces:
        yield from _pause_frames(interface)


def queue_rows(shown: Scene) -> Iterator[Row]:
    """Yield csqIfQosGroupStats: packets, bytes and dropped packets of the egress queues, which count from 1."""
    for interface in shown.interfaces:
        for number, queue in enumerate(interface.reading.queues, 1):
            counted = {1: queue.tx_packets, 2: queue.tx_bytes, 5: queue.dropped_packets}
            for column, value in counted.items():
                yield counter64((*QUEUES, interface.index, EGRESS, number, column), value)


def _pause_frames(interface: Interface) -> Iterator[Row]:
    for number, priority in enumerate(interface.reading.priorities):
        if number == PRIORITY_OF_PORT:
            yield counter64((*PFC_OF_PORT, 1, interface.index), priority.tx_pause)
            yield counter64((*PFC_OF_PORT, 2, interface.index), priority.rx_pause)
        yield counter64((*PFC_OF_PRIORITY, 2, interface.index, number), priority.tx_pause)
        yield counter64((*PFC_OF_PRIORITY, 3, interface.index, number), priority.rx_pause)

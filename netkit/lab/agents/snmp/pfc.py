"""IEEE8021-PFC-MIB: the pause frames of a port, all priorities together.

The lab shows it on every platform; a real SONiC shows PFC only in Cisco's table, a real Cumulus only in its own.
"""

from collections.abc import Iterator

from netkit.lab.agents.snmp.row import Row, counter32
from netkit.lab.agents.snmp.scene import Scene

TABLE = (1, 3, 111, 2, 802, 1, 1, 21, 1, 1, 1)


def rows(shown: Scene) -> Iterator[Row]:
    """Yield ieee8021PfcRequests (frames sent) and ieee8021PfcIndications (frames received)."""
    for interface in shown.interfaces:
        priorities = interface.reading.priorities
        yield counter32((*TABLE, 2, interface.index), sum(priority.tx_pause for priority in priorities))
        yield counter32((*TABLE, 3, interface.index), sum(priority.rx_pause for priority in priorities))

"""What Cumulus Linux streams over gNMI: the paths its documentation lists, as far as netkit's counters go.

That each switch priority is told apart by a key, and how that is called, is the lab's choice.
"""

from collections.abc import Iterator

from netkit.lab.agents.gnmi import server
from netkit.lab.node import Node
from netkit.lab.personality import Elem, Told
from netkit.lab.reading import PortReading


def told(node: Node, path: tuple[Elem, ...]) -> Iterator[Told]:
    """Yield all leaves below a path; LookupError when there are none."""
    yield from server.below((one for reading in node.ports() for one in _of_port(reading)), path)


def _of_port(reading: PortReading) -> Iterator[Told]:
    name, traffic = reading.name, reading.traffic
    packets = {"in-pkts": traffic.rx_packets, "out-pkts": traffic.tx_packets, "out-discards": traffic.tx_dropped}
    counters = {**server.counters(reading), **packets}
    yield from server.leaves(server.interface(name, "state", "counters"), counters)
    changes = {"carrier-transitions": reading.carrier_changes}
    yield from server.leaves(server.interface(name, "ethernet", "state", "counters"), changes)
    blocks = {"rs-fec-uncorrectable-blocks": reading.fec.uncorrectable_codewords}
    yield from server.leaves(server.interface(name, "ethernet", "phy", "state"), blocks)
    for number, queue in enumerate(reading.queues):
        beside = {"ecn-marked-pkts": queue.ecn_marked_packets, "no-buffer-uc-dropped-pkts": queue.dropped_packets}
        yield from server.leaves(server.queue(name, number), {**server.queue_counters(queue), **beside})
    for number, priority in enumerate(reading.priorities):
        at: Elem = ("switch-priority", {"name": str(number)})
        path = server.qos_interface(name, ("state", {}), at, ("counters", {}))
        pauses = {"in-pause-pkts": priority.rx_pause, "out-pause-pkts": priority.tx_pause}
        yield from server.leaves(path, pauses)

"""What EOS tells over gNMI, by OpenConfig's models: interfaces and queues. Pauses by priority are in none."""

from collections.abc import Iterator

from netkit.lab.agents.gnmi import openconfig
from netkit.lab.personalities.eos import qos
from netkit.lab.personalities.eos.machine import Machine
from netkit.lab.personality import Elem, Told
from netkit.lab.reading import PortReading


def told(machine: Machine, path: tuple[Elem, ...]) -> Iterator[Told]:
    """Yield all leaves below a path; LookupError when no model has it."""
    everything = (one for reading in machine.node.ports() for one in _of_port(machine, reading))
    yield from openconfig.below(everything, path)


def _of_port(machine: Machine, reading: PortReading) -> Iterator[Told]:
    name, section = reading.name, machine.running.section("interface", reading.name)
    discards = reading.traffic.tx_dropped + sum(queue.dropped_packets for queue in reading.queues)
    counters = {"out-discards": discards, "carrier-transitions": reading.carrier_changes}
    state = openconfig.state(reading, section.word("description"))
    yield from openconfig.leaves(openconfig.interface(name, "state"), state)
    told = {**openconfig.counters(reading), **counters}
    yield from openconfig.leaves(openconfig.interface(name, "state", "counters"), told)
    profile = qos.profile_of(machine.running, section)
    for number, queue in enumerate(reading.queues):
        has_marks = profile.queue(number).is_ecn_counted and profile.queue(number).ecn is not None
        marks = {"ecn-marked-pkts": queue.ecn_marked_packets} if has_marks else {}
        counted = {**openconfig.queue_counters(queue), "dropped-pkts": queue.dropped_packets, **marks}
        yield from openconfig.leaves(openconfig.queue(name, number), counted)

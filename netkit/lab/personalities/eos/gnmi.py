"""What EOS tells over gNMI, by OpenConfig's models: its interfaces and queues. Pauses by priority are in none."""

from collections.abc import Iterator, Mapping

from netkit.lab.personalities.eos import qos
from netkit.lab.personalities.eos.machine import Machine
from netkit.lab.personality import Elem, Told
from netkit.lab.reading import PortReading, QueueReading

Leaves = Mapping[str, int | str]


def told(machine: Machine, path: tuple[Elem, ...]) -> Iterator[Told]:
    """Yield all leaves below a path; LookupError when no model has it."""
    readings = machine.node.ports()
    found = [one for reading in readings for one in _of_port(machine, reading) if _is_below(one[0], path)]
    if not found:
        raise LookupError("/".join(name for name, _ in path))
    yield from found


def _of_port(machine: Machine, reading: PortReading) -> Iterator[Told]:
    interface: tuple[Elem, ...] = (("interfaces", {}), ("interface", {"name": reading.name}), ("state", {}))
    section = machine.running.section("interface", reading.name)
    yield from _leaves(interface, _state(reading, section.word("description")))
    yield from _leaves((*interface, ("counters", {})), _counters(reading))
    profile = qos.profile_of(machine.running, section)
    for number, queue in enumerate(reading.queues):
        has_marks = profile.queue(number).is_ecn_counted and profile.queue(number).ecn is not None
        yield from _leaves(_queue_path(reading.name, number), _queue(queue, has_marks=has_marks))


def _queue_path(port: str, number: int) -> tuple[Elem, ...]:
    interface = ("interface", {"interface-id": port})
    queue = ("queue", {"name": str(number)})
    return (("qos", {}), ("interfaces", {}), interface, ("output", {}), ("queues", {}), queue, ("state", {}))


def _leaves(path: tuple[Elem, ...], leaves: Leaves) -> Iterator[Told]:
    yield from (((*path, (name, {})), value) for name, value in leaves.items())


def _state(reading: PortReading, description: str) -> Leaves:
    return {
        "oper-status": "UP" if reading.is_up else "DOWN",
        "admin-status": "UP" if reading.is_enabled else "DOWN",
        "mtu": reading.mtu_bytes,
        "description": description,
    }


def _counters(reading: PortReading) -> Leaves:
    """Return the counters of a port. The kernel of the lab does not tell multicast from unicast."""
    traffic = reading.traffic
    return {
        "in-octets": traffic.rx_bytes,
        "in-unicast-pkts": traffic.rx_packets,
        "in-multicast-pkts": 0,
        "in-broadcast-pkts": 0,
        "in-discards": traffic.rx_dropped,
        "in-errors": traffic.rx_errors,
        "out-octets": traffic.tx_bytes,
        "out-unicast-pkts": traffic.tx_packets,
        "out-multicast-pkts": 0,
        "out-broadcast-pkts": 0,
        "out-discards": traffic.tx_dropped + sum(queue.dropped_packets for queue in reading.queues),
        "out-errors": traffic.tx_errors,
        "carrier-transitions": reading.carrier_changes,
    }


def _queue(queue: QueueReading, *, has_marks: bool) -> Leaves:
    counts = {
        "transmit-pkts": queue.tx_packets,
        "transmit-octets": queue.tx_bytes,
        "dropped-pkts": queue.dropped_packets,
    }
    return {**counts, "ecn-marked-pkts": queue.ecn_marked_packets} if has_marks else counts


def _is_below(leaf: tuple[Elem, ...], path: tuple[Elem, ...]) -> bool:
    return len(path) <= len(leaf) and all(
        name == wanted and all(value in {"*", keys.get(key)} for key, value in wanted_keys.items())
        for (name, keys), (wanted, wanted_keys) in zip(leaf, path, strict=False)
    )

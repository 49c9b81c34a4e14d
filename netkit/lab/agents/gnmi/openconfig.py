"""What gNMI servers tell by OpenConfig's models of a port and its queues, whatever the NOS."""

from collections.abc import Iterable, Iterator, Mapping

from netkit.lab.personality import Elem, Told
from netkit.lab.reading import PortReading, QueueReading

Leaves = Mapping[str, int | str]
Steps = tuple[Elem, ...]


def interface(port: str, *names: str) -> Steps:
    """Return a path below a port."""
    return (("interfaces", {}), ("interface", {"name": port}), *((name, {}) for name in names))


def qos_interface(port: str, *more: Elem) -> Steps:
    """Return a path below what QoS knows of a port."""
    return (("qos", {}), ("interfaces", {}), ("interface", {"interface-id": port}), *more)


def queue(port: str, number: int) -> Steps:
    """Return where a queue of a port is."""
    return qos_interface(port, ("output", {}), ("queues", {}), ("queue", {"name": str(number)}), ("state", {}))


def leaves(path: Steps, told: Leaves) -> Iterator[Told]:
    """Yield leaves below a path."""
    yield from (((*path, (name, {})), value) for name, value in told.items())


def state(reading: PortReading, description: str) -> Leaves:
    """Return how a port is."""
    return {
        "oper-status": "UP" if reading.is_up else "DOWN",
        "admin-status": "UP" if reading.is_enabled else "DOWN",
        "mtu": reading.mtu_bytes,
        "description": description,
    }


def counters(reading: PortReading) -> Leaves:
    """Return what a port counts. The kernel of the lab does not tell multicast from unicast."""
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
        "out-errors": traffic.tx_errors,
    }


def queue_counters(found: QueueReading) -> Leaves:
    """Return what a queue has sent."""
    return {"transmit-pkts": found.tx_packets, "transmit-octets": found.tx_bytes}


def below(told: Iterable[Told], path: Steps) -> Iterator[Told]:
    """Yield what is told below a path; LookupError when there is nothing."""
    found = [one for one in told if _is_below(one[0], path)]
    if not found:
        raise LookupError("/".join(name for name, _ in path))
    yield from found


def _is_below(leaf: Steps, path: Steps) -> bool:
    return len(path) <= len(leaf) and all(
        name == wanted and all(value in {"*", keys.get(key)} for key, value in wanted_keys.items())
        for (name, keys), (wanted, wanted_keys) in zip(leaf, path, strict=False)
    )

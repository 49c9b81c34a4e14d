"""LLDP-MIB: what the device's own lldpd announces and has heard."""

from collections import Counter
from collections.abc import Iterator

from netkit.lab.agents.lldp.neighbor import Chassis, Neighbor
from netkit.lab.agents.snmp.row import Row, integer, mac_octets, octets, string
from netkit.lab.agents.snmp.scene import Scene, Surroundings

LLDP = (1, 0, 8802, 1, 1, 2, 1)
LOCAL = (*LLDP, 3)
LOCAL_PORT = (*LOCAL, 7, 1)
REMOTE = (*LLDP, 4, 1, 1)
CHASSIS_KINDS = {"ifalias": 2, "mac": 4, "ip": 5, "ifname": 6, "local": 7}
PORT_KINDS = {"ifalias": 1, "mac": 3, "ip": 4, "ifname": 5, "local": 7}
NO_TIME_FILTER = 0


def rows(shown: Scene, around: Surroundings) -> Iterator[Row]:
    """Yield the local system, its ports, and the remote systems by local port, which is numbered as in IF-MIB."""
    yield from _chassis(around.chassis)
    by_kernel_name = {kernel: port for port, kernel in around.kernel_names.items()}
    indexes = {}
    for interface in shown.interfaces:
        indexes[interface.reading.name] = interface.index
        is_name = interface.label == around.kernel_names.get(interface.reading.name)
        kind = PORT_KINDS["ifname" if is_name else "local"]
        yield integer((*LOCAL_PORT, 2, interface.index), kind)
        yield string((*LOCAL_PORT, 3, interface.index), interface.label)
        yield string((*LOCAL_PORT, 4, interface.index), interface.state.description or interface.reading.name)
    seen: Counter[int] = Counter()
    for neighbor in around.neighbors:
        index = indexes.get(by_kernel_name.get(neighbor.interface, ""))
        if index is not None:
            seen[index] += 1
            yield from _remote(index, seen[index], neighbor)


def _chassis(chassis: Chassis) -> Iterator[Row]:
    if not chassis.identifier:
        return
    yield integer((*LOCAL, 1, 0), CHASSIS_KINDS.get(chassis.kind, CHASSIS_KINDS["local"]))
    yield octets((*LOCAL, 2, 0), _identifier(chassis.kind, chassis.identifier))
    yield string((*LOCAL, 3, 0), chassis.name)
    yield string((*LOCAL, 4, 0), chassis.description)


def _remote(index: int, number: int, neighbor: Neighbor) -> Iterator[Row]:
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

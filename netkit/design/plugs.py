"""What is plugged in where: the cage at each end of a link, its module, the cables that join cages."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Link
from netkit.hardware import Media, module_for

End = tuple[str, str]
"""A device and its port."""


@dataclass(frozen=True, slots=True)
class Socket:
    """A cage of a device, with the number of ports its module serves."""

    device: str
    cage: str
    ports: int
    form: str


@dataclass(frozen=True, slots=True)
class CableAssembly:
    """One cable with fixed ends and all its links, or links for which no such cable fits."""

    links: tuple[Link, ...]
    trunk: Socket | None
    """The end that carries all of them; None where no cable fits."""
    ends: tuple[Socket, ...]


def sockets(fabric: Fabric) -> dict[End, Socket]:
    """The cage of every port."""
    found: dict[End, Socket] = {}
    for switch in fabric.switches:
        for port in switch.ports:
            split = port.profile.split
            found[(switch.name, port.name)] = Socket(switch.name, str(port.cage), split.ports, switch.model.cage_form)
        for beside in switch.access.ports if switch.access else ():
            form, ports = switch.model.cage_form, beside.split.ports
            found[(switch.name, beside.name)] = Socket(switch.name, str(beside.cage), ports, form)
            if beside.kind == "host":
                found[(beside.peer, beside.peer_port)] = Socket(beside.peer, beside.peer_port, 1, "NIC")
    for host in fabric.hosts:
        known = {nic.pci: nic.cage for nic in host.model.rails}
        ports = host.model.ports_per_cage or 1
        for position, nic in enumerate(host.nics):
            cage = known.get(nic.pci) or str(position // ports)
            found[(host.name, nic.interface)] = Socket(host.name, cage, ports, host.model.cage_form)
    return found


def module_at(socket: Socket, name: str, media: Mapping[str, Media]) -> str | None:
    """The optical module for a cage; "" if the cable brings its own end, None if none fits."""
    if media[name].kind != "optical":
        return ""
    module = module_for(media, name, socket.ports, socket.form)
    return module.name if module else None


def runs(links: Iterable[Link], at: Mapping[End, Socket], ports: int) -> Iterator[CableAssembly]:
    """Yield the fixed-end cables for links of one kind: links that share a cage share a cable."""
    above: dict[Socket, Socket] = {}

    def first(socket: Socket) -> Socket:
        while (higher := above.get(socket, socket)) != socket:
            above[socket] = above.get(higher, higher)
            socket = higher
        return socket

    links = tuple(links)
    for link in links:
        one, other = first(at[(link.device, link.port)]), first(at[(link.peer, link.peer_port)])
        above[one] = other
    together: dict[Socket, list[Link]] = defaultdict(list)
    for link in links:
        together[first(at[(link.device, link.port)])].append(link)
    for group in together.values():
        near = tuple(dict.fromkeys(at[(link.device, link.port)] for link in group))
        far = tuple(dict.fromkeys(at[(link.peer, link.peer_port)] for link in group))
        yield next(
            (
                CableAssembly(tuple(group), trunk, ends)
                for (trunk, *more), ends in ((far, near), (near, far))
                if not more
                and len(group) <= ports == trunk.ports
                and (len(ends) == 1 or all(end.ports == 1 for end in ends))
            ),
            CableAssembly(tuple(group), None, ()),
        )

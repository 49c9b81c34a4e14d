"""The ports that are watched, as the design knows them."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from netkit.design import Fabric, Host, Switch

Kind = Literal["host", "fabric", "nic"]


class Wire(NamedTuple):
    """A port, and what it is cabled to."""

    device: str
    port: str
    kind: Kind
    group: str
    """The rail it belongs to, or the tier where rails meet."""
    speed_gbps: float
    peer: str
    peer_port: str

    @property
    def label(self) -> str:
        """Return all that a filter looks for."""
        return f"{self.device}:{self.port} {self.peer}:{self.peer_port} {self.group} {self.kind}".lower()


def wires(fabric: Fabric, devices: Iterable[Switch | Host]) -> tuple[Wire, ...]:
    """Return the cabled ports of some devices."""
    speeds = {(link.device, link.port): link.speed_gbps for link in fabric.links()}
    return tuple(
        wire
        for device in devices
        for wire in (_of_switch(device) if isinstance(device, Switch) else _of_host(device, speeds))
    )


def _of_switch(switch: Switch) -> Iterator[Wire]:
    group = f"rail {switch.rail}" if switch.role == "leaf" else f"{switch.role}s"
    for port in switch.ports:
        kind: Kind = "host" if port.role == "host" else "fabric"
        yield Wire(switch.name, port.name, kind, group, port.speed_gbps, port.peer, port.peer_port)


def _of_host(host: Host, speeds: dict[tuple[str, str], int]) -> Iterator[Wire]:
    for nic in host.nics:
        speed_gbps = speeds.get((host.name, nic.interface), 0)
        yield Wire(host.name, nic.interface, "nic", f"rail {nic.rail}", speed_gbps, nic.leaf, nic.leaf_port)

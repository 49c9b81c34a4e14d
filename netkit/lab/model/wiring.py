"""The cables as the model sees them: each is two ways for data, and pauses travel against the data."""

from collections.abc import Mapping
from dataclasses import dataclass

from netkit.design.fabric import Cable, Fabric


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable, by the names of the design: a switch port or a host NIC."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of a cable. The receiver of the data is who sends pauses on it."""

    index: int
    sender: End
    receiver: End
    speed_gbps: int
    cable: Cable

    @property
    def opposite(self) -> int:
        """Return the index of the other direction of the same cable."""
        return self.index ^ 1


class Wiring:
    """All ways of a fabric, and the one each end sends on."""

    def __init__(self, fabric: Fabric) -> None:
        ways: list[Way] = []
        for link in fabric.links():
            left, right = End(link.device, link.port), End(link.peer, link.peer_port)
            ways.append(Way(len(ways), left, right, link.speed_gbps, link.cable))
            ways.append(Way(len(ways), right, left, link.speed_gbps, link.cable))
        self.ways = tuple(ways)
        self.way_out: Mapping[End, Way] = {way.sender: way for way in ways}
        self.ends: Mapping[str, tuple[End, ...]] = {
            **{host.name: tuple(End(host.name, nic.interface) for nic in host.nics) for host in fabric.hosts},
            **{switch.name: tuple(End(switch.name, port.name) for port in switch.ports) for switch in fabric.switches},
        }

    def way_in(self, end: End) -> Way:
        """Return the way an end receives data on."""
        return self.ways[self.way_out[end].opposite]

    def peer(self, end: End) -> End:
        """Return the other end of a cable."""
        return self.way_out[end].receiver

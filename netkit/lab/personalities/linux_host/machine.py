"""A host's NICs as its tools find them: by interface, RDMA device or PCI address."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from netkit.design.fabric import Host, Nic
from netkit.lab.node import Node
from netkit.lab.personalities.linux_host.firmware import Firmware
from netkit.lab.personalities.linux_host.nic import NicState
from netkit.lab.personality import Call
from netkit.lab.reading import NicReading


@dataclass(slots=True)
class Card:
    """One rail NIC, and how its tools left it."""

    nic: Nic
    state: NicState = field(default_factory=NicState)
    relaxed_ordering: bool = True
    max_read_request_bytes: int = 4096
    has_access_control: bool = False

    def power_up(self) -> None:
        """Forget what the tools changed."""
        self.state, self.relaxed_ordering, self.max_read_request_bytes = NicState(), True, 4096

    @property
    def interface(self) -> str:
        """Return the name of the network interface."""
        return self.nic.interface

    @property
    def rdma(self) -> str:
        """Return the name of the RDMA device."""
        return self.nic.rdma

    @property
    def pci(self) -> str:
        """Return the PCI address, with its domain."""
        return self.nic.pci


class Machine:
    """What the tools of a host act on."""

    def __init__(self, node: Node) -> None:
        if not isinstance(node.device, Host):
            raise TypeError(f"{node.name} is not a host")
        self.node = node
        self.host = node.device
        self.cards: Mapping[str, Card] = {nic.interface: Card(nic) for nic in self.host.nics}
        self.firmware = Firmware(node.saved)

    def power_up(self) -> None:
        """Begin with what the firmware keeps; everything else is forgotten."""
        self.firmware.power_up()
        for card in self.cards.values():
            card.power_up()

    def find(self, text: str) -> Card | None:
        """Return the NIC a tool means by an interface, an RDMA device, a PCI address or an mst device."""
        name = text.removesuffix("/1")
        for card in self.cards.values():
            if name in {card.interface, card.rdma, card.pci, card.pci.removeprefix("0000:")}:
                return card
        return None

    def reading(self, card: Card) -> NicReading:
        """Return what the hardware of a NIC shows."""
        (reading,) = self.node.nics(card.interface)
        return reading


Tool = Callable[[Machine, Call], int]

"""The plan of a lab for a fabric: its nodes with loopback addresses and kernel interface names, and its cables."""

from collections.abc import Mapping
from dataclasses import dataclass

from netkit.design.fabric import ExternalPort, Fabric, Host, Switch

HOSTS_PER_BLOCK = 250
PERSONALITY_OF_HOSTS = "linux-host"
OUTSIDE_INTERFACE = "fabric0"


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """The lab's plan for one device."""

    device: Switch | Host
    personality: str
    address: str
    kernel_names: Mapping[str, str]
    """NOS port name → kernel interface name, which may be neither long nor contain slashes."""

    @property
    def name(self) -> str:
        return self.device.name


@dataclass(frozen=True, slots=True)
class VethPair:
    """A cable as a veth pair."""

    left: str
    left_interface: str
    right: str
    right_interface: str


@dataclass(frozen=True, slots=True)
class OutsidePeer:
    """A router outside the fabric, and the switch it peers with."""

    switch: Switch
    port: ExternalPort

    @property
    def name(self) -> str:
        return self.port.peer_name

    @property
    def link(self) -> VethPair:
        return VethPair(self.switch.name, kernel_name(self.port.name), self.name, OUTSIDE_INTERFACE)


@dataclass(frozen=True, slots=True)
class LabLayout:
    """The nodes and cables of a lab."""

    fabric: Fabric
    nodes: Mapping[str, NodeSpec]
    links: tuple[VethPair, ...]
    outside: tuple[OutsidePeer, ...] = ()


def lay_out(fabric: Fabric, block: str) -> LabLayout:
    """Plan the lab of a fabric on a loopback block such as `127.64`."""
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    nodes = {}
    for index, device in enumerate(devices):
        if isinstance(device, Switch):
            personality = device.platform
            names = (*(port.name for port in device.ports), *(port.name for port in device.external))
            kernel_names = {name: kernel_name(name) for name in names}
        else:
            personality = PERSONALITY_OF_HOSTS
            kernel_names = {nic.interface: nic.interface for nic in device.nics}
        nodes[device.name] = NodeSpec(device, personality, address(block, index), kernel_names)
    links = (
        VethPair(
            link.device,
            nodes[link.device].kernel_names[link.port],
            link.peer,
            nodes[link.peer].kernel_names[link.peer_port],
        )
        for link in fabric.links()
    )
    outside = tuple(OutsidePeer(switch, port) for switch in fabric.switches for port in switch.external)
    return LabLayout(fabric, nodes, (*links, *(peer.link for peer in outside)), outside)


def address(block: str, index: int) -> str:
    """Return the loopback address of the nth device."""
    return f"{block}.{index // HOSTS_PER_BLOCK}.{index % HOSTS_PER_BLOCK + 1}"


def kernel_name(port: str) -> str:
    """Return a port's kernel interface name. As on EOS, Ethernet1/1 becomes et1_1."""
    if "/" not in port:
        return port
    return "et" + port.removeprefix("Ethernet").replace("/", "_")

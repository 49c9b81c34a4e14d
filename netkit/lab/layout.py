"""The plan of a lab for a fabric: its nodes with loopback addresses and kernel interface names, and its cables."""

from collections.abc import Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Switch

HOSTS_PER_BLOCK = 250
PERSONALITY_OF_HOSTS = "linux-host"


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
class LabLayout:
    """The nodes and cables of a lab."""

    fabric: Fabric
    nodes: Mapping[str, NodeSpec]
    links: tuple[VethPair, ...]


def lay_out(fabric: Fabric, block: str) -> LabLayout:
    """Plan the lab of a fabric on a loopback block such as `127.64`."""
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    nodes = {}
    for index, device in enumerate(devices):
        if isinstance(device, Switch):
            personality = device.platform
            kernel_names = {port.name: kernel_name(port.name) for port in device.ports}
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
    return LabLayout(fabric, nodes, tuple(links))


def address(block: str, index: int) -> str:
    """Return the loopback address of the nth device."""
    return f"{block}.{index // HOSTS_PER_BLOCK}.{index % HOSTS_PER_BLOCK + 1}"


def kernel_name(port: str) -> str:
    """Return a port's kernel interface name. As on EOS, Ethernet1/1 becomes et1_1."""
    if "/" not in port:
        return port
    return "et" + port.removeprefix("Ethernet").replace("/", "_")

"""From a fabric to the lab that stands for it: who runs, under which kernel names, at which loopback addresses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Fabric, Host, Switch

HOSTS_PER_BLOCK = 250
PERSONALITY_OF_HOSTS = "linux-host"


@dataclass(frozen=True, slots=True)
class Seat:
    """The lab's plan for one device."""

    device: Switch | Host
    personality: str
    address: str
    kernel_names: Mapping[str, str]
    """NOS port name → kernel interface name; a kernel knows neither slashes nor long names."""

    @property
    def name(self) -> str:
        return self.device.name


@dataclass(frozen=True, slots=True)
class Strand:
    """A cable as a veth pair."""

    left: str
    left_interface: str
    right: str
    right_interface: str


@dataclass(frozen=True, slots=True)
class LabLayout:
    """The nodes and cables of a lab."""

    fabric: Fabric
    seats: Mapping[str, Seat]
    strands: tuple[Strand, ...]


def lay_out(fabric: Fabric, block: str) -> LabLayout:
    """Plan the lab of a fabric on a loopback block such as `127.64`."""
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    seats = {
        device.name: Seat(device, _personality(device), address(block, index), _kernel_names(device))
        for index, device in enumerate(devices)
    }
    return LabLayout(fabric, seats, tuple(_strands(fabric, seats)))


def address(block: str, index: int) -> str:
    """Return the loopback address of the nth device."""
    return f"{block}.{index // HOSTS_PER_BLOCK}.{index % HOSTS_PER_BLOCK + 1}"


def kernel_name(port: str) -> str:
    """Return a port's kernel interface name. As on EOS, Ethernet1/1 becomes et1_1."""
    if "/" not in port:
        return port
    return "et" + port.removeprefix("Ethernet").replace("/", "_")


def _personality(device: Switch | Host) -> str:
    return device.platform if isinstance(device, Switch) else PERSONALITY_OF_HOSTS


def _kernel_names(device: Switch | Host) -> Mapping[str, str]:
    if isinstance(device, Host):
        return {nic.interface: nic.interface for nic in device.nics}
    return {port.name: kernel_name(port.name) for port in device.ports}


def _strands(fabric: Fabric, seats: Mapping[str, Seat]) -> Iterator[Strand]:
    for link in fabric.links():
        yield Strand(
            link.device,
            seats[link.device].kernel_names[link.port],
            link.peer,
            seats[link.peer].kernel_names[link.peer_port],
        )

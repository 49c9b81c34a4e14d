"""The plan of a lab for a fabric: its nodes with loopback addresses and kernel interface names, and its cables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from netkit.design.fabric import Access, ExternalPort, Fabric, Host, Switch
from netkit.lab.netlink import PEER_INTERFACE

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
    beside: tuple[str, ...] = ()
    """Kernel interfaces that are not ports: VLANs between a pair of switches."""

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
class ServerNode:
    """A server that netkit does not configure, with its cables."""

    name: str
    links: tuple[VethPair, ...]


@dataclass(frozen=True, slots=True)
class LabLayout:
    """The nodes and cables of a lab."""

    fabric: Fabric
    nodes: Mapping[str, NodeSpec]
    links: tuple[VethPair, ...]
    outside: tuple[OutsidePeer, ...] = ()
    servers: tuple[ServerNode, ...] = ()


def lay_out(fabric: Fabric, block: str) -> LabLayout:
    """Plan the lab of a fabric on a loopback block such as `127.64`."""
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    nodes = {}
    for index, device in enumerate(devices):
        if isinstance(device, Switch):
            personality = device.platform
            names = [port.name for port in device.ports] + [port.name for port in device.external]
            names += [port.name for port in device.access.ports] if device.access else []
            kernel_names = {name: kernel_name(name) for name in names}
            beside = tuple(_vlans_between(device.access)) if device.access else ()
        else:
            personality = PERSONALITY_OF_HOSTS
            kernel_names, beside = {name: name for name in device.cabled}, ()
        nodes[device.name] = NodeSpec(device, personality, address(block, index), kernel_names, beside)
    links = (
        VethPair(
            link.device,
            nodes[link.device].kernel_names[link.port],
            link.peer,
            nodes[link.peer].kernel_names[link.peer_port],
        )
        for link in fabric.cables()
    )
    outside = tuple(OutsidePeer(switch, port) for switch in fabric.switches for port in switch.external)
    servers = tuple(_servers(fabric))
    attached = (link for server in servers for link in server.links)
    return LabLayout(
        fabric, nodes, (*links, *_between_pairs(fabric), *(peer.link for peer in outside), *attached), outside, servers
    )


def _vlans_between(access: Access) -> Iterator[str]:
    """Yield an interface for each VLAN of each link between a pair: the kernel of a lab may lack VLAN support."""
    for port in access.peer_links:
        yield from (f"{kernel_name(port.name)}.{number}" for number in port.tagged)
    if access.pair:
        yield PEER_INTERFACE


def _between_pairs(fabric: Fabric) -> Iterator[VethPair]:
    """Yield the links that carry the VLANs between pairs."""
    for switch in fabric.switches:
        if switch.access and switch.access.pair and switch.access.pair.is_first:
            for name in _vlans_between(switch.access):
                yield VethPair(switch.name, name, switch.access.pair.partner, name)


def _servers(fabric: Fabric) -> Iterator[ServerNode]:
    """Yield the other servers attached to networks beside the rails, each with all its cables."""
    found: dict[str, list[VethPair]] = {}
    for switch in fabric.switches:
        for port in switch.access.ports if switch.access else ():
            if port.kind == "server":
                links = found.setdefault(port.peer, [])
                links.append(VethPair(switch.name, kernel_name(port.name), port.peer, f"nic{len(links)}"))
    yield from (ServerNode(name, tuple(links)) for name, links in found.items())


def address(block: str, index: int) -> str:
    """The loopback address of the nth device."""
    return f"{block}.{index // HOSTS_PER_BLOCK}.{index % HOSTS_PER_BLOCK + 1}"


def kernel_name(port: str) -> str:
    """A port's kernel interface name. As on EOS, Ethernet1/1 becomes et1_1."""
    if "/" not in port:
        return port
    return "et" + port.removeprefix("Ethernet").replace("/", "_")

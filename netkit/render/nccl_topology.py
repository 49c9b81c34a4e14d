"""NCCL's topology file: which GPU and which NIC are behind the same PCIe switch, for machines that do not show it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from netkit.design import Host, Nic
from netkit.hardware import HostModel
from netkit.platforms.linux.view_nic import nearest_gpu

LINK_SPEEDS = {
    1: "2.5 GT/s PCIe",
    2: "5.0 GT/s PCIe",
    3: "8.0 GT/s PCIe",
    4: "16.0 GT/s PCIe",
    5: "32.0 GT/s PCIe",
    6: "64.0 GT/s PCIe",
}
"""By generation, in the words that NCCL knows."""
MOST_SWITCHES = 31
"""Device numbers of a bus, without 0."""


@dataclass(frozen=True, slots=True)
class PcieSwitch:
    """A switch with a GPU and the NICs next to it."""

    address: str
    """Not a real one: virtual machines have none, and NCCL only needs one that nothing else has."""
    gpu: str
    nics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node with its switches."""

    number: int
    switches: tuple[PcieSwitch, ...]


@dataclass(frozen=True, slots=True)
class NcclTopology:
    """Values for the template."""

    model: str
    link_speed: str
    nodes: tuple[NumaNode, ...]


def lacking(host: Host) -> str:
    """Why there is no topology of a host; empty if there is one."""
    model = host.model
    if not model.gpu_map:
        return f"the host model {model.name} has no gpu_map"
    if model.pcie_generation not in LINK_SPEEDS:
        return f"the host model {model.name} has no pcie_generation that NCCL knows"
    if len(model.gpu_map) > MOST_SWITCHES:
        return f"the host model {model.name} has more than {MOST_SWITCHES} GPUs"
    strange = [nic.interface for nic in host.nics if nearest_gpu(host, nic.rail) >= len(model.gpu_map)]
    return f"the GPU next to {strange[0]} is not in the gpu_map of {model.name}" if strange else ""


def nccl_topology(hosts: Sequence[Host]) -> NcclTopology | None:
    """Build the topology of hosts of one model; those that lack a NIC ignore it."""
    if any(map(lacking, hosts)):
        return None
    model, nics = hosts[0].model, {nic.rail: nic for host in hosts for nic in host.nics}
    switches = tuple(_switches(model, [(nearest_gpu(hosts[0], rail), nics[rail]) for rail in sorted(nics)]))
    numbers = sorted({gpu.numa for gpu in model.gpu_map})
    return NcclTopology(
        model.name,
        LINK_SPEEDS[model.pcie_generation or 0],
        tuple(
            NumaNode(number, tuple(one for one, gpu in zip(switches, model.gpu_map, strict=True) if gpu.numa == number))
            for number in numbers
        ),
    )


def _switches(model: HostModel, nics: Sequence[tuple[int, Nic]]) -> Iterator[PcieSwitch]:
    for number, gpu in enumerate(model.gpu_map):
        own = tuple(nic.pci for nearest, nic in nics if nearest == number)
        yield PcieSwitch(f"ffff:ff:{number + 1:02x}.0", gpu.pci, own)

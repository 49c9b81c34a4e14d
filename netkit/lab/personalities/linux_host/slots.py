"""How the PCI devices of a host hang together: behind each rail a PCIe switch, with the NIC and its GPU below it.

Also what tells apart machines, drivers and the way memory is reached. Addresses are those of a DGX, counted from the
NIC's bus: root port, switch, a port of the switch for the NIC and one for the GPU three buses on.
"""

from collections.abc import Iterator

from netkit.design.fabric import Host

PRODUCTS = {"dgx-h100": "DGXH100"}
BRIDGE_CLASS, GPU_CLASS = "0x060400", "0x030200"
VERSIONS = {"mlx5_core": "24.10-1.1.4", "nvidia": "550.90.07", "nvidia_peermem": "550.90.07"}
Entries = Iterator[tuple[str, str]]


def bus(pci: str, steps: int) -> str:
    """Return a bus so many steps from the one of an address."""
    return f"{(int(pci.split(':')[1], 16) + steps) % 256:02x}"


def switch(pci: str) -> str:
    """Return the upper port of the switch that a NIC is behind."""
    return f"0000:{bus(pci, -2)}:00.0"


def nic_bridge(pci: str) -> str:
    """Return the port above a NIC."""
    return f"0000:{bus(pci, -1)}:00.0"


def gpu_bridge(pci: str) -> str:
    """Return the port above the GPU beside a NIC."""
    return f"0000:{bus(pci, -1)}:02.0"


def gpu(pci: str) -> str:
    """Return the GPU beside a NIC."""
    return f"0000:{bus(pci, 3)}:00.0"


def folder(bridge: str, above: str) -> str:
    """Return where a port of a switch stands among the devices."""
    root = bus(above, -1)
    return f"devices/pci0000:{root}/0000:{root}:01.0/{above}/{bridge}"


def files(host: Host) -> Entries:
    """Yield the files of what is no NIC."""
    yield "class/dmi/id/product_name", PRODUCTS.get(host.model.name, host.model.name)
    yield "class/dmi/id/product_serial", f"166{host.number:010d}"
    yield from ((f"module/{name}/version", version) for name, version in VERSIONS.items())
    for nic in host.nics:
        above = switch(nic.pci)
        yield f"{folder(nic_bridge(nic.pci), above)}/class", BRIDGE_CLASS
        yield f"kernel/iommu_groups/{group(nic.pci)}/type", "identity"
    for pci in _with_gpu(host):
        place = f"{folder(gpu_bridge(pci), switch(pci))}/{gpu(pci)}"
        yield f"{place}/class", GPU_CLASS
        yield f"{place}/vendor", "0x10de"
        yield f"{place}/device", "0x2330"


def links(host: Host) -> Entries:
    """Yield the links to what is no NIC."""
    for nic in host.nics:
        bridge, above = nic_bridge(nic.pci), switch(nic.pci)
        yield f"bus/pci/devices/{bridge}", f"../../../{folder(bridge, above)}"
        own = f"{folder(bridge, above)}/{nic.pci}"
        yield f"{own}/iommu_group", f"{'../' * (own.count('/') + 1)}kernel/iommu_groups/{group(nic.pci)}"
    for pci in _with_gpu(host):
        yield f"bus/pci/devices/{gpu(pci)}", f"../../../{folder(gpu_bridge(pci), switch(pci))}/{gpu(pci)}"


def group(pci: str) -> int:
    """Return the number of the group an IOMMU would put a NIC into."""
    return int(pci.split(":")[1], 16)


def _with_gpu(host: Host) -> Iterator[str]:
    """Yield the NICs that have a GPU beside them."""
    yield from (nic.pci for number, nic in enumerate(host.nics) if number < host.model.gpus)

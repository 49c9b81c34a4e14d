"""The host itself: kernel settings, addresses, PCI topology, and what is installed."""

import re
from collections.abc import Mapping, Sequence

from netkit.facts import Absent
from netkit.facts.host import HostFacts
from netkit.facts.routing import DefaultRoute
from netkit.platforms.linux.facts import pci
from netkit.platforms.linux.facts.reading import plain
from netkit.platforms.linux.facts.tree import CONF, SYSCTLS, Card, Tree, settings

TRANSLATING = {"DMA", "DMA-FQ"}
INSTALLED = {
    "ofed": re.compile(r"^(?:MLNX_OFED_LINUX-|OFED-internal-|DOCA-?)?([0-9][\w.-]*):?\s*$", re.MULTILINE),
    "mft": re.compile(r"^\w+, (?:mft|mstflint) ([0-9][\w.-]*)", re.MULTILINE),
    "libnccl": re.compile(r"libnccl\.so\.([0-9.]+)\s*$", re.MULTILINE),
}
"""Package → its version, in what the programs say that were asked for it."""
MODULES = ("mlx5_core", "nvidia", "nvidia_peermem")


def host(
    tree: Tree,
    cards: Sequence[Card],
    addresses: Mapping[str, tuple[str, ...]],
    default_routes: tuple[DefaultRoute, ...] | None,
    devices: Mapping[str, pci.Device],
    topology: pci.Topology,
    versions: str,
) -> HostFacts | Absent:
    """Return what the host tells of itself."""
    if not tree.files:
        return Absent("its files below /proc and /sys could not be read")
    concerned = (*topology.gpus, *(card.pci for card in cards))
    return HostFacts(
        sysctls=dict(_sysctls(tree)),
        addresses=addresses,
        default_routes=default_routes,
        bridges_with_acs=pci.bridges_with_access_control(devices, topology, concerned),
        is_iommu_on=_is_iommu_on(tree, cards),
        gpu_pcis=topology.gpus,
        nearest_nic=pci.nearest(topology, cards),
        tools=_tools(tree, versions),
        nccl=settings(tree.text("/etc/nccl.conf")),
    )


def _sysctls(tree: Tree) -> dict[str, str]:
    found = {}
    for path, text in tree.below(CONF):
        name, _, key = path.rpartition("/")
        if key in SYSCTLS:
            found[f"net.ipv4.conf.{name}.{key}"] = text
    ecn = tree.text("/proc/sys/net/ipv4/tcp_ecn")
    return {**found, **({"net.ipv4.tcp_ecn": ecn} if ecn else {})}


def _is_iommu_on(tree: Tree, cards: Sequence[Card]) -> bool | None:
    """Return whether an IOMMU translates what the NICs say; passing through, as most GPU hosts have it, is off."""
    told = {tree.text(f"{card.folder}/iommu_group/type") for card in cards} - {""}
    return bool(told & TRANSLATING) if told else None


def _tools(tree: Tree, versions: str) -> dict[str, str]:
    found = {name: tree.text(f"/sys/module/{name}/version") for name in MODULES}
    if not found["nvidia_peermem"] and tree.text("/sys/module/nvidia_peermem/initstate") == "live":
        found["nvidia_peermem"] = "loaded"
    matches = {name: pattern.search(plain(versions)) for name, pattern in INSTALLED.items()}
    found |= {name: match[1] for name, match in matches.items() if match}
    return {name: version for name, version in found.items() if version}

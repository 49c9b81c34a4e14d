"""Parsers of a host's hardware and settings: PCI topology, NICs, GPUs, firmware and kernel."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from itertools import takewhile

from netkit.facts import Absent
from netkit.facts.device import System
from netkit.facts.host import DefaultRoute, HostFacts, NicFacts
from netkit.platforms.linux.facts.reading import (
    CONF,
    CONF_V6,
    PROBE_INTERVAL,
    RECENT,
    SLOT,
    SYSCTLS,
    Card,
    Tree,
    number,
    pairs,
    plain,
    settings,
    whole,
)

GPUS, END = "#@ gpus", "#= end"
HEAD = re.compile(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (.*)")
READ_REQUEST = re.compile(r"MaxReadReq ([0-9]{2,5}) bytes")
ORDERING = re.compile(r"RlxdOrd([+-])")
PART = re.compile(r"\[PN\] Part number: *(\S+)")
ACCESS = re.compile(r"ACSCtl:.*\b(?:ReqRedir|CmpltRedir|UpstreamFwd)\+")


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One PCI device; None where `lspci` does not show a value."""

    title: str = ""
    part: str = ""
    read_request_bytes: int | None = None
    has_relaxed_ordering: bool | None = None
    redirects: bool = False
    """Whether access control (ACS) redirects peer-to-peer traffic up to the root."""


@lru_cache(maxsize=RECENT)
def devices(text: str) -> Mapping[str, PciDevice]:
    """Parse `lspci -D -vv` by address; empty if it is truncated."""
    if END not in text:
        return {}
    blocks: dict[str, list[str]] = {}
    address = ""
    for line in text.splitlines():
        match = HEAD.match(line)
        address = match[1] if match else address if line.startswith(("\t", " ")) else ""
        if address:
            blocks.setdefault(address, []).append(line)
    return {address: _device("\n".join(lines)) for address, lines in blocks.items()}


def _device(text: str) -> PciDevice:
    request, ordering, part = READ_REQUEST.search(text), ORDERING.search(text), PART.search(text)
    return PciDevice(
        title=text.partition("\n")[0].partition(" ")[2],
        part=part[1] if part else "",
        read_request_bytes=int(request[1]) if request else None,
        has_relaxed_ordering=ordering[1] == "+" if ordering else None,
        redirects=ACCESS.search(text) is not None,
    )


@dataclass(frozen=True, slots=True)
class Topology:
    """The PCI tree."""

    above: Mapping[str, tuple[str, ...]]
    """Device → its upstream bridges, from the root down."""
    gpus: tuple[str, ...]


def topology(text: str) -> Topology:
    """Parse the real paths of all devices, and the GPUs among them; empty if truncated."""
    paths, _, rest = text.partition(GPUS)
    gpus, end, _ = rest.partition(END)
    if not end:
        return Topology({}, ())
    above = {address: bridges for *bridges, address in map(_slots, paths.splitlines()) if address}
    return Topology(
        {address: tuple(bridges) for address, bridges in above.items()},
        tuple(sorted({slot for line in gpus.splitlines() for slot in _slots(line) if slot})),
    )


def _slots(path: str) -> list[str]:
    """The PCI addresses in a path; one empty string if there are none."""
    return [part for part in path.strip().split("/") if SLOT.match(part)] or [""]


def bridges_with_access_control(
    devices: Mapping[str, PciDevice], topology: Topology, concerned: Iterable[str]
) -> tuple[str, ...] | None:
    """List the bridges that redirect: those above NICs and GPUs if the tree is known, else all."""
    if not devices:
        return None
    known = {bridge for address in concerned for bridge in topology.above.get(address, ())}
    return tuple(sorted(name for name, one in devices.items() if one.redirects and (not known or name in known)))


def nearest(topology: Topology, cards: Sequence[Card]) -> dict[str, str]:
    """Map each GPU to the NIC behind the same PCIe switch: the one that shares most upstream bridges.

    A tie, or no shared bridge but the root port, means that no NIC is nearest.
    """
    found = {}
    for gpu in topology.gpus:
        counts = []
        for card in cards:
            bridges = zip(topology.above.get(gpu, ()), topology.above.get(card.pci, ()), strict=False)
            counts.append((sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], bridges)), card.interface))
        shared = sorted(counts, reverse=True)
        is_alone = len(shared) == 1 or (len(shared) > 1 and shared[0][0] > shared[1][0])
        if shared and shared[0][0] > 1 and is_alone:
            found[gpu] = shared[0][1]
    return found


GIDS = range(16)
SETTING = re.compile(r"^\*?\s*(?:RO)?\s+([A-Z][A-Z0-9_]+)\s+(\S+)\s+(\S+)\s+(\S+)\s*$", re.MULTILINE)
"""Default, current, and next boot."""
NAMED = re.compile(r"\S*\(([0-9]+)\)\Z")
FORCED = re.compile(r"^adaptive_routing_forced_en\s*\|\s*0x([0-9a-fA-F]{1,8})\s*$", re.MULTILINE)
Settings = tuple[Mapping[str, str], Mapping[str, str], bool | None]
"""Current, after the next boot, and whether adaptive routing is forced."""
NO_SETTINGS: Settings = ({}, {}, None)


def nics(
    tree: Tree,
    cards: Sequence[Card],
    devices: Mapping[str, PciDevice],
    mtus: Mapping[str, int],
    firmware: Mapping[str, Settings],
) -> Mapping[str, NicFacts] | Absent:
    """Build the NICs at the PCI addresses of the design."""
    if not tree.files:
        return Absent("its files below /sys could not be read")
    return {
        card.interface: _nic(tree, card, devices.get(card.pci, PciDevice()), mtus, firmware.get(card.pci, NO_SETTINGS))
        for card in cards
    }


def _nic(tree: Tree, card: Card, device: PciDevice, mtus: Mapping[str, int], firmware: Settings) -> NicFacts:
    event = settings(tree.text(f"{card.folder}/uevent"))
    rdma = f"{card.folder}/infiniband/{card.rdma}"
    roce_v2 = (index for index in GIDS if tree.text(f"{card.port}/gid_attrs/types/{index}") == "RoCE v2")
    return NicFacts(
        interface=card.interface,
        pci=card.pci,
        rdma=card.rdma,
        part=device.part,
        psid=tree.text(f"{rdma}/board_id"),
        firmware=tree.text(f"{rdma}/fw_ver"),
        driver=event.get("DRIVER", ""),
        driver_version=tree.text(f"/sys/module/{event.get('DRIVER', '')}/version"),
        pci_gt_s=_gigatransfers(tree.text(f"{card.folder}/current_link_speed")),
        pci_width=whole(tree.text(f"{card.folder}/current_link_width")),
        pci_full_gt_s=_gigatransfers(tree.text(f"{card.folder}/max_link_speed")),
        pci_full_width=whole(tree.text(f"{card.folder}/max_link_width")),
        read_request_bytes=device.read_request_bytes,
        has_relaxed_ordering=device.has_relaxed_ordering,
        active_mtu_bytes=mtus.get(card.rdma),
        roce_gid_index=next((index for index in roce_v2 if _is_ipv4(tree.text(f"{card.port}/gids/{index}"))), None),
        settings=firmware[0],
        next_settings=firmware[1],
        numa=whole(tree.text(f"{card.folder}/numa_node")),
        is_adaptive_routing_forced=firmware[2],
    )


def _gigatransfers(text: str) -> float | None:
    """Parse a speed such as `32.0 GT/s PCIe`; None for `Unknown`."""
    return number(next(iter(text.split()), ""))


def _is_ipv4(gid: str) -> bool:
    try:
        return IPv6Address(gid).ipv4_mapped is not None
    except AddressValueError:
        return False


def active_mtus(text: str) -> dict[str, int]:
    """Parse the active RoCE MTU from `ibv_devinfo`, by RDMA device."""
    found: dict[str, int] = {}
    device = ""
    for key, value in pairs(text):
        if key == "hca_id":
            device = value
        size = whole(next(iter(value.split()), "")) if key == "active_mtu" else None
        if device and size is not None:
            found.setdefault(device, size)
    return found


def firmware(text: str) -> Settings:
    """Parse the current and next-boot settings of mlxconfig; enumerated values by number."""
    rows = [match.groups() for match in SETTING.finditer(plain(text))]
    forced = FORCED.search(plain(text))
    is_forced = bool(int(forced[1], 16)) if forced else None
    return {row[0]: _value(row[2]) for row in rows}, {row[0]: _value(row[3]) for row in rows}, is_forced


def _value(word: str) -> str:
    match = NAMED.match(word)
    return match[1] if match else word


KERNEL = "/proc/sys/kernel"
DMI = "/sys/class/dmi/id"


def system(tree: Tree) -> System | Absent:
    release = settings(tree.text("/etc/os-release"))
    kernel = tree.text(f"{KERNEL}/osrelease")
    found = System(
        hostname=tree.text(f"{KERNEL}/hostname"),
        version=release.get("VERSION_ID", "") or kernel,
        model=tree.text(f"{DMI}/product_name"),
        serial=tree.text(f"{DMI}/product_serial"),
        uptime_s=number(next(iter(tree.text("/proc/uptime").split()), "")),
        boot=tree.text(f"{KERNEL}/random/boot_id"),
        kernel=kernel,
    )
    return found if found.hostname or found.boot else Absent("its files below /proc could not be read")


TRANSLATING = {"DMA", "DMA-FQ"}
INSTALLED = {
    "ofed": re.compile(r"^(?:MLNX_OFED_LINUX-|OFED-internal-|DOCA-?)?([0-9][\w.-]*):?\s*$", re.MULTILINE),
    "mft": re.compile(r"^\w+, (?:mft|mstflint) ([0-9][\w.-]*)", re.MULTILINE),
    "libnccl": re.compile(r"libnccl\.so\.([0-9.]+)\s*$", re.MULTILINE),
}
"""Package → pattern of its version in VERSIONS' output."""
MODULES = ("mlx5_core", "bnxt_en", "ionic", "nvidia", "nvidia_peermem")


def host(
    tree: Tree,
    cards: Sequence[Card],
    addresses: Mapping[str, tuple[str, ...]],
    default_routes: tuple[DefaultRoute, ...] | None,
    devices: Mapping[str, PciDevice],
    topology: Topology,
    versions: str,
) -> HostFacts | Absent:
    if not tree.files:
        return Absent("its files below /proc and /sys could not be read")
    concerned = (*topology.gpus, *(card.pci for card in cards))
    iommu = {tree.text(f"{card.folder}/iommu_group/type") for card in cards} - {""}
    tools = {name: tree.text(f"/sys/module/{name}/version") for name in MODULES}
    if not tools["nvidia_peermem"] and tree.text("/sys/module/nvidia_peermem/initstate") == "live":
        tools["nvidia_peermem"] = "loaded"
    return HostFacts(
        sysctls=dict(_sysctls(tree)),
        addresses=addresses,
        default_routes=default_routes,
        bridges_with_acs=bridges_with_access_control(devices, topology, concerned),
        is_iommu_on=bool(iommu & TRANSLATING) if iommu else None,  # passthrough counts as off
        gpu_pcis=topology.gpus,
        nearest_nic=nearest(topology, cards),
        tools={name: version for name, version in tools.items() if version} | _packages(versions),
        nccl=settings(tree.text("/etc/nccl.conf")),
    )


def _packages(versions: str) -> dict[str, str]:
    """Parse the installed packages; where the command did not end, all may be installed."""
    matches = {name: pattern.search(plain(versions)) for name, pattern in INSTALLED.items()}
    unknown = () if END in versions else INSTALLED
    return dict.fromkeys(unknown, "") | {name: match[1] for name, match in matches.items() if match}


def _sysctls(tree: Tree) -> dict[str, str]:
    found = {}
    for path, text in tree.below(CONF):
        name, _, key = path.rpartition("/")
        if key in SYSCTLS:
            found[f"net.ipv4.conf.{name}.{key}"] = text
    for path, text in tree.below(CONF_V6):
        name, _, key = path.rpartition("/")
        if key == PROBE_INTERVAL:
            found[f"net.ipv6.conf.{name}.{key}"] = text
    ecn = tree.text("/proc/sys/net/ipv4/tcp_ecn")
    return {**found, **({"net.ipv4.tcp_ecn": ecn} if ecn else {})}

"""NICs as cards: who made them, what they run, how they sit in their slots, and what their firmware keeps."""

import re
from collections.abc import Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from netkit.facts import Absent
from netkit.facts.host import NicFacts
from netkit.platforms.linux.facts.pci import Device
from netkit.platforms.linux.facts.reading import number, pairs, plain, whole
from netkit.platforms.linux.facts.tree import Card, Tree, settings

GIDS = range(16)
SETTING = re.compile(r"^\*?\s*(?:RO)?\s+([A-Z][A-Z0-9_]+)\s+(\S+)\s+(\S+)\s+(\S+)\s*$", re.MULTILINE)
"""Default, current, and next boot."""
NAMED = re.compile(r"\S*\(([0-9]+)\)\Z")
FORCED = re.compile(r"^adaptive_routing_forced_en\s*\|\s*0x([0-9a-fA-F]{1,8})\s*$", re.MULTILINE)
Settings = tuple[Mapping[str, str], Mapping[str, str], bool | None]
"""In force, from the next boot on, and whether adaptive routing is forced."""
NO_SETTINGS: Settings = ({}, {}, None)


def nics(
    tree: Tree,
    cards: Sequence[Card],
    devices: Mapping[str, Device],
    mtus: Mapping[str, int],
    firmware: Mapping[str, Settings],
) -> Mapping[str, NicFacts] | Absent:
    """Return the NICs that are at the addresses the design knows."""
    if not tree.files:
        return Absent("its files below /sys could not be read")
    return {
        card.interface: _nic(tree, card, devices.get(card.pci, Device()), mtus, firmware.get(card.pci, NO_SETTINGS))
        for card in cards
    }


def _nic(tree: Tree, card: Card, device: Device, mtus: Mapping[str, int], firmware: Settings) -> NicFacts:
    event = settings(tree.text(f"{card.folder}/uevent"))
    rdma = f"{card.folder}/infiniband/{card.rdma}"
    return NicFacts(
        interface=card.interface,
        pci=card.pci,
        rdma=card.rdma,
        part=device.part,
        psid=tree.text(f"{rdma}/board_id"),
        firmware=tree.text(f"{rdma}/fw_ver"),
        driver=event.get("DRIVER", ""),
        driver_version=tree.text("/sys/module/mlx5_core/version"),
        pci_gt_s=_gigatransfers(tree.text(f"{card.folder}/current_link_speed")),
        pci_width=whole(tree.text(f"{card.folder}/current_link_width")),
        pci_full_gt_s=_gigatransfers(tree.text(f"{card.folder}/max_link_speed")),
        pci_full_width=whole(tree.text(f"{card.folder}/max_link_width")),
        read_request_bytes=device.read_request_bytes,
        has_relaxed_ordering=device.has_relaxed_ordering,
        active_mtu_bytes=mtus.get(card.rdma),
        roce_gid_index=_gid_index(tree, card),
        settings=firmware[0],
        next_settings=firmware[1],
        numa=whole(tree.text(f"{card.folder}/numa_node")),
        is_adaptive_routing_forced=firmware[2],
    )


def _gigatransfers(text: str) -> float | None:
    """Return a speed such as `32.0 GT/s PCIe`; `Unknown` is none."""
    return number(next(iter(text.split()), ""))


def _gid_index(tree: Tree, card: Card) -> int | None:
    """Return the first GID that is an IPv4 address and of RoCE v2."""
    for index in GIDS:
        kind = tree.text(f"{card.port}/gid_attrs/types/{index}")
        if kind == "RoCE v2" and _address(tree.text(f"{card.port}/gids/{index}")) is not None:
            return index
    return None


def _address(gid: str) -> IPv4Address | None:
    try:
        return IPv6Address(gid).ipv4_mapped
    except AddressValueError:
        return None


def active_mtus(text: str) -> dict[str, int]:
    """Return the MTU of RoCE that `ibv_devinfo` shows, by RDMA device."""
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
    """Return what mlxconfig says is in force, and what will be from the next boot on; by number where they have one."""
    rows = [match.groups() for match in SETTING.finditer(plain(text))]
    forced = FORCED.search(plain(text))
    is_forced = bool(int(forced[1], 16)) if forced else None
    return {row[0]: _value(row[2]) for row in rows}, {row[0]: _value(row[3]) for row in rows}, is_forced


def _value(told: str) -> str:
    match = NAMED.match(told)
    return match[1] if match else told

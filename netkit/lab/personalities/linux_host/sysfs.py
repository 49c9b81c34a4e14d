"""The host's /sys: a folder of files in the shape of the driver's, with the kernel's own view of the interfaces in it.

The top is read-only, because systemd-networkd takes a writable /sys for a machine with udev and waits for it; what
hosts write to, below it, is writable. What was written is read back when someone asks.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from netkit.lab.node import Node
from netkit.lab.personalities.linux_host import slots
from netkit.lab.personalities.linux_host.firmware import Firmware
from netkit.lab.personalities.linux_host.machine import Card
from netkit.lab.personalities.linux_host.nic import PRIORITIES
from netkit.lab.reading import NicReading

TREE = "/run/netkit/sys"
KERNEL_VIEW = "/run/netkit/sysfs"
FROM_KERNEL = [
    "addr_assign_type",
    "address",
    "broadcast",
    "carrier",
    "carrier_changes",
    "carrier_down_count",
    "carrier_up_count",
    "dev_id",
    "dormant",
    "flags",
    "ifalias",
    "ifindex",
    "iflink",
    "link_mode",
    "mtu",
    "name_assign_type",
    "operstate",
    "queues",
    "statistics",
    "tx_queue_len",
    "type",
    "uevent",
]
# Some callers name systemd's programs by their full path, and tell by process 1 whether it is there at all.
MOUNT = f"""set -e
[ ! -e {KERNEL_VIEW} ] || exit 0
mkdir -p {KERNEL_VIEW} {TREE}/devices/virtual/net
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs {KERNEL_VIEW} || mount --rbind /sys {KERNEL_VIEW}
mount --bind {KERNEL_VIEW}/devices/virtual/net {TREE}/devices/virtual/net
mount --rbind {TREE} /sys
mount -o remount,bind,ro /sys
for part in bus class devices kernel; do mount --rbind {TREE}/$part /sys/$part; done
for program in systemctl systemd-run hostnamectl udevadm; do
    [ ! -f /usr/bin/$program ] || mount --bind /run/netkit/bin/.client /usr/bin/$program
done
echo systemd >/run/netkit/init
mount --bind /run/netkit/init /proc/1/comm
"""
BOARD = "MT_0000000838"
PCI_DEVICES = {"ConnectX-6": "0x101b", "ConnectX-7": "0x1021", "ConnectX-8": "0x1023", "BlueField-3": "0xa2dc"}
RDMA_TYPES = {"0x101b": "MT4123", "0x1021": "MT4129", "0x1023": "MT4131", "0xa2dc": "MT41692"}
REACTION: Mapping[str, str] = {
    "clamp_tgt_rate": "0",
    "dce_tcp_g": "1019",
    "dce_tcp_rtt": "1",
    "initial_alpha_value": "1023",
    "rate_reduce_monitor_period": "4",
    "rate_to_set_on_first_cnp": "0",
    "rpg_ai_rate": "5",
    "rpg_byte_reset": "32767",
    "rpg_gd": "11",
    "rpg_hai_rate": "50",
    "rpg_max_rate": "0",
    "rpg_min_dec_fac": "50",
    "rpg_min_rate": "1",
    "rpg_threshold": "1",
    "rpg_time_reset": "300",
}
LONGEST_BYTES = 4096
TRAFFIC_CLASS_PREFIX = "Global tclass="


def pci_device(card_kind: str) -> str:
    """Return the PCI device number of a kind of NIC."""
    return PCI_DEVICES.get(card_kind, "0x1021")


def pci_folder(card: Card) -> str:
    """Return where a NIC stands among the devices."""
    return f"{slots.folder(slots.nic_bridge(card.pci), slots.switch(card.pci))}/{card.pci}"


def ecn_folder(card: Card) -> str:
    """Return where the congestion settings of a NIC stand."""
    return f"{pci_folder(card)}/net/{card.interface}/ecn"


def rdma_folder(card: Card) -> str:
    """Return where the RDMA device of a NIC stands."""
    return f"{pci_folder(card)}/infiniband/{card.rdma}"


def cm_folder(card: Card) -> str:
    """Return where the defaults of RDMA-CM stand."""
    return f"kernel/config/rdma_cm/{card.rdma}/ports/1"


def traffic_class_file(card: Card) -> str:
    """Return the file that holds the traffic class of a NIC."""
    return f"{rdma_folder(card)}/tc/1/traffic_class"


def settings(card: Card, firmware: Firmware) -> Iterator[tuple[str, str]]:
    """Yield the files that hold volatile settings, as they are after power-up or a driver reload."""
    mask = firmware.current(card.pci, "ROCE_CC_PRIO_MASK_P1")
    ecn = ecn_folder(card)
    for side in ("roce_np", "roce_rp"):
        for priority in range(PRIORITIES):
            yield f"{ecn}/{side}/enable/{priority}", str(mask >> priority & 1)
    yield f"{ecn}/roce_np/cnp_dscp", str(firmware.current(card.pci, "CNP_DSCP_P1"))
    yield f"{ecn}/roce_np/cnp_802p_prio", str(firmware.current(card.pci, "CNP_802P_PRIO_P1"))
    yield f"{ecn}/roce_np/min_time_between_cnps", "4"
    for name, value in REACTION.items():
        yield f"{ecn}/roce_rp/{name}", value
    yield traffic_class_file(card), ""
    yield f"{cm_folder(card)}/default_roce_tos", "0"
    yield f"{cm_folder(card)}/default_roce_mode", "RoCE v2"


def identity(card: Card, kind: str, reading: NicReading) -> Iterator[tuple[str, str]]:
    """Yield the files that tell what a NIC is."""
    device, pci, rdma = pci_device(kind), pci_folder(card), rdma_folder(card)
    numbers = {"vendor": "0x15b3", "device": device, "class": "0x020000", "subsystem_vendor": "0x15b3"}
    for name, value in numbers.items():
        yield f"{pci}/{name}", value
    yield f"{pci}/numa_node", str(numa_node(card.pci))
    for name in ("current", "max"):
        yield f"{pci}/{name}_link_speed", "32.0 GT/s PCIe"
        yield f"{pci}/{name}_link_width", "16"
    yield f"{pci}/uevent", f"DRIVER=mlx5_core\nPCI_ID=15B3:{device[2:].upper()}\nPCI_SLOT_NAME={card.pci}"
    yield f"{pci}/net/{card.interface}/duplex", "full"
    yield f"{pci}/net/{card.interface}/phys_port_name", "p0"
    yield f"{rdma}/fw_ver", reading.firmware
    yield f"{rdma}/board_id", BOARD
    yield f"{rdma}/hca_type", RDMA_TYPES.get(device, "MT4129")
    yield f"{rdma}/node_desc", f"{card.rdma}"
    yield f"{rdma}/node_guid", guid(reading.mac)
    yield f"{rdma}/ports/1/link_layer", "Ethernet"
    yield f"{rdma}/ports/1/hw_counters/lifespan", "10"


def numa_node(pci: str) -> int:
    """Return the processor socket a PCI address belongs to: the upper half of the buses hangs off the second."""
    return int(int(pci.split(":")[1], 16) >= 0x80)


def guid(mac: str) -> str:
    """Return the 64-bit identity the driver makes of a MAC address, as sysfs shows it."""
    raw = mac.replace(":", "")
    whole = f"{raw[:6]}0300{raw[6:]}"
    return ":".join(whole[at : at + 4] for at in range(0, 16, 4))


def links(card: Card) -> Iterator[tuple[str, str]]:
    """Yield the links that lead from the classes to a NIC, and from a NIC to what the kernel shows of it."""
    pci, interface = pci_folder(card), card.interface
    up = "../" * (pci.count("/") + 1)
    yield f"class/net/{interface}", f"../../{pci}/net/{interface}"
    yield f"class/infiniband/{card.rdma}", f"../../{rdma_folder(card)}"
    yield f"bus/pci/devices/{card.pci}", f"../../../{pci}"
    yield f"bus/pci/drivers/mlx5_core/{card.pci}", f"../../../../{pci}"
    yield f"{pci}/driver", f"{up}bus/pci/drivers/mlx5_core"
    yield "bus/pci/drivers/mlx5_core/module", "../../../../module/mlx5_core"
    yield f"{pci}/subsystem", f"{up}bus/pci"
    yield f"{pci}/net/{interface}/device", f"../../../{card.pci}"
    yield f"{pci}/net/{interface}/subsystem", f"../../{up}class/net"
    yield f"{rdma_folder(card)}/device", f"../../../{card.pci}"
    for name in FROM_KERNEL:
        yield f"{pci}/net/{interface}/{name}", f"../{up}virtual/net/{interface}/{name}"


def readings(card: Card, reading: NicReading) -> Iterator[tuple[str, str]]:
    """Yield the files whose content moves."""
    pci, port = pci_folder(card), f"{rdma_folder(card)}/ports/1"
    yield f"{pci}/net/{card.interface}/speed", str(reading.speed_gbps * 1000 if reading.is_up else -1)
    yield f"{port}/state", "4: ACTIVE" if reading.is_up else "1: DOWN"
    yield f"{port}/phys_state", "5: LinkUp" if reading.is_up else "3: Disabled"
    yield f"{port}/rate", f"{reading.speed_gbps} Gb/sec (4X NDR)" if reading.is_up else "40 Gb/sec (4X QDR)"
    for name, value in reading.hw_counters.items():
        yield f"{port}/hw_counters/{name}", str(value)
    for name, value in reading.port_counters.items():
        yield f"{port}/counters/{name}", str(value)


def gids(card: Card, mac: str, address: str) -> Iterator[tuple[str, str]]:
    """Yield the files of the GID table: two of the MAC address, and two of the IPv4 address when there is one."""
    port = f"{rdma_folder(card)}/ports/1"
    raw = guid(mac).replace(":", "").replace("0300", "fffe", 1)
    first = f"{int(raw[:2], 16) ^ 2:02x}{raw[2:]}"
    local = "fe80:0000:0000:0000:" + ":".join(first[at : at + 4] for at in range(0, 16, 4))
    found = [local, local]
    if address:
        a, b, c, d = map(int, address.split("."))
        found += [f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"] * 2
    for index in range(4):
        there = index < len(found)
        yield f"{port}/gids/{index}", found[index] if there else "0000:0000:0000:0000:0000:0000:0000:0000"
        yield f"{port}/gid_attrs/types/{index}", ("RoCE v2" if index % 2 else "IB/RoCE v1") if there else ""
        yield f"{port}/gid_attrs/ndevs/{index}", card.interface if there else ""


class Sysfs:
    """The tree of one host, as the keeper writes and reads it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._shown: dict[str, str] = {}

    @property
    def top(self) -> Path:
        """Return where the tree is for this process."""
        return self._node.file(TREE)

    def mount(self) -> None:
        """Make the tree the host's /sys."""
        done = self._node.run("sh", "-c", MOUNT)
        if done.exit_code != 0:
            raise RuntimeError(f"{self._node.name}: /sys could not be made: {done.stderr.strip()}")

    def write(self, files: Iterable[tuple[str, str]], *, is_forced: bool = False) -> None:
        """Write files that do not hold their text yet; those others write to must be forced."""
        for name, text in files:
            if is_forced or self._shown.get(name) != text:
                self._put(name, text)

    def link(self, found: Iterable[tuple[str, str]]) -> None:
        """Make links that are not there."""
        for name, target in found:
            path = self.top / name
            if not path.is_symlink():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(target)

    def read(self, name: str) -> str:
        """Return what a file holds now, whoever wrote it."""
        return self.texts([name])[name]

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """Return what files hold now, whoever wrote them; empty where there is none."""
        top = os.fspath(self.top)
        return {name: _text(f"{top}/{name}") for name in names}

    def _put(self, name: str, text: str) -> None:
        path = self.top / name
        if name not in self._shown:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
        self._shown[name] = text


def _text(path: str) -> str:
    """Return what a small file holds. After every command a hundred are read: no more is done than must be."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(file, LONGEST_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(file)

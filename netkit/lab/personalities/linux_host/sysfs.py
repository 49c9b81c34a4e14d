"""/sys of a host: PCI devices, NICs, RDMA devices and their settings."""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from netkit.design.fabric import Host
from netkit.lab.model.wiring import NicSettings
from netkit.lab.node import Node
from netkit.lab.personalities.linux_host.machine import (
    BROADCOM,
    MELLANOX,
    PRIORITIES,
    HostMachine,
    NicFamily,
    NicFirmware,
    RailCard,
    family_of,
    port_of,
)
from netkit.lab.personalities.linux_host.networkd import NETWORKCTL
from netkit.lab.reading import NicReading

PRODUCTS = {"dgx-h100": "DGXH100"}
BRIDGE_CLASS, GPU_CLASS = "0x060400", "0x030200"
VERSIONS = {"mlx5_core": "24.10-1.1.4", "nvidia": "550.90.07", "nvidia_peermem": "550.90.07"}
Entries = Iterator[tuple[str, str]]


def bus(pci: str, steps: int) -> str:
    """The bus number `steps` above that of a PCI address."""
    return f"{(int(pci.split(':')[1], 16) + steps) % 256:02x}"


def switch(pci: str) -> str:
    """The upstream port of the PCIe switch above a NIC."""
    return f"0000:{bus(pci, -2)}:00.0"


def nic_bridge(pci: str) -> str:
    """The switch port above a NIC."""
    return f"0000:{bus(pci, -1)}:00.0"


def gpu_bridge(pci: str) -> str:
    """The switch port above the GPU beside a NIC."""
    return f"0000:{bus(pci, -1)}:02.0"


def gpu(pci: str) -> str:
    return f"0000:{bus(pci, 3)}:00.0"


def folder(bridge: str, above: str) -> str:
    """The folder of a switch port below /sys."""
    root = bus(above, -1)
    return f"devices/pci0000:{root}/0000:{root}:01.0/{above}/{bridge}"


def files(host: Host) -> Entries:
    """Yield the files that do not belong to a NIC."""
    yield "class/dmi/id/product_name", PRODUCTS.get(host.model.name, host.model.name)
    yield "class/dmi/id/product_serial", f"166{host.number:010d}"
    names = (name for name in VERSIONS if name != MELLANOX.driver or family_of(host) is MELLANOX)
    yield from ((f"module/{name}/version", VERSIONS[name]) for name in names)
    for nic in host.nics:
        above = switch(nic.pci)
        yield f"{folder(nic_bridge(nic.pci), above)}/class", BRIDGE_CLASS
        yield f"kernel/iommu_groups/{group(nic.pci)}/type", "identity"
    for pci in _with_gpu(host):
        place = f"{folder(gpu_bridge(pci), switch(pci))}/{gpu(pci)}"
        yield f"{place}/class", GPU_CLASS
        yield f"{place}/vendor", "0x10de"
        yield f"{place}/device", "0x2330"


def slot_links(host: Host) -> Entries:
    """Yield the symlinks of bridges, GPUs and IOMMU groups."""
    for nic in host.nics:
        bridge, above = nic_bridge(nic.pci), switch(nic.pci)
        yield f"bus/pci/devices/{bridge}", f"../../../{folder(bridge, above)}"
        own = f"{folder(bridge, above)}/{nic.pci}"
        yield f"{own}/iommu_group", f"{'../' * (own.count('/') + 1)}kernel/iommu_groups/{group(nic.pci)}"
    for pci in _with_gpu(host):
        yield f"bus/pci/devices/{gpu(pci)}", f"../../../{folder(gpu_bridge(pci), switch(pci))}/{gpu(pci)}"


def group(pci: str) -> int:
    """The IOMMU group of a NIC."""
    return int(pci.split(":")[1], 16)


def _with_gpu(host: Host) -> Iterator[str]:
    """Yield the PCI addresses of the NICs with a GPU beside them."""
    yield from (nic.pci for number, nic in enumerate(host.nics) if number < host.model.gpus)


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
# Some programs call systemd's by their full path, and detect systemd by the name of process 1.
MOUNT = f"""set -e
[ ! -e {KERNEL_VIEW} ] || exit 0
mkdir -p {KERNEL_VIEW} {TREE}/devices/virtual/net
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs {KERNEL_VIEW} || mount --rbind /sys {KERNEL_VIEW}
mount --bind {KERNEL_VIEW}/devices/virtual/net {TREE}/devices/virtual/net
mount --rbind {TREE} /sys
mount -o remount,bind,ro /sys
for part in bus class devices kernel; do mount --rbind {TREE}/$part /sys/$part; done
cp /usr/bin/networkctl {NETWORKCTL}
for program in networkctl systemctl systemd-run udevadm; do
    [ ! -f /usr/bin/$program ] || mount --bind /run/netkit/bin/.client /usr/bin/$program
done
echo systemd >/run/netkit/init
mount --bind /run/netkit/init /proc/1/comm
"""
BOARD = "MT_0000000838"
CNP_DSCP = 48
"""The factory default, where no file sets it."""
PCI_DEVICES = {"ConnectX-6": "0x101b", "ConnectX-7": "0x1021", "ConnectX-8": "0x1023", "BlueField-3": "0xa2dc"}
RDMA_TYPES = {"0x101b": "MT4123", "0x1021": "MT4129", "0x1023": "MT4131", "0xa2dc": "MT41692"}
RP_DEFAULTS: Mapping[str, str] = {
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
PAGE_BYTES = 4096
TRAFFIC_CLASS_PREFIX = "Global tclass="


def pci_device(machine: HostMachine) -> str:
    return PCI_DEVICES.get(machine.host.model.nic, f"0x{machine.family.device}")


def pci_folder(card: RailCard) -> str:
    return f"{folder(nic_bridge(card.pci), switch(card.pci))}/{card.pci}"


def ecn_folder(card: RailCard) -> str:
    return f"{pci_folder(card)}/net/{card.interface}/ecn"


def rdma_folder(card: RailCard) -> str:
    return f"{pci_folder(card)}/infiniband/{card.rdma}"


def cm_folder(card: RailCard) -> str:
    """The configfs folder of the RDMA-CM defaults."""
    return f"kernel/config/rdma_cm/{card.rdma}/ports/1"


def traffic_class_file(card: RailCard) -> str:
    return f"{rdma_folder(card)}/tc/1/traffic_class"


def settings(card: RailCard, firmware: NicFirmware, family: NicFamily) -> Iterator[tuple[str, str]]:
    """Yield the files of volatile settings with their values after power-up or a driver reload."""
    yield f"{cm_folder(card)}/default_roce_tos", "0"
    yield f"{cm_folder(card)}/default_roce_mode", "RoCE v2"
    if not family.is_mellanox:
        return
    port = port_of(card.pci)
    mask = firmware.current(card.pci, f"ROCE_CC_PRIO_MASK_P{port}")
    ecn = ecn_folder(card)
    for side in ("roce_np", "roce_rp"):
        for priority in range(PRIORITIES):
            yield f"{ecn}/{side}/enable/{priority}", str(mask >> priority & 1)
    yield f"{ecn}/roce_np/cnp_dscp", str(firmware.current(card.pci, f"CNP_DSCP_P{port}"))
    yield f"{ecn}/roce_np/cnp_802p_prio", str(firmware.current(card.pci, f"CNP_802P_PRIO_P{port}"))
    yield f"{ecn}/roce_np/min_time_between_cnps", "4"
    for name, value in RP_DEFAULTS.items():
        yield f"{ecn}/roce_rp/{name}", value
    yield traffic_class_file(card), ""


def identity(card: RailCard, machine: HostMachine, reading: NicReading) -> Iterator[tuple[str, str]]:
    """Yield the files that identify a NIC."""
    family, pci, rdma = machine.family, pci_folder(card), rdma_folder(card)
    device, vendor = pci_device(machine), f"0x{family.vendor}"
    numbers = {"vendor": vendor, "device": device, "class": "0x020000", "subsystem_vendor": vendor}
    for name, value in numbers.items():
        yield f"{pci}/{name}", value
    yield f"{pci}/numa_node", str(numa_node(card.pci))
    for name in ("current", "max"):
        yield f"{pci}/{name}_link_speed", "32.0 GT/s PCIe"
        yield f"{pci}/{name}_link_width", "16"
    number = f"{family.vendor}:{device[2:]}".upper()
    yield f"{pci}/uevent", f"DRIVER={family.driver}\nPCI_ID={number}\nPCI_SLOT_NAME={card.pci}"
    yield f"{pci}/net/{card.interface}/duplex", "full"
    yield f"{pci}/net/{card.interface}/phys_port_name", "p0"
    yield f"{rdma}/fw_ver", machine.running_firmware(reading)
    if family.is_mellanox:
        yield f"{rdma}/board_id", BOARD
    yield f"{rdma}/hca_type", RDMA_TYPES.get(device, family.rdma_type)
    yield f"{rdma}/node_desc", f"{card.rdma}"
    yield f"{rdma}/node_guid", guid(reading.mac)
    yield f"{rdma}/ports/1/link_layer", "Ethernet"
    yield f"{rdma}/ports/1/hw_counters/lifespan", "10"


def numa_node(pci: str) -> int:
    """The NUMA node of a PCI address: the upper half of the buses belongs to the second socket."""
    return int(int(pci.split(":")[1], 16) >= 0x80)


def guid(mac: str) -> str:
    """Derive the node GUID from a MAC address, formatted as in sysfs."""
    raw = mac.replace(":", "")
    whole = f"{raw[:6]}0300{raw[6:]}"
    return ":".join(whole[at : at + 4] for at in range(0, 16, 4))


def links(card: RailCard, driver: str) -> Iterator[tuple[str, str]]:
    """Yield the symlinks from the classes to a NIC, and from a NIC to the kernel's own files."""
    pci, interface = pci_folder(card), card.interface
    up = "../" * (pci.count("/") + 1)
    yield f"class/net/{interface}", f"../../{pci}/net/{interface}"
    yield f"class/infiniband/{card.rdma}", f"../../{rdma_folder(card)}"
    yield f"bus/pci/devices/{card.pci}", f"../../../{pci}"
    yield f"bus/pci/drivers/{driver}/{card.pci}", f"../../../../{pci}"
    yield f"{pci}/driver", f"{up}bus/pci/drivers/{driver}"
    yield f"bus/pci/drivers/{driver}/module", f"../../../../module/{driver}"
    yield f"{pci}/subsystem", f"{up}bus/pci"
    yield f"{pci}/net/{interface}/device", f"../../../{card.pci}"
    yield f"{pci}/net/{interface}/subsystem", f"../../{up}class/net"
    yield f"{rdma_folder(card)}/device", f"../../../{card.pci}"
    for name in FROM_KERNEL:
        yield f"{pci}/net/{interface}/{name}", f"../{up}virtual/net/{interface}/{name}"


def nic_counts(card: RailCard, reading: NicReading, family: NicFamily) -> Iterator[tuple[str, str]]:
    """Yield the link state and counters."""
    pci, port = pci_folder(card), f"{rdma_folder(card)}/ports/1"
    yield f"{pci}/net/{card.interface}/speed", str(reading.speed_gbps * 1000 if reading.is_up else -1)
    yield f"{port}/state", "4: ACTIVE" if reading.is_up else "1: DOWN"
    yield f"{port}/phys_state", "5: LinkUp" if reading.is_up else "3: Disabled"
    yield f"{port}/rate", f"{reading.speed_gbps} Gb/sec (4X NDR)" if reading.is_up else "40 Gb/sec (4X QDR)"
    own = reading.hw_counters
    if not family.is_mellanox:
        own = family.counted(family.hw_counters, {**own, **reading.ethtool})
    for name, value in own.items():
        yield f"{port}/hw_counters/{name}", str(value)
    for name, value in reading.port_counters.items():
        yield f"{port}/counters/{name}", str(value)


def _beside(reading: NicReading) -> Entries:
    """Yield the files of a NIC beside the rails that are not the kernel's own."""
    yield f"devices/beside/net/{reading.interface}/speed", str(reading.speed_gbps * 1000 if reading.is_up else -1)


def _beside_links(name: str) -> Entries:
    yield f"class/net/{name}", f"../../devices/beside/net/{name}"
    yield from ((f"devices/beside/net/{name}/{one}", f"../../../virtual/net/{name}/{one}") for one in FROM_KERNEL)


def _lag(bond: str, members: Mapping[str, bool]) -> Entries:
    folder, is_up = f"devices/beside/net/{bond}/bonding", any(members.values())
    yield f"{folder}/slaves", " ".join(members)
    yield f"{folder}/mii_status", "up" if is_up else "down"
    yield f"{folder}/ad_aggregator", "1"
    yield f"{folder}/ad_partner_mac", LACP_PARTNER if is_up else "00:00:00:00:00:00"
    for number, (name, is_carrying) in enumerate(members.items(), start=1):
        own = f"devices/beside/net/{name}/bonding_slave"
        yield f"{own}/state", "active" if is_carrying else "backup"
        yield f"{own}/mii_status", "up" if is_carrying else "down"
        yield f"{own}/ad_aggregator_id", "1" if is_carrying else str(number + 1)


def gids(card: RailCard, mac: str, address: str) -> Iterator[tuple[str, str]]:
    """Yield the GID table: two entries for the MAC address, and two for an IPv4 address."""
    port = f"{rdma_folder(card)}/ports/1"
    raw = guid(mac).replace(":", "").replace("0300", "fffe", 1)
    first = f"{int(raw[:2], 16) ^ 2:02x}{raw[2:]}"
    local = "fe80:0000:0000:0000:" + ":".join(first[at : at + 4] for at in range(0, 16, 4))
    mapped = ""
    if address:
        a, b, c, d = map(int, address.split("."))
        mapped = f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"
    for index, gid in enumerate((local, local, mapped, mapped)):
        kind = "RoCE v2" if index % 2 else "IB/RoCE v1"
        yield f"{port}/gids/{index}", gid or "0000:0000:0000:0000:0000:0000:0000:0000"
        yield f"{port}/gid_attrs/types/{index}", kind if gid else ""
        yield f"{port}/gid_attrs/ndevs/{index}", card.interface if gid else ""


class Sysfs:
    """The sysfs tree of one host as files."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._written: dict[str, str] = {}

    @property
    def top(self) -> Path:
        return self._node.file(TREE)

    def mount(self) -> None:
        """Mount the tree at /sys."""
        result = self._node.run("sh", "-c", MOUNT)
        if result.exit_code != 0:
            raise RuntimeError(f"{self._node.name}: cannot mount /sys: {result.stderr.strip()}")

    def write(self, files: Iterable[tuple[str, str]], *, is_forced: bool = False) -> None:
        """Write the files that changed; `is_forced` also overwrites what others wrote."""
        for name, text in files:
            if is_forced or self._written.get(name) != text:
                path = self.top / name
                if name not in self._written:
                    path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{text}\n", encoding="utf-8")
                self._written[name] = text

    def link(self, found: Iterable[tuple[str, str]]) -> None:
        """Create missing symlinks."""
        for name, target in found:
            path = self.top / name
            if not path.is_symlink():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(target)

    def read(self, name: str) -> str:
        return self.texts([name])[name]

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """Read the current content of files; empty for a missing file."""
        top = os.fspath(self.top)
        return {name: _text(f"{top}/{name}") for name in names}


def _text(path: str) -> str:
    """Read a small file with as few system calls as possible: every command reads a hundred of them."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(file, PAGE_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(file)


LACP_PARTNER = "44:38:39:ff:00:01"
GID_INTERVAL_S = 5.0


class SysfsTree:
    """/sys of a host."""

    def __init__(self, machine: HostMachine) -> None:
        self._machine = machine
        self.files = Sysfs(machine.node)
        self._gids_at_s = 0.0

    def build(self) -> None:
        """Create the tree, with the NICs' settings as after power-up."""
        self.files.top.mkdir(parents=True, exist_ok=True)
        driver = self._machine.family.driver
        for part in ("bus", "class", "devices/virtual/net", "kernel/config", "fs", f"module/{driver}"):
            (self.files.top / part).mkdir(parents=True, exist_ok=True)
        self.files.link([("class/net/lo", "../../devices/virtual/net/lo")])
        readings = {reading.interface: reading for reading in self._machine.node.nics()}
        for card in self._machine.cards.values():
            self.files.write(identity(card, self._machine, readings[card.interface]))
            self.files.write(nic_counts(card, readings[card.interface], self._machine.family))
            self.files.link(links(card, driver))
            self.reset(card)
        for name in self._machine.host.nics_beside:
            self.files.write(_beside(readings[name]))
            self.files.link(_beside_links(name))
        self._write_lags(readings)
        self.files.link(
            (f"class/net/{one.interface}", f"../../devices/beside/net/{one.interface}")
            for one in self._machine.host.attachments
            if one.members
        )
        self.files.write(files(self._machine.host))
        self.files.link(slot_links(self._machine.host))
        self.files.mount()

    def reset(self, card: RailCard) -> None:
        """Reset the volatile settings of a NIC."""
        self.files.write(settings(card, self._machine.firmware, self._machine.family), is_forced=True)

    def refresh(self) -> None:
        readings = {reading.interface: reading for reading in self._machine.node.nics()}
        for card in self._machine.cards.values():
            reading = readings[card.interface]
            version = (f"{rdma_folder(card)}/fw_ver", self._machine.running_firmware(reading))
            self.files.write((version, *nic_counts(card, reading, self._machine.family)))
        for name in self._machine.host.nics_beside:
            self.files.write(_beside(readings[name]))
        self._write_lags(readings)
        if time.monotonic() - self._gids_at_s > GID_INTERVAL_S:
            self.refresh_gids()

    def _write_lags(self, readings: Mapping[str, NicReading]) -> None:
        """Write what a bond would show, for the bridge that replaces it: a NIC with carrier has a partner."""
        for one in self._machine.host.attachments if any(one.members for one in self._machine.host.attachments) else ():
            present = self.files.top / f"devices/virtual/net/{one.interface}/brif"
            members = [name for name in one.members if (present / name).exists()]
            self.files.write(_lag(one.interface, {name: readings[name].is_up for name in members}))

    def refresh_gids(self) -> None:
        """Update the GID tables, which follow the addresses of the interfaces."""
        self._gids_at_s = time.monotonic()
        links = {link["ifname"]: link for link in json.loads(self._machine.node.run("ip", "-j", "addr").stdout or "[]")}
        for card in self._machine.cards.values():
            link = links.get(card.interface, {})
            ipv4 = (address["local"] for address in link.get("addr_info", ()) if address["family"] == "inet")
            self.files.write(gids(card, link.get("address", ""), next(ipv4, "")))


def nic_settings(machine: HostMachine, tree: SysfsTree, card: RailCard) -> NicSettings:
    """The settings that the hardware model and the traffic engine use."""
    ecn, state = ecn_folder(card), card.state
    if not machine.family.is_mellanox:
        return _of_other(machine, card)
    enable = [f"{ecn}/{side}/enable/{priority}" for side in ("roce_np", "roce_rp") for priority in range(PRIORITIES)]
    values = tree.files.texts([*enable, f"{ecn}/roce_np/cnp_dscp", f"{ecn}/roce_np/cnp_802p_prio"])
    return NicSettings(
        pfc_priorities=frozenset(number for number, on in enumerate(state.pfc) if on),
        priority_of_dscp=state.priority_of_dscp if state.trust == "dscp" else (),
        np_enabled=_enabled(values, f"{ecn}/roce_np/enable"),
        rp_enabled=_enabled(values, f"{ecn}/roce_rp/enable"),
        cnp_dscp=number(values[f"{ecn}/roce_np/cnp_dscp"], 63),
        cnp_priority=number(values[f"{ecn}/roce_np/cnp_802p_prio"], PRIORITIES - 1),
        adaptive_retransmission=state.adaptive_retransmission,
        roce_adaptive_routing=bool(machine.firmware.current(card.pci, "ROCE_ADAPTIVE_ROUTING_EN")),
    )


def _of_other(machine: HostMachine, card: RailCard) -> NicSettings:
    """The settings of a NIC whose congestion control is not in /sys."""
    state, family = card.state, machine.family
    is_on = frozenset(range(PRIORITIES)) if family is BROADCOM or state.cnp_dscp is not None else frozenset[int]()
    return NicSettings(
        pfc_priorities=frozenset(number for number, on in enumerate(state.pfc) if on),
        priority_of_dscp=state.priority_of_dscp if state.trust == "dscp" else (),
        np_enabled=is_on,
        rp_enabled=is_on,
        cnp_dscp=CNP_DSCP if state.cnp_dscp is None else state.cnp_dscp,
        cnp_priority=family.cnp_priority,
        adaptive_retransmission=state.adaptive_retransmission,
    )


def traffic_class(tree: SysfsTree, card: RailCard) -> int:
    """The traffic class the kernel gives every queue pair of a NIC; 0 if it is not set.

    The driver shows a written value with a prefix from then on.
    """
    file = traffic_class_file(card)
    text = tree.files.read(file)
    if text.isdecimal():
        tree.files.write([(file, f"{TRAFFIC_CLASS_PREFIX}{text}")], is_forced=True)
    return number(text.removeprefix(TRAFFIC_CLASS_PREFIX), 255)


def number(text: str, high: int) -> int:
    """Parse a number that was written to a file; 0 if the driver would have refused it."""
    return int(text) if text.isdecimal() and int(text) <= high else 0


def _enabled(values: Mapping[str, str], folder: str) -> frozenset[int]:
    return frozenset(priority for priority in range(PRIORITIES) if values[f"{folder}/{priority}"] == "1")

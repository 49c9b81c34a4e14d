"""`lspci`, `setpci`, `ibv_devinfo` and `rdma`: the NICs and the PCIe switch ports above them."""

import re
from collections.abc import Iterator, Sequence

from netkit.lab.personalities.linux_host import sysfs
from netkit.lab.personalities.linux_host.machine import HostMachine, RailCard
from netkit.lab.personality import Call
from netkit.lab.reading import NicReading

BRIDGE = "PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch"
CONTROL_BASE = 0x0936
READ_REQUEST_SHIFT = 12
READ_REQUEST_MASK = 0x7000
RELAXED = 0x0010
SETTING = re.compile(r"([A-Z0-9_]+\+[0-9a-f]+)\.w(?:=([0-9a-f]{1,4})(?::([0-9a-f]{1,4}))?)?\Z", re.IGNORECASE)


def lspci(machine: HostMachine, call: Call) -> int:
    words = list(call.arguments)
    flags = "".join(word[1:] for word in words if word.startswith("-") and word[1:2] != "s")
    if set(flags) - set("vnkD"):
        call.err("lspci: invalid option\n")
        return 1
    slot = _option(words, "-s")
    for address, card, is_nic in _devices(machine):
        if slot and slot not in {address, address.removeprefix("0000:"), address.removesuffix(".0")}:
            continue
        call.out(_device(machine, address, card, flags, is_nic=is_nic))
    return 0


def _option(words: Sequence[str], name: str) -> str:
    for index, word in enumerate(words):
        if word == name and index + 1 < len(words):
            return words[index + 1]
        if word.startswith(name) and len(word) > 2:
            return word[2:]
    return ""


def _devices(machine: HostMachine) -> Iterator[tuple[str, RailCard, bool]]:
    for card in machine.cards.values():
        yield sysfs.nic_bridge(card.pci), card, False
        yield card.pci, card, True


def _device(machine: HostMachine, address: str, card: RailCard, flags: str, *, is_nic: bool) -> str:
    shown = address if "D" in flags else address.removeprefix("0000:")
    family, number = machine.family, sysfs.pci_device(machine).removeprefix("0x")
    codes = (f" [{family.vendor}:{number}]" if is_nic else " [1000:c030]") if "n" in flags else ""
    title = f"Ethernet controller: {family.title}" if is_nic else BRIDGE
    head = f"{shown} {title}{codes}\n"
    if "v" not in flags:
        return head
    kind = "Endpoint" if is_nic else "Downstream Port (Slot+)"
    relaxed = "+" if card.relaxed_ordering else "-"
    request = card.max_read_request_bytes if is_nic else 128
    lines = [
        f"\tNUMA node: {sysfs.numa_node(address)}",
        f"\tCapabilities: [60] Express (v2) {kind}, MSI 00",
        "\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq+",
        f"\t\t\tRlxdOrd{relaxed} ExtTag+ PhantFunc- AuxPwr- NoSnoop+",
        f"\t\t\tMaxPayload 512 bytes, MaxReadReq {request} bytes",
        "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported",
        "\t\tLnkSta:\tSpeed 32GT/s, Width x16",
    ]
    if not is_nic:
        bits = "+" if card.has_access_control else "-"
        names = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
        lines += [
            "\tCapabilities: [148 v1] Access Control Services",
            "\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+",
            "\t\tACSCtl:\t" + " ".join(f"{name}{bits if at in {0, 2, 3, 4} else '-'}" for at, name in enumerate(names)),
        ]
    else:
        reading = machine.reading(card)
        lines += [
            "\tCapabilities: [48] Vital Product Data",
            f"\t\tProduct Name: {family.product}",
            "\t\tRead-only fields:",
            f"\t\t\t[PN] Part number: {family.part or reading.part}",
            "\t\tEnd",
            f"\tKernel driver in use: {family.driver}",
            f"\tKernel modules: {family.driver}",
        ]
    return head + "\n".join(lines) + "\n\n"


def setpci(machine: HostMachine, call: Call) -> int:
    words = [word for word in call.arguments if word != "-v"]
    slot = _option(words, "-s")
    devices = {address.removeprefix("0000:"): (card, is_nic) for address, card, is_nic in _devices(machine)}
    card, is_nic = devices.get(slot.removeprefix("0000:"), (None, False))
    registers = list(filter(None, map(SETTING.match, words)))
    if card is None or not registers or len(registers) != len(words) - (2 if slot in words else 1):
        call.err("setpci: no such device, or an unsupported register\n")
        return 1
    for match in registers:
        name = match[1].upper()
        if name not in ({"CAP_EXP+8", "CAP_EXP+08"} if is_nic else {"ECAP_ACS+6", "ECAP_ACS+06"}):
            call.err(f"setpci: Unknown register {match[1]!r} of {slot}\n")
            return 1
        access_control = 0x1D if card.has_access_control else 0
        current = control(card) if is_nic else access_control
        if match[2] is None:
            call.out(f"{current:04x}\n")
            continue
        mask = int(match[3] or "ffff", 16)
        value = current & ~mask | int(match[2], 16) & mask
        if is_nic:
            card.relaxed_ordering = bool(value & RELAXED)
            card.max_read_request_bytes = 128 << ((value & READ_REQUEST_MASK) >> READ_REQUEST_SHIFT)
        else:
            card.has_access_control = bool(value)
    return 0


def control(card: RailCard) -> int:
    """The PCIe Device Control register of a NIC."""
    steps = (card.max_read_request_bytes // 128).bit_length() - 1
    base = CONTROL_BASE & ~(READ_REQUEST_MASK | RELAXED)
    return base | steps << READ_REQUEST_SHIFT | RELAXED * card.relaxed_ordering


ROCE_HEADERS_BYTES = 96
MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}


def rdma(_machine: HostMachine, call: Call) -> int:
    """Refuse every command, as a kernel without resource tracking does."""
    call.err(f'Unknown argument "{" ".join(call.arguments)}".\n')
    return 1


def ibv_devinfo(machine: HostMachine, call: Call) -> int:
    words = list(call.arguments)
    name = words[words.index("-d") + 1] if "-d" in words[:-1] else ""
    readings = [reading for reading in machine.node.nics() if reading.rdma and name in {"", reading.rdma}]
    if not readings:
        call.err("No IB devices found\n")
        return 255
    for reading in readings:
        call.out(_device_info(machine, reading))
    return 0


def active_mtu(mtu_bytes: int) -> int:
    """The RoCE path MTU that fits an interface's MTU."""
    return max((size for size in MTUS if size <= mtu_bytes - ROCE_HEADERS_BYTES), default=256)


def _device_info(machine: HostMachine, reading: NicReading) -> str:
    family = machine.family
    vendor = "0x02c9" if family.is_mellanox else f"0x{family.vendor}"
    part = "4129" if family.is_mellanox else str(int(family.device, 16))
    board = f"\tboard_id:\t\t\t{sysfs.BOARD}\n" if family.is_mellanox else ""
    guid, mtu = sysfs.guid(reading.mac), active_mtu(reading.mtu_bytes)
    return (
        f"hca_id:\t{reading.rdma}\n\ttransport:\t\t\tInfiniBand (0)\n"
        f"\tfw_ver:\t\t\t\t{machine.running_firmware(reading)}\n"
        f"\tnode_guid:\t\t\t{guid}\n\tsys_image_guid:\t\t\t{guid}\n\tvendor_id:\t\t\t{vendor}\n"
        f"\tvendor_part_id:\t\t\t{part}\n\thw_ver:\t\t\t\t0x0\n{board}\tphys_port_cnt:\t\t\t1\n"
        f"\t\tport:\t1\n\t\t\tstate:\t\t\t{'PORT_ACTIVE (4)' if reading.is_up else 'PORT_DOWN (1)'}\n"
        f"\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{mtu} ({MTUS[mtu]})\n"
        "\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\tEthernet\n\n"
    )

"""`lspci` and `setpci`: NICs and the ports of the PCIe switches above them."""

import re
from collections.abc import Iterator, Sequence

from netkit.lab.personalities.linux_host import sysfs
from netkit.lab.personalities.linux_host.machine import HostMachine, RailCard
from netkit.lab.personality import Call

NIC = "Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]"
BRIDGE = "PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch"
CONTROL_BASE = 0x0936
READ_REQUEST_SHIFT = 12
READ_REQUEST_MASK = 0x7000
RELAXED = 0x0010
SETTING = re.compile(r"([A-Z0-9_]+\+[0-9a-f]+)\.w(?:=([0-9a-f]{1,4})(?::([0-9a-f]{1,4}))?)?\Z", re.IGNORECASE)


def bridge(card: RailCard) -> str:
    """Return the address of the port above a NIC."""
    return sysfs.nic_bridge(card.pci)


def lspci(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    words = list(call.arguments)
    flags = "".join(word[1:] for word in words if word.startswith("-") and word[1:2] not in {"s", "d"})
    if set(flags) - set("vnkDtm"):
        call.err("lspci: invalid option\n")
        return 1
    slot, vendor = _option(words, "-s"), _option(words, "-d")
    if "t" in flags:
        call.out(_tree(machine))
        return 0
    for address, card, is_nic in _devices(machine):
        if slot and slot not in {address, address.removeprefix("0000:"), address.removesuffix(".0")}:
            continue
        if vendor and not (is_nic and _matches(machine, vendor)):
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
        yield bridge(card), card, False
        yield card.pci, card, True


def _matches(machine: HostMachine, wanted: str) -> bool:
    vendor, _, device = wanted.lower().partition(":")
    own = sysfs.pci_device(machine.host.model.nic).removeprefix("0x")
    return vendor in {"", "15b3"} and device in {"", own}


def _device(machine: HostMachine, address: str, card: RailCard, flags: str, *, is_nic: bool) -> str:
    shown = address if "D" in flags else address.removeprefix("0000:")
    number = sysfs.pci_device(machine.host.model.nic).removeprefix("0x")
    codes = (f" [15b3:{number}]" if is_nic else " [1000:c030]") if "n" in flags else ""
    head = f"{shown} {NIC if is_nic else BRIDGE}{codes}\n"
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
            "\t\tProduct Name: NVIDIA ConnectX-7 HHHL Adapter Card",
            "\t\tRead-only fields:",
            f"\t\t\t[PN] Part number: {reading.part}",
            "\t\tEnd",
            "\tKernel driver in use: mlx5_core",
            "\tKernel modules: mlx5_core",
        ]
    return head + "\n".join(lines) + "\n\n"


def _tree(machine: HostMachine) -> str:
    lines = []
    for card in machine.cards.values():
        bus = card.pci.split(":")[1]
        above = bridge(card).split(":")[1]
        lines.append(f" +-[0000:{above}]---00.0-[{bus}]----00.0  {NIC.partition(': ')[2]}\n")
    return "-" + "".join(lines).lstrip()


def setpci(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    words = [word for word in call.arguments if word != "-v"]
    slot = _option(words, "-s")
    card, is_nic = _at(machine, slot)
    registers = [word for word in words if SETTING.match(word)]
    if card is None or not registers or len(registers) != len(words) - (2 if slot in words else 1):
        call.err("setpci: no such device, or a register that is not known here\n")
        return 1
    for word in registers:
        match = SETTING.match(word)
        assert match is not None  # noqa: S101 - the list was made by it
        name = match[1].upper()
        if name not in ({"CAP_EXP+8", "CAP_EXP+08"} if is_nic else {"ECAP_ACS+6", "ECAP_ACS+06"}):
            call.err(f"setpci: Unknown register {match[1]!r} of {slot}\n")
            return 1
        present = control(card) if is_nic else access_control(card)
        if match[2] is None:
            call.out(f"{present:04x}\n")
            continue
        mask = int(match[3] or "ffff", 16)
        value = present & ~mask | int(match[2], 16) & mask
        if is_nic:
            card.relaxed_ordering = bool(value & RELAXED)
            card.max_read_request_bytes = 128 << ((value & READ_REQUEST_MASK) >> READ_REQUEST_SHIFT)
        else:
            card.has_access_control = bool(value)
    return 0


def control(card: RailCard) -> int:
    """Return the device control word of a NIC."""
    steps = (card.max_read_request_bytes // 128).bit_length() - 1
    base = CONTROL_BASE & ~(READ_REQUEST_MASK | RELAXED)
    return base | steps << READ_REQUEST_SHIFT | RELAXED * card.relaxed_ordering


def access_control(card: RailCard) -> int:
    """Return the control word of the access control services above a NIC."""
    return 0x1D if card.has_access_control else 0


def _at(machine: HostMachine, slot: str) -> tuple[RailCard | None, bool]:
    for address, card, is_nic in _devices(machine):
        if slot in {address, address.removeprefix("0000:")}:
            return card, is_nic
    return None, False


LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

"""


def nvidia_smi(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    words = list(call.arguments)
    if words == ["topo", "-m"]:
        call.out("".join(f"{line}\n" for line in _matrix(machine)) + LEGEND)
        call.out("".join(f"  NIC{number}: {card.rdma}\n" for number, card in enumerate(machine.cards.values())) + "\n")
        return 0
    if words == ["-L"]:
        call.out("".join(f"GPU {number}: NVIDIA H100 80GB HBM3\n" for number in range(machine.host.model.gpus)))
        return 0
    call.err("NVIDIA-SMI of the lab answers 'topo -m' and '-L'\n")
    return 2


def _matrix(machine: HostMachine) -> Iterator[str]:
    gpus = _sockets(machine)
    cards = list(machine.cards.values())
    names = [*(f"GPU{number}" for number in gpus), *(f"NIC{number}" for number in range(len(cards)))]
    yield "\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"])
    for gpu, socket in gpus.items():
        cells = [" X " if other == gpu else "NV18" for other in gpus]
        cells += [_near(gpu, socket, number, sysfs.numa_node(card.pci)) for number, card in enumerate(cards)]
        yield "\t".join([f"GPU{gpu}", *cells, f"{socket * 56}-{socket * 56 + 55}", str(socket)])
    for number, card in enumerate(cards):
        own = sysfs.numa_node(card.pci)
        cells = [_near(gpu, socket, number, own) for gpu, socket in gpus.items()]
        for other_number, other in enumerate(cards):
            near = "NODE" if sysfs.numa_node(other.pci) == own else "SYS"
            cells.append(" X " if other_number == number else near)
        yield "\t".join([f"NIC{number}", *cells])


def _near(gpu: int, socket: int, nic: int, nic_socket: int) -> str:
    if gpu == nic:
        return "PIX"
    return "NODE" if socket == nic_socket else "SYS"


def _sockets(machine: HostMachine) -> dict[int, int]:
    """Return the processor socket of each GPU: that of the NIC beside it."""
    cards = list(machine.cards.values())
    count = machine.host.model.gpus or len(cards)
    return {gpu: sysfs.numa_node(cards[gpu].pci) if gpu < len(cards) else int(gpu >= count / 2) for gpu in range(count)}

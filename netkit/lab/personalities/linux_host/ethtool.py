"""`ethtool`, `lspci`, `setpci`, `ibv_devinfo` and `rdma`: a NIC, its module, and the PCIe switch ports above it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from netkit.lab.personalities.linux_host import sysfs
from netkit.lab.personalities.linux_host.machine import HostMachine, RailCard
from netkit.lab.personality import Call
from netkit.lab.reading import LaneReading, ModuleThresholds, NicReading, TransceiverReading

DARK_DBM = -40.0
IDENTIFIERS = {
    "OSFP": "0x19 (OSFP 8X Pluggable Transceiver)",
    "QSFP-DD": "0x18 (QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628))",
    "QSFP112": "0x1e (QSFP+ or later with CMIS)",
    "QSFP56": "0x1e (QSFP+ or later with CMIS)",
}
TECHNOLOGIES = {
    "optic": "0x06 (1310 nm EML)",
    "active": "0x00 (850 nm VCSEL)",
    "copper": "0x0a (Copper cable unequalized)",
}
LEVELS = ("high alarm", "low alarm", "high warning", "low warning")


def module_page(module: TransceiverReading) -> str:
    return "".join(f"\t{name:<41} : {value}\n" for name, value in _rows(module))


def _rows(module: TransceiverReading) -> Iterator[tuple[str, str]]:
    yield "Identifier", IDENTIFIERS.get(module.identifier, IDENTIFIERS["OSFP"])
    yield "Power class", "1" if module.kind == "copper" else "8"
    yield "Max power", "1.50W" if module.kind == "copper" else "17.00W"
    yield "Connector", "0x0c (MPO)" if module.kind == "optic" else "0x23 (No separable connector)"
    yield "Cable assembly length", f"{0 if module.kind == 'optic' else module.length_m:.2f}m"
    yield "Transmitter technology", TECHNOLOGIES[module.kind]
    yield "Vendor name", module.vendor
    yield "Vendor OUI", "48:b0:2d"
    yield "Vendor PN", module.part
    yield "Vendor rev", module.revision
    yield "Vendor SN", module.serial
    yield "Date code", "240311"
    yield "Revision compliance", "Rev. 5.0"
    if module.firmware:
        yield "Active firmware version", module.firmware
    yield "Module State", "0x03 (ModuleReady)"
    yield "LowPwrAllowRequestHW", "Off"
    yield "LowPwrRequestSW", "Off"
    if module.kind == "copper":
        return
    yield "Module temperature", _celsius(module.temperature_c)
    yield "Module voltage", f"{module.voltage_v:.4f} V"
    yield from _lanes(module.lanes)
    yield from _flags(module)
    yield from _thresholds(module)


def _lanes(lanes: tuple[LaneReading, ...]) -> Iterator[tuple[str, str]]:
    for number, lane in enumerate(lanes, 1):
        yield f"Laser tx bias current (Channel {number})", f"{lane.bias_ma:.3f} mA"
    for number, lane in enumerate(lanes, 1):
        yield f"Transmit avg optical power (Channel {number})", _power(lane.tx_dbm)
    for number, lane in enumerate(lanes, 1):
        yield f"Rcvr signal avg optical power (Channel {number})", _power(lane.rx_dbm)
    dark = ["Yes" if lane.rx_dbm <= DARK_DBM else "No" for lane in lanes]
    yield "Rx loss of signal", f"[ {', '.join(dark)} ]" if "Yes" in dark else "None"
    yield "Tx fault", "None"


def _flags(module: TransceiverReading) -> Iterator[tuple[str, str]]:
    for level in LEVELS:
        for name, value, limits in (
            ("Module temperature", module.temperature_c, module.temperature_limits),
            ("Module voltage", module.voltage_v, module.voltage_limits),
        ):
            yield f"{name} {level}", _flag(level, value, limits)
    for level in LEVELS:
        for number, lane in enumerate(module.lanes, 1):
            yield f"Laser rx power {level} (Channel {number})", _flag(level, lane.rx_dbm, module.rx_limits)
        for number, lane in enumerate(module.lanes, 1):
            yield f"Laser tx power {level} (Channel {number})", _flag(level, lane.tx_dbm, module.tx_limits)
        for number, lane in enumerate(module.lanes, 1):
            yield f"Laser bias current {level} (Channel {number})", _flag(level, lane.bias_ma, module.bias_limits)


def _thresholds(module: TransceiverReading) -> Iterator[tuple[str, str]]:
    for name, limits, show in (
        ("Laser bias current", module.bias_limits, lambda value: f"{value:.3f} mA"),
        ("Laser output power", module.tx_limits, _power),
        ("Module temperature", module.temperature_limits, _celsius),
        ("Module voltage", module.voltage_limits, lambda value: f"{value:.4f} V"),
        ("Laser rx power", module.rx_limits, _power),
    ):
        if limits is not None:
            for level in LEVELS:
                yield f"{name} {level} threshold", show(_limit(level, limits))


def _limit(level: str, limits: ModuleThresholds) -> float:
    high, alarm = level.startswith("high"), level.endswith("alarm")
    if alarm:
        return limits.alarm_high if high else limits.alarm_low
    return limits.warning_high if high else limits.warning_low


def _flag(level: str, value: float, limits: ModuleThresholds | None) -> str:
    if limits is None:
        return "Off"
    limit = _limit(level, limits)
    return "On" if (value > limit if level.startswith("high") else value < limit) else "Off"


def _power(dbm: float) -> str:
    if dbm <= DARK_DBM:
        return "0.0000 mW / -inf dBm"
    return f"{10 ** (dbm / 10):.4f} mW / {dbm:.2f} dBm"


def _celsius(value: float) -> str:
    return f"{value:.2f} degrees C / {value * 9 / 5 + 32:.2f} degrees F"


BAD_USAGE = "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n"
REAL = "/usr/sbin/ethtool"
FEC_NAMES = {"off": "Off", "rs": "RS", "baser": "BaseR", "llrs": "LLRS"}


@dataclass(frozen=True, slots=True)
class EthtoolQuery:
    """A parsed command line."""

    reading: NicReading
    words: Sequence[str]
    wants_statistics: bool


Verb = Callable[[HostMachine, EthtoolQuery, Call], int]


def ethtool(machine: HostMachine, call: Call) -> int:
    wants_statistics = bool({"-I", "--include-statistics"} & set(call.arguments))
    words = [word for word in call.arguments if word not in {"-I", "--include-statistics"}]
    option, rest = (words[0], words[1:]) if words and words[0].startswith("-") else ("", words)
    reading = next(iter(machine.node.nics(rest[0])), None) if rest and rest[0] in machine.host.cabled else None
    verb = VERBS.get(option)
    is_rail = reading is not None and reading.interface in machine.cards
    if reading is None or not (is_rail or verb in {_module, _fec}):
        result = machine.node.run(REAL, *call.arguments)
        call.out(result.stdout)
        call.err(result.stderr)
        return result.exit_code
    if verb is None:
        call.err(BAD_USAGE)
        return 1
    return verb(machine, EthtoolQuery(reading, rest[1:], wants_statistics), call)


def _statistics(machine: HostMachine, asked: EthtoolQuery, call: Call) -> int:
    family = machine.family
    rows = family.counted(family.statistics, asked.reading.ethtool)
    call.out("NIC statistics:\n" + "".join(f"     {name}: {value}\n" for name, value in rows.items()))
    return 0


def _module(_machine: HostMachine, asked: EthtoolQuery, call: Call) -> int:
    module = asked.reading.module
    if module is None:
        call.err("netlink error: Input/output error\n")
        return 1
    call.out(module_page(module))
    return 0


def _pause(machine: HostMachine, asked: EthtoolQuery, call: Call) -> int:
    name = asked.reading.interface
    state = machine.cards[name].state
    rx, tx = ("on" if is_on else "off" for is_on in (state.rx_pause, state.tx_pause))
    call.out(f"Pause parameters for {name}:\nAutonegotiate:\toff\nRX:\t\t{rx}\nTX:\t\t{tx}\n\n")
    return 0


def _set_pause(machine: HostMachine, asked: EthtoolQuery, call: Call) -> int:
    words = asked.words
    is_known = set(words[::2]) <= {"autoneg", "rx", "tx"} and set(words[1::2]) <= {"on", "off"}
    card = machine.cards[asked.reading.interface]
    state = card.state
    if not words or len(words) % 2 or not is_known:
        call.err(BAD_USAGE)
        return 1
    options = {key: value == "on" for key, value in zip(words[::2], words[1::2], strict=True)}
    if options.get("autoneg"):
        call.err("netlink error: Operation not supported\n")
        return 1
    after = replace(state, rx_pause=options.get("rx", state.rx_pause), tx_pause=options.get("tx", state.tx_pause))
    if after == state:
        call.err("rx unmodified, ignoring\ntx unmodified, ignoring\nno pause parameters changed, aborting\n")
        return 78
    # Global pause and PFC exclude each other: the driver disables PFC when pause is enabled.
    if after.rx_pause or after.tx_pause:
        after = replace(after, pfc=(0,) * len(state.pfc), buffer_of_priority=(0,) * len(state.pfc))
    card.state = after
    return 0


def _fec(_machine: HostMachine, asked: EthtoolQuery, call: Call) -> int:
    fec = asked.reading.fec
    counts = {"corrected_blocks": fec.corrected_codewords, "uncorrectable_blocks": fec.uncorrectable_codewords}
    call.out(f"FEC parameters for {asked.reading.interface}:\nSupported/Configured FEC encodings: Auto\n")
    call.out(f"Active FEC encoding: {FEC_NAMES.get(fec.mode or 'off', 'RS')}\n")
    if asked.wants_statistics:
        call.out("Statistics:\n" + "".join(f"  {name}: {count}\n" for name, count in counts.items()))
    return 0


SPELLINGS: Mapping[Verb, tuple[str, ...]] = {
    _statistics: ("-S", "--statistics"),
    _module: ("-m", "--module-info"),
    _pause: ("-a", "--show-pause"),
    _set_pause: ("-A", "--pause"),
    _fec: ("--show-fec",),
}
VERBS: Mapping[str, Verb] = {spelling: verb for verb, spellings in SPELLINGS.items() for spelling in spellings}


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

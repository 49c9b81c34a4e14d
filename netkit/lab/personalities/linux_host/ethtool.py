"""`ethtool`: counters, pause, FEC, and the CMIS memory of a module."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from netkit.lab.personalities.linux_host.machine import HostMachine
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

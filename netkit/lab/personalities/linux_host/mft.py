"""NVIDIA's firmware tools: `mlxconfig`, `mlxreg` and `mlxlink`.

The first two read and set a NIC's firmware and its registers; the last prints link, module, bit errors and the FEC
histogram of a NIC, as text or JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from netkit.lab.personalities.linux_host.machine import HostMachine, Parameter, RailCard, parameters_of, split_options
from netkit.lab.personality import Call
from netkit.lab.reading import ModuleThresholds, NicReading, TransceiverReading

PAGE = 8
FORCED = "adaptive_routing_forced_en"
WITH_VALUE = {
    "-d": "device",
    "--device": "device",
    "--reg_name": "register",
    "-i": "indexes",
    "--indexes": "indexes",
    "--set": "set",
}
RULE = "=" * 60
Rows = dict[str, object]
LINK_OPTIONS = {"-d": "device", "--device": "device", "-p": "port", "--port": "port"}
FLAGS: Mapping[str, str] = {
    "-m": "module",
    "--show_module": "module",
    "-c": "counters",
    "--show_counters": "counters",
    "-e": "eye",
    "--show_eye": "eye",
    "--rx_fec_histogram": "histogram",
    "--show_histogram": "histogram",
    "--show_device": "tool",
    "--json": "json",
}
CABLE_TYPES = {
    "optic": "Optical Module (separated)",
    "active": "Active cable (limiting)",
    "copper": "Passive copper cable",
}
DARK_DBM = -40.0
LANES = 4
MFT = "4.34.1-10"
CORRECTABLE = 15


def mlxreg(machine: HostMachine, call: Call) -> int:
    words, given = split_options(call.arguments, WITH_VALUE)
    options = {
        WITH_VALUE.get(name, name.lstrip("-")): value
        for name, value in (*given.items(), *((word, "") for word in words))
    }
    card = machine.find(options.get("device", ""))
    if card is None:
        return _fail(call, f"Failed to open device: {options.get('device', '')!r}, No such file or directory")
    register = REGISTERS.get(options.get("register", ""))
    return register(machine, call, card, options) if register else _fail(call, "the lab has only PDDR and ROCE_ACCL")


def _link_up(machine: HostMachine, call: Call, card: RailCard, options: Mapping[str, str]) -> int:
    if "get" not in options:
        return _fail(call, "the lab supports only --get of PDDR")
    if _indexes(options.get("indexes", "")) != {"local_port": 1, "page_select": PAGE}:
        return _fail(call, f"the lab has only local_port=1,page_select={PAGE}")
    reading = machine.reading(card)
    rows = {"time_to_link_up": int(reading.link_up_s * 1000) if reading.is_up else 0, "fast_link_up_status": 0}
    return _show(call, rows)


def _acceleration(_machine: HostMachine, call: Call, card: RailCard, options: Mapping[str, str]) -> int:
    if "set" in options:
        values = _indexes(options["set"])
        if values.keys() != {FORCED} or values[FORCED] not in {0, 1} or "yes" not in options:
            return _fail(call, f"the lab supports only {FORCED}=0 or 1, with --yes")
        card.state = replace(card.state, adaptive_routing_forced=bool(values[FORCED]))
        call.out("Sending access register...\n")
        return 0
    if "get" not in options:
        return _fail(call, "--get or --set is required")
    state = card.state
    return _show(call, {"roce_adp_retrans_en": state.adaptive_retransmission, FORCED: state.adaptive_routing_forced})


def _show(call: Call, rows: Mapping[str, int]) -> int:
    call.out(f"Sending access register...\n\n{'Field Name':<45} | Data\n{RULE}\n")
    for name, value in rows.items():
        call.out(f"{name:<45} | 0x{value:08x}\n")
    call.out(f"{RULE}\n")
    return 0


REGISTERS = {"PDDR": _link_up, "ROCE_ACCL": _acceleration}


def _indexes(text: str) -> dict[str, int]:
    found = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = int(value, 0)
        except ValueError:
            return {}
    return found


def _fail(call: Call, problem: str) -> int:
    call.err(f"-E- {problem}\n")
    return 1


FAILED = 3
DEVICE_OPTIONS = ("-d", "--dev", "--device")
VERBOSE, CONFIRMED = ("-e", "--enable_verbosity"), ("-y", "--yes")
MLXCONFIG_OPTIONS = frozenset({*DEVICE_OPTIONS, *VERBOSE, *CONFIRMED})


@dataclass(slots=True)
class MlxconfigArguments:
    """A parsed command line."""

    device: str = ""
    verb: str = ""
    words: tuple[str, ...] = ()
    is_verbose: bool = False
    is_confirmed: bool = False


def parse(arguments: Sequence[str]) -> MlxconfigArguments:
    words, options = split_options(arguments, DEVICE_OPTIONS)
    names = [*(option for option in options if option not in MLXCONFIG_OPTIONS), *words, ""]
    return MlxconfigArguments(
        device=next((value for option, value in options.items() if option in DEVICE_OPTIONS), ""),
        verb=names[0],
        words=tuple(names[1:-1]),
        is_verbose=not options.keys().isdisjoint(VERBOSE),
        is_confirmed=not options.keys().isdisjoint(CONFIRMED),
    )


def mlxconfig(machine: HostMachine, call: Call) -> int:
    arguments = parse(call.arguments)
    card = machine.find(arguments.device)
    if card is None:
        call.err(f"-E- Failed to open the device: {arguments.device or '(none)'}\n")
        return FAILED
    if arguments.verb in {"q", "query"}:
        return _query(machine, card, arguments, call)
    if arguments.verb in {"s", "set"}:
        return _set(machine, card, arguments, call)
    call.err(f"-E- Unknown command: {arguments.verb or '(none)'}\n")
    return FAILED


def _head(reading: NicReading, device: str) -> str:
    return (
        "\nDevice #1:\n----------\n\n"
        f"{'Device type:':<20}ConnectX7           \n{'Name:':<20}{reading.part}\n"
        f"{'Description:':<20}NVIDIA ConnectX-7 HHHL Adapter Card; 400GbE / NDR IB; single-port OSFP; PCIe 5.0 x16\n"
        f"{'Device:':<20}{device}\n\n"
    )


def _query(machine: HostMachine, card: RailCard, arguments: MlxconfigArguments, call: Call) -> int:
    parameters = parameters_of(machine.host)
    names = [word.upper() for word in arguments.words] or list(parameters)
    unknown = [name for name in names if name not in parameters]
    if unknown:
        call.err(f"-E- The Device doesn't support {unknown[0]} parameter\n")
        return FAILED
    call.out(_head(machine.reading(card), arguments.device))
    headers = ("Default", "Current", "Next Boot") if arguments.is_verbose else ("Next Boot",)
    columns = "".join(f"{name:<20}" for name in headers).rstrip()
    call.out(f"{'Configurations:':<56}{columns}\n")
    for name in names:
        call.out(_row(machine, card, parameters[name], is_verbose=arguments.is_verbose))
    if arguments.is_verbose:
        call.out("The '*' shows parameters with next value different from default/current value.\n")
    return 0


def _row(machine: HostMachine, card: RailCard, parameter: Parameter, *, is_verbose: bool) -> str:
    current = machine.firmware.current(card.pci, parameter.name)
    after = machine.firmware.next(card.pci, parameter.name)
    if not is_verbose:
        return f"        {parameter.name:<48}{parameter.show(after)}\n"
    mark = "*" if parameter.default != after or current != after else " "
    cells = "".join(f"{parameter.show(value):<20}" for value in (parameter.default, current, after))
    return f"{mark}       {parameter.name:<48}{cells}\n"


def _set(machine: HostMachine, card: RailCard, arguments: MlxconfigArguments, call: Call) -> int:
    values, parameters = {}, parameters_of(machine.host)
    for word in arguments.words:
        name, _, text = word.partition("=")
        parameter = parameters.get(name.upper())
        if parameter is None:
            call.err(f"-E- The Device doesn't support {name.upper()} parameter\n")
            return FAILED
        number = parameter.read(text)
        if number is None:
            call.err(f"-E- Failed to parse value {text!r} of {name.upper()}\n")
            return FAILED
        values[parameter.name] = number
    if not values:
        call.err("-E- No parameters were given\n")
        return FAILED
    call.out(_head(machine.reading(card), arguments.device))
    call.out(f"{'Configurations:':<56}{'Next Boot':<20}{'New':<20}\n")
    for name, number in values.items():
        shown = parameters[name].show(machine.firmware.next(card.pci, name))
        call.out(f"        {name:<48}{shown:<20}{parameters[name].show(number):<20}\n")
    if arguments.is_confirmed:
        call.out("\n Apply new Configuration? (y/n) [n] : y\n")
    elif call.ask("\n Apply new Configuration? (y/n) [n] : ").strip().lower() not in {"y", "yes"}:
        call.out("-E- Aborted by user\n")
        return FAILED
    machine.firmware.set(card.pci, values)
    call.out("Applying... Done!\n-I- Please reboot machine to load new configurations.\n")
    return 0


def mlxlink(machine: HostMachine, call: Call) -> int:
    device, options, rest = "", set(), list(call.arguments)
    if rest in (["-v"], ["--version"]):
        call.out(f"{call.program}, mft {MFT}, built on Mar 11 2025, 10:13:46. Git SHA Hash: N/A\n")
        return 0
    while rest:
        word = rest.pop(0)
        if word in LINK_OPTIONS and rest:
            value = rest.pop(0)
            device = value if LINK_OPTIONS[word] == "device" else device
        elif word in FLAGS:
            options.add(FLAGS[word])
        else:
            return _fail_link(call, options, f"Invalid argument: {word}")
    card = machine.find(device)
    if card is None:
        return _fail_link(call, options, f"Failed to open device: {device!r}, No such file or directory")
    output = dict(_sections(machine.reading(card), options))
    if "json" in options:
        call.out(_document(0, "success", output))
    else:
        call.out(_text(output))
    return 0


def _fail_link(call: Call, options: set[str], problem: str) -> int:
    if "json" in options or "--json" in call.arguments:
        call.out(_document(1, problem, {}))
    else:
        call.err(f"-E- {problem}\n")
    return 1


def _document(code: int, message: str, output: Mapping[str, Rows]) -> str:
    document = {"result": {"output": output}, "status": {"code": code, "message": message}}
    return json.dumps(document, indent=4) + "\n"


def _sections(reading: NicReading, options: set[str]) -> Iterator[tuple[str, Rows]]:
    yield "Operational Info", _operation(reading)
    yield "Troubleshooting Info", _troubleshooting(reading)
    yield "Tool Information", {"Firmware Version": reading.firmware, "MFT Version": MFT, "amBER Version": "3.8"}
    if "module" in options:
        yield "Module Info", module_rows(reading.module)
    if "counters" in options:
        yield "Physical Counters and BER Info", _counters(reading)
    if "histogram" in options:
        rows: Rows = {"Header": {"values": ["Range", "Occurrences"]}}
        for number, count in enumerate(reading.fec.histogram[: CORRECTABLE + 1]):
            rows[f"Bin {number}"] = {"values": [f"[{number}]", str(count)]}
        yield "Histogram of FEC Errors", rows


def _operation(reading: NicReading) -> Rows:
    return {
        "State": "Active" if reading.is_up else "Polling",
        "Physical state": "ETH_AN_FSM_ENABLE" if reading.is_up else "ETH_AN_FSM_AN_ENABLE",
        "Speed": f"{reading.speed_gbps}G" if reading.is_up else "N/A",
        "Width": "4x" if reading.is_up else "N/A",
        "FEC": "Standard_RS-FEC - (544,514)" if reading.is_up and reading.fec.mode else "N/A",
        "Loopback Mode": "No Loopback",
        "Auto Negotiation": "ON",
    }


def _troubleshooting(reading: NicReading) -> Rows:
    if reading.is_up:
        return {"Status Opcode": "0", "Group Opcode": "N/A", "Recommendation": "No issue was observed"}
    if reading.module is None:
        return {"Status Opcode": "1024", "Group Opcode": "MNG FW", "Recommendation": "Cable is unplugged"}
    return {
        "Status Opcode": "2",
        "Group Opcode": "PHY FW",
        "Recommendation": "Negotiation failure, no partner detected",
    }


def module_rows(module: TransceiverReading | None) -> Rows:
    if module is None:
        return {"Identifier": "N/A", "Cable Type": "Unplugged"}
    is_copper = module.kind == "copper"
    rows: Rows = {
        "Identifier": module.identifier,
        "Compliance": module.media,
        "Cable Technology": "Copper cable unequalized" if is_copper else "1310 nm DFB laser",
        "Cable Type": CABLE_TYPES[module.kind],
        "OUI": "Nvidia",
        "Vendor Name": module.vendor,
        "Vendor Part Number": module.part,
        "Vendor Serial Number": module.serial,
        "Rev": module.revision,
        "FW Version": module.firmware or "N/A",
        "Digital Diagnostic Monitoring": "No" if is_copper else "Yes",
        "Power Class": "1 (1.5 W max)" if is_copper else "8 (17.0 W max)",
        "Module State": "Ready state",
    }
    if not is_copper:
        rows |= {
            "Temperature [C]": f"{module.temperature_c:.0f} {_range(module.temperature_limits, 0)}",
            "Voltage [mV]": f"{module.voltage_v * 1000:.1f} {_range(module.voltage_limits, 0, 1000)}",
        }
    rows |= _lane_rows(module)
    return rows


def _lane_rows(module: TransceiverReading) -> Rows:
    lanes = module.lanes
    if not lanes:
        return {"Bias Current [mA]": "N/A", "Rx Power Current [dBm]": "N/A", "Tx Power Current [dBm]": "N/A"}
    bias, rx, tx = (
        f"{','.join(f'{value:.3f}' for value in values)} {_range(limits, 3)}"
        for values, limits in (
            ([lane.bias_ma for lane in lanes], module.bias_limits),
            ([lane.rx_dbm for lane in lanes], module.rx_limits),
            ([lane.tx_dbm for lane in lanes], module.tx_limits),
        )
    )
    return {
        "Bias Current [mA]": bias,
        "Rx Power Current [dBm]": rx,
        "Tx Power Current [dBm]": tx,
        "Rx Power Type": "Average power",
        "Rx LOS [per lane]": {"values": [str(int(lane.rx_dbm <= DARK_DBM)) for lane in lanes]},
        "Tx LOS [per lane]": {"values": ["0"] * len(lanes)},
        "Tx Fault [per lane]": {"values": ["0"] * len(lanes)},
        "Rx CDR LOL [per lane]": {"values": [str(int(lane.rx_dbm <= DARK_DBM)) for lane in lanes]},
        "Tx CDR LOL [per lane]": {"values": ["0"] * len(lanes)},
        "DataPath state [per lane]": {"values": ["DPActivated" if lane.bias_ma else "DPDeactivated" for lane in lanes]},
        "SNR Media Lanes [dB]": {"values": ["N/A"] * len(lanes)},
        "Module FW Fault": "0",
        "DataPath FW Fault": "0",
    }


def _range(limits: ModuleThresholds | None, digits: int, factor: float = 1) -> str:
    if limits is None:
        return "[N/A]"
    low, high = (f"{value * factor:.{digits}f}" for value in (limits.alarm_low, limits.alarm_high))
    return f"[{low}..{high}]"


def _counters(reading: NicReading) -> Rows:
    fec, counters = reading.fec, reading.ethtool
    errors = [counters.get(f"rx_err_lane_{lane}_phy", 0) for lane in range(LANES)]
    bits = counters.get("rx_bits_phy", 0) / LANES
    return {
        "Time Since Last Clear [Min]": "N/A",
        "Effective Physical Errors": str(fec.uncorrectable_codewords),
        "Effective Physical BER": scientific(fec.effective_ber),
        "Raw Physical BER": scientific(fec.pre_fec_ber),
        "Raw Physical BER Per Lane": {"values": [scientific(count / bits if bits else 0) for count in errors]},
        "Raw Physical Errors Per Lane": {"values": [str(count) for count in errors]},
        "Link Down Counter": str(counters.get("link_down_events_phy", 0)),
        "Link Error Recovery Counter": "0",
    }


def scientific(rate: float) -> str:
    """Format a bit error rate as mlxlink does; 15E-255 means no errors."""
    if rate <= 0:
        return "15E-255"
    digits, _, exponent = f"{rate:.0E}".partition("E")
    return f"{digits}E{int(exponent):+03d}".replace("+", "").replace("E-0", "E-")


def _text(output: Mapping[str, Rows]) -> str:
    lines = []
    for name, rows in output.items():
        lines += ["", name, "-" * len(name)]
        for key, value in rows.items():
            text = ",".join(value["values"]) if isinstance(value, dict) else value
            lines.append(f"{key:<35}: {text}")
    return "\n".join(lines) + "\n"

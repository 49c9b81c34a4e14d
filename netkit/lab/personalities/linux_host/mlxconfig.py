"""`mlxconfig` and `mlxreg`: settings in a NIC's firmware and its registers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from netkit.lab.personalities.linux_host.machine import HostMachine, Parameter, RailCard, parameters_of
from netkit.lab.personality import Call
from netkit.lab.reading import NicReading

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


def mlxreg(machine: HostMachine, call: Call) -> int:
    options = _parse_options(call.arguments)
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


def _parse_options(words: Sequence[str]) -> Mapping[str, str]:
    options, rest = {}, list(words)
    while rest:
        word = rest.pop(0)
        if word in WITH_VALUE and rest:
            options[WITH_VALUE[word]] = rest.pop(0)
        else:
            options[word.lstrip("-")] = ""
    return options


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


@dataclass(slots=True)
class MlxconfigArguments:
    """A parsed command line."""

    device: str = ""
    verb: str = ""
    words: tuple[str, ...] = ()
    is_verbose: bool = False
    is_confirmed: bool = False


def parse(words: Sequence[str]) -> MlxconfigArguments:
    arguments, rest, names = MlxconfigArguments(), list(words), []
    while rest:
        word = rest.pop(0)
        match word:
            case "-d" | "--dev" | "--device" if rest:
                arguments.device = rest.pop(0)
            case "-e" | "--enable_verbosity":
                arguments.is_verbose = True
            case "-y" | "--yes":
                arguments.is_confirmed = True
            case _:
                names.append(word)
    arguments.verb, arguments.words = (names[0] if names else ""), tuple(names[1:])
    return arguments


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

"""`mlnx_qos`, iproute2's `dcb` and AMD's `nicctl`: trust, PFC, traffic classes and receive buffers of a NIC."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from netkit.lab.personalities.linux_host.machine import (
    CODE_POINT_DEFAULTS,
    CODE_POINTS,
    MAX_BUFFER_BYTES,
    PRIORITIES,
    HostMachine,
    VolatileNicSettings,
)
from netkit.lab.personality import Call

FLAGS = frozenset({"-a", "-P", "--get_pfc"})
SPELLINGS: Mapping[str, str] = {
    "-i": "interface",
    "--interface": "interface",
    "-f": "pfc",
    "--pfc": "pfc",
    "-p": "prio_tc",
    "--prio_tc": "prio_tc",
    "-s": "tsa",
    "--tsa": "tsa",
    "-t": "tcbw",
    "--tcbw": "tcbw",
    "-d": "dcbx",
    "--dcbx": "dcbx",
    "--trust": "trust",
    "--dscp2prio": "dscp2prio",
}


class MlnxQosUsageError(Exception):
    """The tool's error message for invalid arguments."""


@dataclass(frozen=True, slots=True)
class MlnxQosArguments:
    """A parsed command line; `dscp2prio` may occur several times."""

    interface: str
    settings: tuple[tuple[str, str], ...]


def parse(arguments: Sequence[str]) -> MlnxQosArguments:
    """Parse a command line; raise MlnxQosUsageError."""
    interface, settings, rest = "", [], list(arguments)
    while rest:
        option, _, value = rest.pop(0).partition("=")
        if option in FLAGS:
            continue
        if option not in SPELLINGS:
            raise MlnxQosUsageError(f"mlnx_qos: error: no such option: {option}")
        if not value:
            if not rest:
                raise MlnxQosUsageError(f"mlnx_qos: error: {option} option requires 1 argument")
            value = rest.pop(0)
        name = SPELLINGS[option]
        if name == "interface":
            interface = value
        else:
            settings.append((name, value))
    if not interface:
        raise MlnxQosUsageError("Interface name is required")
    if {"trust", "dscp2prio"} <= {name for name, _ in settings}:
        raise MlnxQosUsageError("trust and dscp2prio commands cannot be used at the same time")
    return MlnxQosArguments(interface, tuple(settings))


def change(state: VolatileNicSettings, settings: Sequence[tuple[str, str]]) -> VolatileNicSettings:
    """Apply settings in order; raise MlnxQosUsageError without changing anything."""
    for name, value in settings:
        match name:
            case "dcbx" if value in {"os", "fw"}:
                state = replace(state, is_os_controlled=value == "os")
            case "dcbx" if value != "get":
                raise MlnxQosUsageError(f"{value}: dcbx mode is os, fw or get")
            case "trust":
                state = _trust(state, value)
            case "dscp2prio":
                state = _dscp2prio(state, value)
            case "pfc":
                state = with_pfc(state, _eight_numbers(value, 1))
            case "prio_tc":
                state = replace(state, class_of_priority=_eight_numbers(value, PRIORITIES - 1))
            case "tcbw":
                state = replace(state, weights_percent=_eight_numbers(value, 100))
            case "tsa":
                algorithms = tuple(value.split(","))
                if len(algorithms) != PRIORITIES or not set(algorithms) <= {"strict", "ets", "vendor"}:
                    raise MlnxQosUsageError("tsa is eight of strict, ets, vendor")
                state = replace(state, algorithms=algorithms)
    if any(name in {"tsa", "tcbw"} for name, _ in settings):
        _check_weights(state)
    return state


def _eight_numbers(value: str, high: int) -> tuple[int, ...]:
    parts = value.split(",")
    if len(parts) != PRIORITIES or not all(part.isdecimal() and int(part) <= high for part in parts):
        raise MlnxQosUsageError(f"{value}: expected {PRIORITIES} numbers of 0..{high}, separated by commas")
    return tuple(map(int, parts))


def _trust(state: VolatileNicSettings, value: str) -> VolatileNicSettings:
    if value not in {"dscp", "pcp"}:
        raise MlnxQosUsageError("trust state is pcp or dscp")
    if value == state.trust:
        return state
    return replace(state, trust=value, priority_of_dscp=CODE_POINT_DEFAULTS)


def _dscp2prio(state: VolatileNicSettings, value: str) -> VolatileNicSettings:
    verb, *numbers = value.split(",")
    if value == "flush":
        return _trust(state, "pcp")
    if verb not in {"set", "del"} or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        raise MlnxQosUsageError("dscp2prio is set,<dscp>,<prio>, del,<dscp>,<prio> or flush")
    dscp, priority = map(int, numbers)
    if dscp >= CODE_POINTS or priority >= PRIORITIES:
        raise MlnxQosUsageError(f"dscp is 0..{CODE_POINTS - 1}, priority is 0..{PRIORITIES - 1}")
    priorities = list(state.priority_of_dscp)
    priorities[dscp] = priority if verb == "set" else 0
    # The first entry makes the NIC trust the DSCP.
    return replace(state, trust="dscp", priority_of_dscp=tuple(priorities))


def with_pfc(state: VolatileNicSettings, pfc: tuple[int, ...]) -> VolatileNicSettings:
    """Set the lossless priorities; the firmware gives them a separate receive buffer."""
    return replace(state, pfc=pfc, buffer_of_priority=pfc)


def _check_weights(state: VolatileNicSettings) -> None:
    rows = list(zip(state.algorithms, state.weights_percent, strict=True))
    if any(weight for algorithm, weight in rows if algorithm == "strict"):
        raise MlnxQosUsageError("Strict TSA must have no bandwidth")
    if any(algorithm == "ets" for algorithm, _ in rows) and sum(weight for _, weight in rows) != 100:
        raise MlnxQosUsageError("ETS TSA must have bandwidth of total 100")


def show(state: VolatileNicSettings) -> str:
    """Print the whole state, as mlnx_qos does after every call."""
    return "".join(f"{line}\n" for line in _lines(state))


def _lines(state: VolatileNicSettings) -> Iterator[str]:
    yield f"DCBX mode: {'OS' if state.is_os_controlled else 'Firmware'} controlled"
    yield f"Priority trust state: {state.trust}"
    if state.trust == "dscp":
        yield "dscp2prio mapping:"
        for priority in range(PRIORITIES):
            dscps = [f"{dscp:02}" for dscp in reversed(range(CODE_POINTS)) if state.priority_of_dscp[dscp] == priority]
            for start in range(0, len(dscps), PRIORITIES):
                yield f"\tprio:{priority} dscp:{','.join(dscps[start : start + PRIORITIES])},"
    yield "default priority:"
    sizes = ",".join(map(str, state.buffer_bytes))
    yield f"Receive buffer size (bytes): {sizes},max_buffer_size={MAX_BUFFER_BYTES}"
    yield f"Cable len: {state.cable_length_m}"
    yield "PFC configuration:"
    rows = {"priority": range(PRIORITIES), "enabled": state.pfc, "buffer": state.buffer_of_priority}
    for name, row in rows.items():
        yield f"\t{name}".ljust(13) + "   ".join(map(str, row))
    for number in range(PRIORITIES):
        yield from _class_lines(state, number)


def _class_lines(state: VolatileNicSettings, number: int) -> Iterator[str]:
    limit = f"{state.rate_limits_gbps[number]} Gbps" if state.rate_limits_gbps[number] else "unlimited"
    algorithm = state.algorithms[number]
    share = f", bw: {state.weights_percent[number]}%" if algorithm == "ets" else ""
    yield f"tc: {number} ratelimit: {limit}, tsa: {algorithm}{share}"
    for priority in range(PRIORITIES):
        if state.class_of_priority[priority] == number:
            yield f"\t priority:  {priority}"


def mlnx_qos(machine: HostMachine, call: Call) -> int:
    try:
        request = parse(call.arguments)
        card = machine.find(request.interface)
        if card is None or card.interface != request.interface:
            raise MlnxQosUsageError(f"Interface {request.interface} does not exist or has no DCB support")
        card.state = change(card.state, request.settings)
    except MlnxQosUsageError as error:
        call.err(f"{error}\n")
        return 1
    call.out(show(card.state))
    return 0


Parameters = dict[str, dict[str, str]]
"""Parameter → index → value: `prio-pfc all:off 3:on` is {"prio-pfc": {"all": "off", "3": "on"}}."""


def dcb(machine: HostMachine, call: Call) -> int:
    words = [word for word in call.arguments if not word.startswith("-")]
    if len(words) < 4 or words[2] != "dev" or words[0] not in OBJECTS:
        call.err("Usage: dcb OBJECT { show | set | replace } dev DEV [ PARAMETERS ]\n")
        return 1
    kind, verb, _, name, *rest = words
    card = machine.cards.get(name)
    classes = machine.family.traffic_classes
    if card is None or not classes:
        call.err(f"dev {name}: No such device\n" if card is None else "RTNETLINK answers: Operation not supported\n")
        return 1
    if verb == "show":
        call.out(_as_text(_show_object(kind, card.state, classes)))
        return 0
    if (kind, verb) not in SETTERS:
        call.err(f'What is "{verb}"?\n')
        return 1
    try:
        parameters = _parse_parameters(rest)
        if any(int(tc) >= classes for name in ("tc-tsa", "tc-bw") for tc in parameters.get(name, {}) if tc != "all"):
            raise MlnxQosUsageError(f"the NIC has {classes} traffic classes")
        card.state = SETTERS[kind, verb](card.state, parameters)
    except (MlnxQosUsageError, KeyError, ValueError) as error:
        call.err(f"Error: {error}\n")
        return 1
    return 0


def _parse_parameters(words: Sequence[str]) -> Parameters:
    parameters: Parameters = {}
    name = ""
    for word in words:
        index, colon, value = word.partition(":")
        if not colon:
            name = word
            parameters[name] = {}
        elif not name:
            raise MlnxQosUsageError(f"{word} without a parameter")
        else:
            parameters[name][index] = value
    return parameters


Rows = list[tuple[str, object]]


def _show_object(kind: str, state: VolatileNicSettings, classes: int) -> Rows:
    match kind:
        case "dcbx":
            return [("host" if state.is_os_controlled else "lld-managed", True), ("ieee", True)]
        case "app":
            dscps = [("dscp-prio", _numbered(state.priority_of_dscp))] if state.trust == "dscp" else []
            ports = [("dgram-port-prio", dict(state.priority_of_port))] if state.priority_of_port else []
            return [*dscps, *ports]
        case "pfc":
            enabled = _numbered(["on" if is_on else "off" for is_on in state.pfc])
            return [("pfc-cap", 8), ("macsec-bypass", "off"), ("delay", 4096), ("prio-pfc", enabled)]
        case "buffer":
            sizes = _numbered([f"{size // 1000}Kb" if size else "0b" for size in state.buffer_bytes])
            priorities = _numbered(state.buffer_of_priority)
            return [("prio-buffer", priorities), ("buffer-size", sizes), ("total-size", "2069Kb")]
        case _:
            return [
                ("willing", "off"),
                ("ets-cap", classes),
                ("cbs", "off"),
                ("tc-bw", _numbered(state.weights_percent[:classes])),
                ("pg-bw", _numbered([0] * PRIORITIES)),
                ("tc-tsa", _numbered(state.algorithms[:classes])),
                ("prio-tc", _numbered(state.class_of_priority)),
            ]


def _numbered(values: Sequence[object]) -> dict[str, object]:
    return {str(number): value for number, value in enumerate(values)}


def _as_text(rows: Rows) -> str:
    lines: list[str] = []
    for key, value in rows:
        if isinstance(value, dict):
            lines.append(f"{key} " + " ".join(f"{index}:{one}" for index, one in value.items()) + " ")
        else:
            word = key if value is True else f"{key} {value}"
            # Scalars share the first line.
            if lines and ":" not in lines[-1]:
                lines[-1] += f"{word} "
            else:
                lines.append(f"{word} ")
    return "".join(f"{line}\n" for line in lines)


def _replace_app(state: VolatileNicSettings, parameters: Parameters) -> VolatileNicSettings:
    if "dgram-port-prio" in parameters:
        return replace(state, priority_of_port=tuple(parameters["dgram-port-prio"].items()))
    return change(
        state, [("dscp2prio", f"set,{dscp},{priority}") for dscp, priority in parameters["dscp-prio"].items()]
    )


def _set_pfc(state: VolatileNicSettings, parameters: Parameters) -> VolatileNicSettings:
    row = _merge(["on" if is_on else "off" for is_on in state.pfc], parameters["prio-pfc"])
    if not set(row) <= {"on", "off"}:
        raise MlnxQosUsageError("prio-pfc is on or off")
    return with_pfc(state, tuple(int(value == "on") for value in row))


def _set_ets(state: VolatileNicSettings, parameters: Parameters) -> VolatileNicSettings:
    settings = []
    for name, option, current in (
        ("prio-tc", "prio_tc", state.class_of_priority),
        ("tc-tsa", "tsa", state.algorithms),
        ("tc-bw", "tcbw", state.weights_percent),
    ):
        if name in parameters:
            settings.append((option, ",".join(_merge(list(map(str, current)), parameters[name]))))
    return change(state, settings)


def _merge(current: list[str], values: Mapping[str, str]) -> list[str]:
    row = [values["all"]] * PRIORITIES if "all" in values else list(current)
    for index, value in values.items():
        if index != "all":
            if not index.isdecimal() or int(index) >= PRIORITIES:
                raise MlnxQosUsageError(f"{index} is not 0..7")
            row[int(index)] = value
    return row


OBJECTS = ("dcbx", "app", "pfc", "ets", "buffer")
SETTERS: Mapping[tuple[str, str], Callable[[VolatileNicSettings, Parameters], VolatileNicSettings]] = {
    ("dcbx", "set"): lambda state, parameters: replace(state, is_os_controlled="host" in parameters),
    ("app", "replace"): _replace_app,
    ("pfc", "set"): _set_pfc,
    ("ets", "set"): _set_ets,
}


Options = Mapping[str, str]
RANGE = re.compile(r"(\d{1,2})(?:-(\d{1,2}))?")


def nicctl(machine: HostMachine, call: Call) -> int:
    words = list(call.arguments)
    at = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    verb = VERBS.get(" ".join(words[:at]))
    try:
        options = _options(words[at:])
        if verb is None:
            raise ValueError(f"unknown command: {' '.join(words[:at])}")
        chosen = [card for card in machine.cards.values() if options.get("-r", card.rdma) == card.rdma]
        if not chosen:
            raise ValueError(f"no such RDMA device: {options['-r']}")
        after = [verb(card.state, options) for card in chosen]
    except (KeyError, ValueError) as error:
        call.err(f"Error: {error}\n")
        return 1
    for card, state in zip(chosen, after, strict=True):
        card.state = state
    return 0


def _options(words: Sequence[str]) -> Options:
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        name = rest.pop(0)
        if name == "--all":
            continue
        if not name.startswith("-") or not rest:
            raise ValueError(f"bad argument {name}")
        found[name] = rest.pop(0)
    return found


def _port(state: VolatileNicSettings, options: Options) -> VolatileNicSettings:
    if options["--pause-type"] != "pfc":
        raise ValueError("the lab's NICs take --pause-type pfc")
    return replace(state, rx_pause=False, tx_pause=False)


def _classification(state: VolatileNicSettings, options: Options) -> VolatileNicSettings:
    return replace(state, trust=options["--classification-type"])


def _dscp(state: VolatileNicSettings, options: Options) -> VolatileNicSettings:
    priority, priorities = _number(options["--priority"], PRIORITIES), list(state.priority_of_dscp)
    for run in options["--dscp"].split(","):
        match = RANGE.fullmatch(run)
        if match is None or int(match[2] or match[1]) >= CODE_POINTS:
            raise ValueError(f"{run} is not a range of DSCPs")
        for dscp in range(int(match[1]), int(match[2] or match[1]) + 1):
            priorities[dscp] = priority
    return replace(state, priority_of_dscp=tuple(priorities))


def _pfc(state: VolatileNicSettings, options: Options) -> VolatileNicSettings:
    row = list(state.pfc)
    row[_number(options["--priority"], PRIORITIES)] = int(options["--no-drop"] == "enable")
    return replace(state, pfc=tuple(row), buffer_of_priority=tuple(row))


def _scheduling(state: VolatileNicSettings, options: Options) -> VolatileNicSettings:
    priorities = [_number(word, PRIORITIES) for word in options["--priority"].split(",")]
    shares = [_number(word, 101) for word in options["--dwrr"].split(",")]
    weights = dict(zip(priorities, shares, strict=True))
    if sum(shares) != 100:
        raise ValueError(f"the shares are {sum(shares)}, not 100")
    return replace(state, weights_percent=tuple(weights.get(one, 0) for one in range(PRIORITIES)))


def _dcqcn(state: VolatileNicSettings, options: Options) -> VolatileNicSettings:
    return replace(state, cnp_dscp=_number(options["--cnp-dscp"], CODE_POINTS))


def _number(word: str, end: int) -> int:
    if not word.isdecimal() or int(word) >= end:
        raise ValueError(f"{word} is not 0..{end - 1}")
    return int(word)


VERBS: Mapping[str, Callable[[VolatileNicSettings, Options], VolatileNicSettings]] = {
    "update port": _port,
    "update qos": _classification,
    "update qos dscp-to-priority": _dscp,
    "update qos pfc": _pfc,
    "update qos scheduling": _scheduling,
    "update dcqcn": _dcqcn,
}

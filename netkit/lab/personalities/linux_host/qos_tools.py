"""`mlnx_qos`, and `dcb` of iproute2: trust, PFC, traffic classes and receive buffers of a NIC."""

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
    """The tool would not do this; the text is what it says."""


@dataclass(frozen=True, slots=True)
class MlnxQosArguments:
    """A command line, taken apart; `dscp2prio` may stand in it several times."""

    interface: str
    settings: tuple[tuple[str, str], ...]


def parse(arguments: Sequence[str]) -> MlnxQosArguments:
    """Return a command line taken apart; raises UsageError."""
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
    """Return the state after some settings; raises UsageError and changes nothing."""
    for name, value in settings:
        if name != "dcbx" or value != "get":
            state = CHANGES[name](state, value)
    if any(name in {"tsa", "tcbw"} for name, _ in settings):
        _check_weights(state)
    return state


def _eight(value: str, high: int) -> tuple[int, ...]:
    parts = value.split(",")
    if len(parts) != PRIORITIES or not all(part.isdecimal() and int(part) <= high for part in parts):
        raise MlnxQosUsageError(f"{value}: expected {PRIORITIES} numbers of 0..{high}, separated by commas")
    return tuple(map(int, parts))


def _dcbx(state: VolatileNicSettings, value: str) -> VolatileNicSettings:
    if value not in {"os", "fw"}:
        raise MlnxQosUsageError(f"{value}: dcbx mode is os, fw or get")
    return replace(state, is_os_controlled=value == "os")


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
    wanted = priority if verb == "set" else 0
    changed = tuple(wanted if at == dscp else old for at, old in enumerate(state.priority_of_dscp))
    # The first entry makes the NIC trust the DSCP.
    return replace(state, trust="dscp", priority_of_dscp=changed)


def _pfc(state: VolatileNicSettings, value: str) -> VolatileNicSettings:
    return with_pfc(state, _eight(value, 1))


def with_pfc(state: VolatileNicSettings, pfc: tuple[int, ...]) -> VolatileNicSettings:
    """Return a state with other lossless priorities, which the firmware gives a receive buffer of their own."""
    return replace(state, pfc=pfc, buffer_of_priority=pfc)


def _tsa(state: VolatileNicSettings, value: str) -> VolatileNicSettings:
    names = tuple(value.split(","))
    if len(names) != PRIORITIES or not set(names) <= {"strict", "ets", "vendor"}:
        raise MlnxQosUsageError("tsa is eight of strict, ets, vendor")
    return replace(state, algorithms=names)


def _check_weights(state: VolatileNicSettings) -> None:
    rows = list(zip(state.algorithms, state.weights_percent, strict=True))
    if any(weight for algorithm, weight in rows if algorithm == "strict"):
        raise MlnxQosUsageError("Strict TSA must have no bandwidth")
    if any(algorithm == "ets" for algorithm, _ in rows) and sum(weight for _, weight in rows) != 100:
        raise MlnxQosUsageError("ETS TSA must have bandwidth of total 100")


CHANGES: Mapping[str, Callable[[VolatileNicSettings, str], VolatileNicSettings]] = {
    "dcbx": _dcbx,
    "trust": _trust,
    "dscp2prio": _dscp2prio,
    "pfc": _pfc,
    "prio_tc": lambda state, value: replace(state, class_of_priority=_eight(value, PRIORITIES - 1)),
    "tsa": _tsa,
    "tcbw": lambda state, value: replace(state, weights_percent=_eight(value, 100)),
}


def show(state: VolatileNicSettings) -> str:
    """Return the whole state, as the tool prints it after every call."""
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
    """Answer one command line."""
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


Given = dict[str, dict[str, str]]


def dcb(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    words = [word for word in call.arguments if not word.startswith("-")]
    if len(words) < 4 or words[2] != "dev" or words[0] not in SHOWS:
        call.err("Usage: dcb OBJECT { show | set | replace } dev DEV [ PARAMETERS ]\n")
        return 1
    part, verb, _, name, *rest = words
    card = machine.cards.get(name)
    if card is None:
        call.err(f"dev {name}: No such device\n")
        return 1
    if verb == "show":
        call.out(_as_text(SHOWS[part](card.state)))
        return 0
    act = SETS.get((part, verb))
    if act is None:
        call.err(f'What is "{verb}"?\n')
        return 1
    try:
        card.state = act(card.state, _given(rest))
    except (MlnxQosUsageError, KeyError, ValueError) as error:
        call.err(f"Error: {error}\n")
        return 1
    return 0


def _given(words: Sequence[str]) -> Given:
    given: Given = {}
    last = ""
    for word in words:
        index, colon, value = word.partition(":")
        if not colon:
            last = word
            given[last] = {}
        elif not last:
            raise MlnxQosUsageError(f"{word} without a parameter")
        else:
            given[last][index] = value
    return given


Rows = list[tuple[str, object]]


def _show_dcbx(state: VolatileNicSettings) -> Rows:
    return [("host", True), ("ieee", True)] if state.is_os_controlled else [("lld-managed", True), ("ieee", True)]


def _show_app(state: VolatileNicSettings) -> Rows:
    if state.trust != "dscp":
        return []
    return [("dscp-prio", _numbered(state.priority_of_dscp))]


def _show_pfc(state: VolatileNicSettings) -> Rows:
    return [
        ("pfc-cap", 8),
        ("macsec-bypass", "off"),
        ("delay", 4096),
        ("prio-pfc", {str(number): "on" if on else "off" for number, on in enumerate(state.pfc)}),
    ]


def _show_ets(state: VolatileNicSettings) -> Rows:
    return [
        ("willing", "off"),
        ("ets-cap", 8),
        ("cbs", "off"),
        ("tc-bw", _numbered(state.weights_percent)),
        ("pg-bw", _numbered([0] * PRIORITIES)),
        ("tc-tsa", _numbered(state.algorithms)),
        ("prio-tc", _numbered(state.class_of_priority)),
    ]


def _show_buffer(state: VolatileNicSettings) -> Rows:
    sizes = {str(number): f"{size // 1000}Kb" if size else "0b" for number, size in enumerate(state.buffer_bytes)}
    return [("prio-buffer", _numbered(state.buffer_of_priority)), ("buffer-size", sizes), ("total-size", "2069Kb")]


def _numbered(values: Sequence[object]) -> dict[str, object]:
    return {str(number): value for number, value in enumerate(values)}


def _as_text(rows: Rows) -> str:
    lines: list[str] = []
    for key, value in rows:
        if isinstance(value, dict):
            lines.append(f"{key} " + " ".join(f"{index}:{one}" for index, one in value.items()) + " ")
        else:
            word = key if value is True else f"{key} {value}"
            # What is no list stands on the first line together.
            if lines and ":" not in lines[-1]:
                lines[-1] += f"{word} "
            else:
                lines.append(f"{word} ")
    return "".join(f"{line}\n" for line in lines)


def _set_dcbx(state: VolatileNicSettings, given: Given) -> VolatileNicSettings:
    return replace(state, is_os_controlled="host" in given)


def _replace_app(state: VolatileNicSettings, given: Given) -> VolatileNicSettings:
    wanted = {int(dscp): int(priority) for dscp, priority in given["dscp-prio"].items()}
    if not all(dscp < CODE_POINTS and priority < PRIORITIES for dscp, priority in wanted.items()):
        raise MlnxQosUsageError("a DSCP is 0..63 and a priority 0..7")
    pairs = [("dscp2prio", f"set,{dscp},{priority}") for dscp, priority in wanted.items()]
    return change(state, pairs)


def _set_pfc(state: VolatileNicSettings, given: Given) -> VolatileNicSettings:
    row = _row(["on" if on else "off" for on in state.pfc], given["prio-pfc"])
    if not set(row) <= {"on", "off"}:
        raise MlnxQosUsageError("prio-pfc is on or off")
    return with_pfc(state, tuple(int(value == "on") for value in row))


def _set_ets(state: VolatileNicSettings, given: Given) -> VolatileNicSettings:
    pairs = []
    if "prio-tc" in given:
        pairs.append(("prio_tc", ",".join(_row(list(map(str, state.class_of_priority)), given["prio-tc"]))))
    if "tc-tsa" in given:
        pairs.append(("tsa", ",".join(_row(list(state.algorithms), given["tc-tsa"]))))
    if "tc-bw" in given:
        pairs.append(("tcbw", ",".join(_row(list(map(str, state.weights_percent)), given["tc-bw"]))))
    return change(state, pairs)


def _row(present: list[str], given: Mapping[str, str]) -> list[str]:
    row = [given["all"]] * PRIORITIES if "all" in given else list(present)
    for index, value in given.items():
        if index != "all":
            if not index.isdecimal() or int(index) >= PRIORITIES:
                raise MlnxQosUsageError(f"{index} is not 0..7")
            row[int(index)] = value
    return row


SHOWS: Mapping[str, Callable[[VolatileNicSettings], Rows]] = {
    "dcbx": _show_dcbx,
    "app": _show_app,
    "pfc": _show_pfc,
    "ets": _show_ets,
    "buffer": _show_buffer,
}
SETS: Mapping[tuple[str, str], Callable[[VolatileNicSettings, Given], VolatileNicSettings]] = {
    ("dcbx", "set"): _set_dcbx,
    ("app", "replace"): _replace_app,
    ("pfc", "set"): _set_pfc,
    ("ets", "set"): _set_ets,
}

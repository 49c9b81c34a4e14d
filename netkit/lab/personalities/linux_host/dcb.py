"""`dcb` of iproute2: the same settings as `mlnx_qos`, in the words of the kernel's own tools."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from netkit.lab.personalities.linux_host.machine import CODE_POINTS, PRIORITIES, HostMachine, VolatileNicSettings
from netkit.lab.personalities.linux_host.mlnx_qos import MlnxQosUsageError, change, with_pfc
from netkit.lab.personality import Call

DSCP_NAMES: Mapping[int, str] = {
    **{8 * number: f"CS{number}" for number in range(PRIORITIES)},
    **{8 * high + 2 * low: f"AF{high}{low}" for high in range(1, 5) for low in range(1, 4)},
    46: "EF",
}
Given = dict[str, dict[str, str]]


def dcb(machine: HostMachine, call: Call) -> int:
    """Answer one command line."""
    flags = "".join(word.lstrip("-") for word in call.arguments if word.startswith("-"))
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
        rows = SHOWS[part](card.state, is_numeric="N" in flags)
        call.out(json.dumps(_as_json(rows)) + "\n" if "j" in flags else _as_text(rows))
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


def _show_dcbx(state: VolatileNicSettings, *, is_numeric: bool) -> Rows:  # noqa: ARG001 - all of them are called alike
    return [("host", True), ("ieee", True)] if state.is_os_controlled else [("lld-managed", True), ("ieee", True)]


def _show_app(state: VolatileNicSettings, *, is_numeric: bool) -> Rows:
    if state.trust != "dscp":
        return []
    names = {dscp: str(dscp) if is_numeric else DSCP_NAMES.get(dscp, str(dscp)) for dscp in range(CODE_POINTS)}
    return [("dscp-prio", {names[dscp]: priority for dscp, priority in enumerate(state.priority_of_dscp)})]


def _show_pfc(state: VolatileNicSettings, *, is_numeric: bool) -> Rows:  # noqa: ARG001 - all of them are called alike
    return [
        ("pfc-cap", 8),
        ("macsec-bypass", "off"),
        ("delay", 4096),
        ("prio-pfc", {str(number): "on" if on else "off" for number, on in enumerate(state.pfc)}),
    ]


def _show_ets(state: VolatileNicSettings, *, is_numeric: bool) -> Rows:  # noqa: ARG001 - all of them are called alike
    return [
        ("willing", "off"),
        ("ets-cap", 8),
        ("cbs", "off"),
        ("tc-bw", _numbered(state.weights_percent)),
        ("pg-bw", _numbered([0] * PRIORITIES)),
        ("tc-tsa", _numbered(state.algorithms)),
        ("prio-tc", _numbered(state.class_of_priority)),
    ]


def _show_buffer(state: VolatileNicSettings, *, is_numeric: bool) -> Rows:  # noqa: ARG001 - all of them are called alike
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


def _as_json(rows: Rows) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in rows:
        name = key.replace("-", "_")
        if key == "dscp-prio" and isinstance(value, dict):
            found[name] = [[int(dscp) if dscp.isdecimal() else dscp, priority] for dscp, priority in value.items()]
        elif isinstance(value, dict):
            found[name] = [one == "on" if one in {"on", "off"} else one for one in value.values()]
        else:
            found[name] = value == "on" if value in {"on", "off"} else value
    return found


def _set_dcbx(state: VolatileNicSettings, given: Given) -> VolatileNicSettings:
    return replace(state, is_os_controlled="host" in given)


def _replace_app(state: VolatileNicSettings, given: Given) -> VolatileNicSettings:
    wanted = {int(dscp): int(priority) for dscp, priority in given["dscp-prio"].items()}
    if not all(dscp < CODE_POINTS and priority < PRIORITIES for dscp, priority in wanted.items()):
        raise MlnxQosUsageError("a DSCP is 0..63 and a priority 0..7")
    pairs = [("dscp2prio", f"set,{dscp},{priority}") for dscp, priority in wanted.items()]
    return change(state, pairs)


def _flush_app(state: VolatileNicSettings, _given: Given) -> VolatileNicSettings:
    return change(state, [("dscp2prio", "flush")])


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


def _set_buffer(state: VolatileNicSettings, given: Given) -> VolatileNicSettings:
    row = _row(list(map(str, state.buffer_of_priority)), given["prio-buffer"])
    return change(state, [("prio2buffer", ",".join(row))])


def _row(present: list[str], given: Mapping[str, str]) -> list[str]:
    row = [given["all"]] * PRIORITIES if "all" in given else list(present)
    for index, value in given.items():
        if index != "all":
            if not index.isdecimal() or int(index) >= PRIORITIES:
                raise MlnxQosUsageError(f"{index} is not 0..7")
            row[int(index)] = value
    return row


SHOWS: Mapping[str, Callable[..., Rows]] = {
    "dcbx": _show_dcbx,
    "app": _show_app,
    "pfc": _show_pfc,
    "ets": _show_ets,
    "buffer": _show_buffer,
}
SETS: Mapping[tuple[str, str], Callable[[VolatileNicSettings, Given], VolatileNicSettings]] = {
    ("dcbx", "set"): _set_dcbx,
    ("app", "replace"): _replace_app,
    ("app", "add"): _replace_app,
    ("app", "flush"): _flush_app,
    ("pfc", "set"): _set_pfc,
    ("ets", "set"): _set_ets,
    ("buffer", "set"): _set_buffer,
}

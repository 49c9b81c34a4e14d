"""`nicctl`: PFC, classes and congestion control of AMD's NICs, as far as AMD's guides give commands for them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from netkit.lab.personalities.linux_host.machine import CODE_POINTS, PRIORITIES, HostMachine, VolatileNicSettings
from netkit.lab.personality import Call

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

"""`ethtool`: link, pause, FEC, counters and module of a NIC. Interfaces that are no rails go to the real program."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from netkit.lab.personalities.linux_host.ethtool_module import module_page
from netkit.lab.personalities.linux_host.machine import Card, Machine
from netkit.lab.personality import Call

BAD_USAGE = "ethtool: bad command line argument(s)\nFor more information run ethtool -h\n"
REAL = "/usr/sbin/ethtool"
FECS = ("auto", "off", "rs", "baser", "llrs")
FEC_NAMES = {"auto": "Auto", "off": "Off", "rs": "RS", "baser": "BaseR", "llrs": "LLRS"}
FEATURES: Mapping[str, bool] = {
    "rx-checksumming": True,
    "tx-checksumming": True,
    "scatter-gather": True,
    "tcp-segmentation-offload": True,
    "generic-segmentation-offload": True,
    "generic-receive-offload": True,
    "large-receive-offload": False,
    "rx-vlan-offload": True,
    "tx-vlan-offload": True,
    "ntuple-filters": False,
    "receive-hashing": True,
}
SHORT = {"rx": "rx-checksumming", "tx": "tx-checksumming", "sg": "scatter-gather", "tso": "tcp-segmentation-offload"}
SHORT |= {"gso": "generic-segmentation-offload", "gro": "generic-receive-offload", "lro": "large-receive-offload"}
SHORT |= {"rxvlan": "rx-vlan-offload", "txvlan": "tx-vlan-offload", "ntuple": "ntuple-filters"}
SHORT |= {"rxhash": "receive-hashing"}


@dataclass(frozen=True, slots=True)
class Question:
    """A command line about a NIC, taken apart."""

    card: Card
    words: Sequence[str]
    wants_json: bool
    wants_statistics: bool


Verb = Callable[[Machine, Question, Call], int]


def ethtool(machine: Machine, call: Call) -> int:
    """Answer one command line."""
    wants_json = bool({"-j", "--json"} & set(call.arguments))
    wants_statistics = bool({"-I", "--include-statistics"} & set(call.arguments))
    words = [word for word in call.arguments if word not in {"-I", "--include-statistics", "-j", "--json"}]
    option, rest = (words[0], words[1:]) if words and words[0].startswith("-") else ("", words)
    card = machine.cards.get(rest[0]) if rest else None
    if card is None:
        done = machine.node.run(REAL, *call.arguments)
        call.out(done.stdout)
        call.err(done.stderr)
        return done.exit_code
    verb = VERBS.get(option)
    if verb is None or (wants_json and verb not in WITH_JSON):
        call.err(BAD_USAGE)
        return 1
    return verb(machine, Question(card, rest[1:], wants_json, wants_statistics), call)


def _link(machine: Machine, asked: Question, call: Call) -> int:
    reading = machine.reading(asked.card)
    mode = f"{reading.speed_gbps}000baseCR4/Full" if not reading.module else f"{reading.speed_gbps}000baseDR4/Full"
    speed = f"{reading.speed_gbps * 1000}Mb/s" if reading.is_up else "Unknown!"
    call.out(
        f"Settings for {asked.card.interface}:\n"
        "\tSupported ports: [ FIBRE ]\n"
        f"\tSupported link modes:   {mode}\n"
        "\tSupported pause frame use: Symmetric\n"
        "\tSupports auto-negotiation: Yes\n"
        "\tSupported FEC modes: RS\n"
        f"\tAdvertised link modes:  {mode}\n"
        f"\tAdvertised auto-negotiation: {'Yes' if asked.card.state.autonegotiation else 'No'}\n"
        f"\tSpeed: {speed}\n"
        f"\tDuplex: {'Full' if reading.is_up else 'Unknown! (255)'}\n"
        f"\tAuto-negotiation: {_on(is_on=asked.card.state.autonegotiation)}\n"
        "\tPort: FIBRE\n\tPHYAD: 0\n\tTransceiver: internal\n\tSupports Wake-on: d\n\tWake-on: d\n"
        f"\tLink detected: {'yes' if reading.is_up else 'no'}\n"
    )
    return 0


def _set_link(machine: Machine, asked: Question, call: Call) -> int:
    given = dict(zip(asked.words[::2], asked.words[1::2], strict=False))
    speed = machine.reading(asked.card).speed_gbps * 1000
    if len(asked.words) % 2 or not given or not set(given) <= {"autoneg", "speed", "duplex"}:
        call.err(BAD_USAGE)
        return 1
    if given.get("speed", str(speed)) != str(speed) or given.get("duplex", "full") != "full":
        call.err("netlink error: Invalid argument\n")
        return 1
    if "autoneg" in given:
        asked.card.state = replace(asked.card.state, autonegotiation=given["autoneg"] == "on")
    return 0


def _driver(machine: Machine, asked: Question, call: Call) -> int:
    reading = machine.reading(asked.card)
    call.out(
        f"driver: {reading.driver}\nversion: 24.10-1.1.4\nfirmware-version: {reading.firmware} (MT_0000000838)\n"
        f"expansion-rom-version: \nbus-info: {reading.pci}\nsupports-statistics: yes\nsupports-test: yes\n"
        "supports-eeprom-access: no\nsupports-register-dump: no\nsupports-priv-flags: yes\n"
    )
    return 0


def _statistics(machine: Machine, asked: Question, call: Call) -> int:
    rows = machine.reading(asked.card).ethtool
    call.out("NIC statistics:\n" + "".join(f"     {name}: {value}\n" for name, value in rows.items()))
    return 0


def _module(machine: Machine, asked: Question, call: Call) -> int:
    module = machine.reading(asked.card).module
    if module is None:
        call.err("netlink error: Input/output error\n")
        return 1
    call.out(module_page(module))
    return 0


def _pause(machine: Machine, asked: Question, call: Call) -> int:
    state, name = asked.card.state, asked.card.interface
    counters = machine.reading(asked.card).ethtool
    frames = {side: counters.get(f"{side}_pause_ctrl_phy", 0) for side in ("tx", "rx")}
    if asked.wants_json:
        row: dict[str, object] = {"ifname": name, "autonegotiate": False, "rx": state.rx_pause, "tx": state.tx_pause}
        if asked.wants_statistics:
            row["statistics"] = {f"{side}_pause_frames": count for side, count in frames.items()}
        call.out(json.dumps([row]) + "\n")
        return 0
    call.out(f"Pause parameters for {name}:\nAutonegotiate:\toff\n")
    call.out(f"RX:\t\t{_on(is_on=state.rx_pause)}\nTX:\t\t{_on(is_on=state.tx_pause)}\n")
    if asked.wants_statistics:
        rows = "".join(f"  {side}_pause_frames: {count}\n" for side, count in frames.items())
        call.out(f"Statistics:\n{rows}")
    call.out("\n")
    return 0


def _set_pause(_machine: Machine, asked: Question, call: Call) -> int:
    given = _pairs(asked.words, {"autoneg", "rx", "tx"})
    state = asked.card.state
    if given is None:
        call.err(BAD_USAGE)
        return 1
    if given.get("autoneg"):
        call.err("netlink error: Operation not supported\n")
        return 1
    after = replace(state, rx_pause=given.get("rx", state.rx_pause), tx_pause=given.get("tx", state.tx_pause))
    if after == state:
        call.err("rx unmodified, ignoring\ntx unmodified, ignoring\nno pause parameters changed, aborting\n")
        return 78
    # Global pause and PFC exclude each other: the driver takes PFC away where pause comes on.
    if after.rx_pause or after.tx_pause:
        after = replace(after, pfc=(0,) * len(state.pfc), buffer_of_priority=(0,) * len(state.pfc))
    asked.card.state = after
    return 0


def _fec(machine: Machine, asked: Question, call: Call) -> int:
    fec = machine.reading(asked.card).fec
    configured, active = FEC_NAMES[asked.card.state.fec], FEC_NAMES.get(fec.mode or "off", "RS")
    counts = {"corrected_blocks": fec.corrected_codewords, "uncorrectable_blocks": fec.uncorrectable_codewords}
    if asked.wants_json:
        row: dict[str, object] = {"ifname": asked.card.interface, "config": [configured], "active": [active]}
        if asked.wants_statistics:
            row["statistics"] = {name: {"total": count} for name, count in counts.items()}
        call.out(json.dumps([row]) + "\n")
        return 0
    call.out(f"FEC parameters for {asked.card.interface}:\nSupported/Configured FEC encodings: {configured}\n")
    call.out(f"Active FEC encoding: {active}\n")
    if asked.wants_statistics:
        call.out("Statistics:\n" + "".join(f"  {name}: {count}\n" for name, count in counts.items()))
    return 0


def _set_fec(_machine: Machine, asked: Question, call: Call) -> int:
    if len(asked.words) != 2 or asked.words[0] != "encoding" or asked.words[1].lower() not in {"auto", "rs"}:
        call.err("netlink error: Invalid argument\n" if asked.words[1:2] else BAD_USAGE)
        return 1
    asked.card.state = replace(asked.card.state, fec=asked.words[1].lower())
    return 0


def _features(_machine: Machine, asked: Question, call: Call) -> int:
    shown = {**FEATURES, **dict(asked.card.state.features)}
    call.out(f"Features for {asked.card.interface}:\n")
    call.out("".join(f"{name}: {_on(is_on=is_on)}\n" for name, is_on in shown.items()))
    return 0


def _set_features(_machine: Machine, asked: Question, call: Call) -> int:
    given = _pairs([SHORT.get(word, word) for word in asked.words], set(FEATURES))
    if given is None:
        call.err(BAD_USAGE)
        return 1
    asked.card.state = replace(
        asked.card.state, features=tuple(sorted({**dict(asked.card.state.features), **given}.items()))
    )
    return 0


def _address(machine: Machine, asked: Question, call: Call) -> int:
    call.out(f"Permanent address: {machine.reading(asked.card).mac}\n")
    return 0


def _pairs(words: Sequence[str], keys: set[str]) -> dict[str, bool] | None:
    if not words or len(words) % 2 or not set(words[::2]) <= keys or not set(words[1::2]) <= {"on", "off"}:
        return None
    return {key: value == "on" for key, value in zip(words[::2], words[1::2], strict=True)}


def _on(*, is_on: bool) -> str:
    return "on" if is_on else "off"


WITH_JSON = (_pause, _fec)
SPELLINGS: Mapping[Verb, tuple[str, ...]] = {
    _link: ("",),
    _set_link: ("-s", "--change"),
    _driver: ("-i", "--driver"),
    _statistics: ("-S", "--statistics"),
    _module: ("-m", "--module-info"),
    _pause: ("-a", "--show-pause"),
    _set_pause: ("-A", "--pause"),
    _fec: ("--show-fec",),
    _set_fec: ("--set-fec",),
    _features: ("-k", "--show-features", "--show-offload"),
    _set_features: ("-K", "--features", "--offload"),
    _address: ("-P", "--show-permaddr"),
}
VERBS: Mapping[str, Verb] = {spelling: verb for verb, spellings in SPELLINGS.items() for spelling in spellings}

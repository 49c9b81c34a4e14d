"""`mlxreg` and `mstreg`: of the registers of a NIC, how long its link took, and what RoCE is forced to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from netkit.lab.personalities.linux_host.machine import Card, Machine
from netkit.lab.personality import Call

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


def mlxreg(machine: Machine, call: Call) -> int:
    """Answer one command line."""
    given = _given(call.arguments)
    card = machine.find(given.get("device", ""))
    if card is None:
        return _fail(call, f"Failed to open device: {given.get('device', '')!r}, No such file or directory")
    register = REGISTERS.get(given.get("register", ""))
    return register(machine, call, card, given) if register else _fail(call, "the lab knows PDDR and ROCE_ACCL only")


def _link_up(machine: Machine, call: Call, card: Card, given: Mapping[str, str]) -> int:
    if "get" not in given:
        return _fail(call, "the lab knows PDDR only to --get it")
    if _indexes(given.get("indexes", "")) != {"local_port": 1, "page_select": PAGE}:
        return _fail(call, f"the lab knows local_port=1,page_select={PAGE} only")
    reading = machine.reading(card)
    rows = {"time_to_link_up": int(reading.link_up_s * 1000) if reading.is_up else 0, "fast_link_up_status": 0}
    return _show(call, rows)


def _acceleration(machine: Machine, call: Call, card: Card, given: Mapping[str, str]) -> int:
    del machine
    if "set" in given:
        wanted = _indexes(given["set"])
        if wanted.keys() != {FORCED} or wanted[FORCED] not in {0, 1} or "yes" not in given:
            return _fail(call, f"the lab takes {FORCED}=0 or 1 only, and with --yes")
        card.state = replace(card.state, adaptive_routing_forced=bool(wanted[FORCED]))
        call.out("Sending access register...\n")
        return 0
    if "get" not in given:
        return _fail(call, "give --get or --set")
    state = card.state
    return _show(call, {"roce_adp_retrans_en": state.adaptive_retransmission, FORCED: state.adaptive_routing_forced})


def _show(call: Call, rows: Mapping[str, int]) -> int:
    call.out(f"Sending access register...\n\n{'Field Name':<45} | Data\n{RULE}\n")
    for name, value in rows.items():
        call.out(f"{name:<45} | 0x{value:08x}\n")
    call.out(f"{RULE}\n")
    return 0


REGISTERS = {"PDDR": _link_up, "ROCE_ACCL": _acceleration}


def _given(words: Sequence[str]) -> Mapping[str, str]:
    given, rest = {}, list(words)
    while rest:
        word = rest.pop(0)
        if word in WITH_VALUE and rest:
            given[WITH_VALUE[word]] = rest.pop(0)
        else:
            given[word.lstrip("-")] = ""
    return given


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

"""`mlxreg` and `mstreg`: registers of a NIC; of them the lab has one page, the one that tells how long a link took."""

from collections.abc import Mapping, Sequence

from netkit.lab.personalities.linux_host.machine import Machine
from netkit.lab.personality import Call

REGISTER, PAGE = "PDDR", 8
WITH_VALUE = {
    "-d": "device",
    "--device": "device",
    "--reg_name": "register",
    "-i": "indexes",
    "--indexes": "indexes",
}
RULE = "=" * 60


def mlxreg(machine: Machine, call: Call) -> int:
    """Answer one command line."""
    given = _given(call.arguments)
    card = machine.find(given.get("device", ""))
    if card is None:
        return _fail(call, f"Failed to open device: {given.get('device', '')!r}, No such file or directory")
    if given.get("register") != REGISTER or "get" not in given:
        return _fail(call, "the lab knows the register PDDR only, and only to --get it")
    if _indexes(given.get("indexes", "")) != {"local_port": 1, "page_select": PAGE}:
        return _fail(call, f"the lab knows local_port=1,page_select={PAGE} only")
    reading = machine.reading(card)
    rows = {"time_to_link_up": int(reading.link_up_s * 1000) if reading.is_up else 0, "fast_link_up_status": 0}
    call.out(f"Sending access register...\n\n{'Field Name':<45} | Data\n{RULE}\n")
    for name, value in rows.items():
        call.out(f"{name:<45} | 0x{value:08x}\n")
    call.out(f"{RULE}\n")
    return 0


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

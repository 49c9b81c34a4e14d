"""Lists in configuration lines: one line in, one setting per item; EOS puts them together again when it prints."""

import re
from collections.abc import Sequence

from netkit.lab.personalities.eos.words import numbers

HIGHEST = {"dscps": 63, "priorities": 7}
SPREAD = frozenset((*HIGHEST, "ethernets"))
_PORT_LIST = re.compile(r"[a-z]+(\d[\d/]*(?:-\d[\d/]*)?(?:,\d[\d/]*(?:-\d[\d/]*)?)*)", re.ASCII | re.IGNORECASE)


def take_list(kind: str, words: Sequence[str], ports: Sequence[str]) -> tuple[tuple[str, ...], int] | None:
    """Return the items at the start of words, and how many words they were; None when there are none."""
    if kind == "ethernets":
        found = port_list(words[0], ports) if words else ()
        return (found, 1) if found else None
    items: list[str] = []
    used = 0
    for word in words:
        some = numbers(word, HIGHEST[kind])
        if not some:
            break
        items.extend(map(str, some))
        used += 1
    return (tuple(dict.fromkeys(items)), used) if items else None


def port_list(word: str, ports: Sequence[str]) -> tuple[str, ...]:
    """Return the ports of `Ethernet1/1` or `Et1/1-2/1,5/1`; empty when one of them is not there."""
    found = _PORT_LIST.fullmatch(word)
    typed = re.match(r"[a-zA-Z]+", word)
    if not found or not typed or len(typed[0]) < 2 or not "ethernet".startswith(typed[0].lower()):
        return ()
    result: list[str] = []
    for part in found[1].split(","):
        first, _, last = part.partition("-")
        low, high = f"Ethernet{first}", f"Ethernet{last or first}"
        if low not in ports or high not in ports:
            return ()
        result.extend(ports[ports.index(low) : ports.index(high) + 1])
    return tuple(result)


def short_list(ports: Sequence[str]) -> str:
    """Return several ports as EOS prints them: `Et1/1,1/5`; one port keeps its name."""
    if len(ports) == 1:
        return ports[0]
    return "Et" + ",".join(port.removeprefix("Ethernet") for port in ports)

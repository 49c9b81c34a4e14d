"""The output of `show interfaces hardware`, `show inventory` and `show version` → a model file of the catalogue."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from netkit.errors import HardwareError, Problem
from netkit.platforms.model_file import SLOWEST_GBPS, answer, breakout, cage_range, gbps, written

PLATFORM, INVENTORY, VERSION = "show-interfaces-hardware.json", "show-inventory.json", "show-version.json"
FILES = {
    PLATFORM: "show interfaces hardware | json",
    INVENTORY: "show inventory | json",
    VERSION: "show version | json",
}
PORT = re.compile(r"Ethernet(\d+)/(\d+)")
OF_A_CARD = re.compile(r"Ethernet\d+/\d+/\d+")


def model_file(files: Mapping[str, str], name: str) -> str:
    """A model file with all that the outputs state. HardwareError if they do not describe a switch."""
    hardware, inventory, version = (answer(files, file, command) for file, command in FILES.items())
    own = str(version.get("modelName") or "")
    if not (name or own):
        raise HardwareError(Problem("has no modelName", "give --name", file=VERSION))
    ports, left_out = _ports(hardware.get("interfaces"))
    lanes, cages = _lanes(ports), sorted(ports)
    slots = inventory.get("xcvrSlots")
    if not isinstance(slots, dict) or not {str(cage) for cage in cages} <= set(slots):
        message = f"its xcvrSlots are not those of the {len(cages)} cages in {PLATFORM}"
        raise HardwareError(Problem(message, "take all files from one switch", file=INVENTORY))
    rows = list(_splits(ports, lanes))
    if not rows:
        message = f"no interface lists a speed of {SLOWEST_GBPS}G or more, such as 400Gbps"
        raise HardwareError(Problem(message, f"save the output of: {FILES[PLATFORM]}", file=PLATFORM))
    head = (
        f"{name or own}, from what EOS states on a switch.",
        "null is not in its output: give the value and where you read it, or leave it.",
        "A cage of N ports that list a speed splits into N of it: compare with the manual of the switch.",
        "Of the speeds of an unsplit cage, only the fastest is here: how many lanes others use is not in its output.",
        "How many ports it can have at once, and whether a breakout blocks the next cage, is not in its output.",
        *([f"Not for the fabric, so not here: {', '.join(left_out)}."] if left_out else []),
    )
    known: dict[str, Any] = {
        "vendor": version.get("mfgName"),
        "cages": {"value": len(cages), "source": "hardware"},
        "lanes_per_cage": {"value": lanes, "source": "hardware"},
        "breakouts": rows,
        "platforms": {"eos": {"source": "hardware", "port": "Ethernet{cage}/{lane}"}},
    }
    return written(head, name or own, {"hardware": f"{FILES[PLATFORM]} of a switch"}, known)


def _ports(interfaces: Any) -> tuple[dict[int, dict[int, set[int]]], list[str]]:
    """Cage → first lane → speeds, and the names of ports that are in no cage that splits."""
    found: dict[int, dict[int, set[int]]] = {}
    if not isinstance(interfaces, dict):
        raise HardwareError(Problem("has no interfaces", f"save the output of: {FILES[PLATFORM]}", file=PLATFORM))
    if any(OF_A_CARD.fullmatch(name) for name in interfaces):
        raise HardwareError(
            Problem("has the ports of line cards", "a model file describes a switch without them", file=PLATFORM)
        )
    for name, row in interfaces.items():
        if match := PORT.fullmatch(name):
            found.setdefault(int(match[1]), {})[int(match[2])] = set(_speeds(row))
    if sorted(found) != list(range(1, len(found) + 1)) or not found:
        cages = f"cages {cage_range(sorted(found), 0)}" if found else "no port of a cage, such as Ethernet1/1"
        raise HardwareError(
            Problem(f"has {cages}", "write the model by hand: cages have to count from 1", file=PLATFORM)
        )
    return found, sorted(name for name in interfaces if name.startswith("Ethernet") and not PORT.fullmatch(name))


def _speeds(row: Any) -> Iterator[int]:
    """Yield the speeds of the fabric that an interface lists."""
    modes = row.get("modes") if isinstance(row, dict) else None
    for mode in modes if isinstance(modes, list) else ():
        link = mode.get("link") if isinstance(mode, dict) else None
        speed = gbps(link.get("speed")) if isinstance(link, dict) else None
        if speed and speed >= SLOWEST_GBPS:
            yield speed


def _lanes(ports: Mapping[int, Mapping[int, set[int]]]) -> int:
    """The number of lanes of a cage; its ports have the numbers of their first lanes."""
    firsts = {tuple(sorted(one)) for one in ports.values()}
    first = max(firsts, key=len)
    steps = {after - before for before, after in pairwise(first)}
    if len(firsts) > 1 or first[0] != 1 or len(steps) != 1:
        numbers = "; ".join(sorted(", ".join(map(str, one)) for one in firsts))
        message = f"ports of cages do not have the same lanes everywhere: {numbers}"
        raise HardwareError(Problem(message, "write the model by hand, from a shipped one", file=PLATFORM))
    return len(first) * steps.pop()


def _splits(ports: Mapping[int, Mapping[int, set[int]]], lanes: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each way to split a cage, by the cages that have it."""
    having: dict[tuple[int, int], list[int]] = {}
    for cage, by_lane in sorted(ports.items()):
        listed = set().union(*by_lane.values())
        for speed in listed:
            firsts = sorted(lane for lane, speeds in by_lane.items() if speed in speeds)
            if len(firsts) == 1 and speed < max(listed):
                continue  # an unsplit port may use fewer lanes at this speed: the output does not show how many
            if lanes % len(firsts) == 0 and firsts == list(range(1, lanes + 1, lanes // len(firsts))):
                having.setdefault((len(firsts), speed), []).append(cage)
    for (count, speed), cages in sorted(having.items(), key=lambda row: (row[0][0], -row[0][1])):
        yield breakout(count, speed, lanes // count, cages, len(ports), "hardware")

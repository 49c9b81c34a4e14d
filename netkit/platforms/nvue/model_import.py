"""The output of `nv show platform` and `nv show interface` → a model file of the hardware catalogue."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from netkit.errors import HardwareError, Problem
from netkit.platforms.model_file import answer, breakout, gbps, written

PLATFORM, INTERFACES = "nv-show-platform.json", "nv-show-interface.json"
FILES = {PLATFORM: "nv show platform -o json", INTERFACES: "nv show interface -o json"}
GROUP = re.compile(r"(\d+)\s*x\s*(\d+)G-([\w-]+)")
"""A part of port-layout, such as 64 x 800G-OSFP."""
PORT = re.compile(r"swp(\d+)(?:s(\d+))?")
LANES = {"OSFP": 8, "QSFP-DD": 8, "QSFPDD": 8, "QSFP112": 4, "QSFP56": 4, "QSFP28": 4}


def model_file(files: Mapping[str, str], name: str) -> str:
    """A model file with all that the outputs state. HardwareError if they do not describe a switch."""
    platform = answer(files, PLATFORM, FILES[PLATFORM])
    interfaces = answer(files, INTERFACES, FILES[INTERFACES])
    own = next((str(platform[key]) for key in ("product-name", "system-type", "model") if platform.get(key)), "")
    if not (name or own):
        raise HardwareError(Problem("names no product", "give --name", file=PLATFORM))
    cages, speed, form, others = _layout(str(platform.get("port-layout") or ""))
    lanes = LANES.get(form)
    if lanes is None:
        message = f"port-layout has {form}, and netkit does not know how many lanes that has"
        raise HardwareError(Problem(message, f"write the model by hand; known: {', '.join(LANES)}", file=PLATFORM))
    rows = list(_splits(interfaces, cages, cages + others, lanes))
    if not any((row["ports"], row["speed_gbps"]) == (1, speed) for row in rows):
        rows.insert(0, breakout(1, speed, lanes, range(1, cages + 1), cages, "platform"))
    head = (
        f"{name or own}, from what Cumulus Linux states on a switch.",
        "null is not in its output: give the value and where you read it, or leave it.",
        "Of breakouts, only those in use are in its output, for the cages that use them: add the others.",
        "Whether a breakout blocks the next cage is not in its output: set `disables`.",
        *([f"Not for the fabric, so not here: {others} of {cages + others} ports."] if others else []),
    )
    sources = {
        "platform": f"{FILES[PLATFORM]} of a switch",
        "interfaces": f"{FILES[INTERFACES]} of a switch: ports in use",
        "form": f"the lanes that {form} has, by its specification",
    }
    known: dict[str, Any] = {
        "vendor": platform.get("manufacturer"),
        "asic": _stated(platform.get("asic-model")),
        "cages": _stated(cages),
        "cage_form": _stated("QSFP-DD" if form == "QSFPDD" else form),
        "lanes_per_cage": {"value": lanes, "source": "form"},
        "breakouts": rows,
        "platforms": {"nvue": {"source": "interfaces", "port": "swp{cage}", "subport": "swp{cage}s{sub0}"}},
    }
    return written(head, name or own, sources, known)


def _stated(value: object) -> dict[str, Any]:
    return {"value": value, "source": "platform" if value else None}


def _layout(text: str) -> tuple[int, int, str, int]:
    """The number, speed and form of the cages of the fabric, and the number of other ports.

    The fastest cages come first on every switch, so the others have the last numbers.
    """
    parts = [GROUP.fullmatch(part.strip()) for part in text.split("&")]
    groups = [(int(part[2]), int(part[1]), part[3]) for part in parts if part]
    if len(groups) != len(parts) or max(groups)[0] != groups[0][0]:
        message = f"port-layout is {text!r}, not such as '64 x 800G-OSFP & 1 x 25G-SFP28'"
        raise HardwareError(Problem(message, f"save the output of: {FILES[PLATFORM]}", file=PLATFORM))
    (speed, cages, form), *rest = groups
    if not 1 <= cages <= 1024:
        raise HardwareError(Problem(f"port-layout has {cages} cages", "copy it again", file=PLATFORM))
    return cages, speed, form, sum(count for _, count, _ in rest)


def _splits(interfaces: Mapping[str, Any], cages: int, last: int, lanes: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each breakout in use, by the cages that use it."""
    subports: dict[int, dict[int, int | None]] = {}
    for name, row in interfaces.items():
        match = PORT.fullmatch(name)
        if match and int(match[1]) <= cages:
            link = row.get("link") if isinstance(row, dict) else None
            speed = gbps(link.get("speed")) if isinstance(link, dict) else None
            subports.setdefault(int(match[1]), {})[int(match[2] or 0)] = speed
    numbers = {int(match[1]) for match in map(PORT.fullmatch, interfaces) if match}
    if not numbers or numbers - set(range(1, last + 1)) or set(range(1, cages + 1)) - set(subports):
        message = f"its ports are not those of the {last} in port-layout"
        raise HardwareError(Problem(message, f"take it and {PLATFORM} from one switch", file=INTERFACES))
    having: dict[tuple[int, int], list[int]] = {}
    for cage, ports in sorted(subports.items()):
        speeds = {speed for speed in ports.values() if speed}
        if sorted(ports) != list(range(len(ports))) or lanes % len(ports):
            message = f"swp{cage} has the ports {', '.join(f's{port}' for port in sorted(ports))}"
            raise HardwareError(Problem(message, "write the model by hand: these are not equal ports", file=INTERFACES))
        if len(speeds) == 1 and len(ports) > 1:
            having.setdefault((len(ports), speeds.pop()), []).append(cage)
    for (count, speed), used in sorted(having.items()):
        yield breakout(count, speed, lanes // count, used, cages, "interfaces")

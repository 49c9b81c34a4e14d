"""The device folder of a SONiC image → a model file of the hardware catalogue."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from netkit.errors import HardwareError, Problem
from netkit.platforms.model_file import SLOWEST_GBPS, breakout, written
from netkit.platforms.sonic.hardware import LETTERS, NEEDED, REGULAR, port_alias

PLATFORM, PORTS, HEADROOM, DYNAMIC, BUFFERS = (
    "platform.json",
    "port_config.ini",
    "pg_profile_lookup.ini",
    "buffers_dynamic.json.j2",
    "buffers_defaults_t1.j2",
)
OF_HWSKU = (PORTS, HEADROOM, DYNAMIC, BUFFERS)
MODE = re.compile(r"(\d+)x(\d+)G(?:\[([\dG,]*)\])?(?:\((\d+)\))?")
NUMBER = re.compile(r"\d+")
FIELD = re.compile(r'"(\w+)"\s*:\s*"([^"]*)"')
SLIPS = 0.1
"""Share of cages whose aliases may differ."""


@dataclass(frozen=True, slots=True)
class _Cage:
    name: str
    number: int
    index: int
    lanes: tuple[str, ...]
    modes: Mapping[str, Sequence[str]]
    """Breakout as platform.json writes it → aliases of its ports."""


@dataclass(frozen=True, slots=True)
class _Mode:
    """A breakout into equal ports."""

    ports: int
    speeds: tuple[int, ...]
    """The fastest first."""
    lanes: int | None
    """Lanes in use, where it names them: 4x100G(4) leaves four of eight lanes dark."""

    def lanes_per_port(self, cage: _Cage) -> int:
        return (self.lanes or len(cage.lanes)) // self.ports


def model_file(files: Mapping[str, str], name: str, platform: str, hwsku: str) -> str:
    """A model file with all that the files of a device folder state; what they do not is null.

    `files` are those named in this module, as far as the folder and its hwsku have them. HardwareError if they do not
    describe a switch.
    """
    cages, only_configured, left_out = _cages(files[PLATFORM], files.get(PORTS, ""))
    lanes = [cage.lanes for cage in cages]
    count = len(lanes[0])
    regular = [tuple(str(lane) for lane in range(count * at, count * (at + 1))) for at in range(len(cages))]
    splits = list(_splits(cages))
    rows = list(_headroom(files.get(HEADROOM, "")))
    pools = _pools(files.get(BUFFERS, ""))
    (alias, others), (subport_alias, split_others) = _alias(cages, 0), _alias(cages, 1)
    sonic = {
        "source": "platform",
        "hwsku": hwsku,
        "platform": platform,
        "buffer_model": "dynamic" if DYNAMIC in files else "traditional" if pools else None,
        "alias": alias,
        "subport_alias": subport_alias,
        "lanes_per_index": _step(cages),
        "first_index": int(cages[0].name.removeprefix("Ethernet")),
        "port_index_base": cages[0].index,
        "lanes": REGULAR if lanes == regular else [",".join(one) for one in lanes],
        "breakout_modes": _modes(cages),
        "buffer_pools": pools,
    }
    sources = {
        "platform": f"{PLATFORM} of {platform}, as the image has it",
        **({"headroom": f"{HEADROOM} of {platform}/{hwsku}, as the image has it"} if rows else {}),
        **({"buffers": f"{BUFFERS} of {platform}/{hwsku}, as the image has it"} if pools else {}),
    }
    known: dict[str, Any] = {
        "cages": {"value": len(cages), "source": "platform"},
        "lanes_per_cage": {"value": count, "source": "platform"},
        "breakouts": splits,
        "headroom_table": rows,
        "platforms": {"sonic": sonic},
    }
    head = (
        f"{name}, from the device folder {platform} of a SONiC image.",
        *_open_points(sonic, only_configured, left_out),
        *_slips(sorted({*others, *split_others})),
    )
    return written(head, name, sources, known)


def _open_points(sonic: Mapping[str, Any], only_configured: Sequence[str], left_out: Sequence[str]) -> Iterator[str]:
    missing = ", ".join(key for key in NEEDED if sonic[key] is None)
    yield "null is not in its files: give the value and where you read it, or leave it."
    if missing:
        yield f"Needed to render SONiC: {missing}. Buffer pools are those of {BUFFERS}."
    yield "Whether a breakout blocks the next cage is not in its files: compare port_config.ini and set `disables`."
    if only_configured:
        names = ", ".join(only_configured)
        yield f"In {PORTS} only, so the image cannot split them: {names}."
    if left_out:
        yield f"Not for the fabric, so not here: {', '.join(left_out)}."


def _slips(cages: Sequence[int]) -> list[str]:
    named = ", ".join(map(str, cages))
    return [f"Aliases in {PLATFORM} that differ from those of the other cages: cage {named}."] if named else []


def _cages(text: str, port_config: str) -> tuple[list[_Cage], list[str], list[str]]:
    """The cages of the fabric in order, those that only port_config.ini has, and the names of other ports.

    A cage that only port_config.ini has is one port of the speed given there.
    """
    try:
        interfaces = json.loads(text)["interfaces"]
        found = {
            name: _Cage(
                name,
                0,
                int(row["index"].split(",")[0]),
                tuple(lane for lane in row["lanes"].replace(" ", "").split(",") if lane),
                dict(row["breakout_modes"]),
            )
            for name, row in interfaces.items()
            if re.fullmatch(r"Ethernet\d+", name)
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"is not the platform.json of a SONiC image: {type(error).__name__}: {error}"
        raise HardwareError(
            Problem(message, "take it from /usr/share/sonic/device of the switch", file=PLATFORM)
        ) from None
    if not found:
        message = "has no ports: some images describe them in port_config.ini only"
        raise HardwareError(Problem(message, "write the model by hand, from a shipped one", file=PLATFORM))
    usual = Counter(len(cage.lanes) for cage in found.values()).most_common(1)[0][0]
    lanes = {lane for cage in found.values() for lane in cage.lanes}
    added = [cage for cage in _configured(port_config) if len(cage.lanes) == usual and not lanes & set(cage.lanes)]
    found.update((cage.name, cage) for cage in added)
    cages = sorted(found.values(), key=lambda cage: (cage.index, int(cage.name.removeprefix("Ethernet"))))
    fabric = [cage for cage in cages if len(cage.lanes) == usual]
    numbered = [
        _Cage(cage.name, number, cage.index, cage.lanes, cage.modes) for number, cage in enumerate(fabric, start=1)
    ]
    left_out = [cage.name for cage in cages if len(cage.lanes) != usual]
    return numbered, [cage.name for cage in added], left_out


def _configured(text: str) -> Iterator[_Cage]:
    """Yield the ports of port_config.ini whose line gives lanes, alias, index and speed."""
    head: list[str] = []
    for line in text.splitlines():
        words = line.removeprefix("#").split()
        if line.startswith("#"):
            head = words if words[:1] == ["name"] else head
            continue
        row = dict(zip(head, words, strict=False))
        speed = row.get("speed", "")
        if re.fullmatch(r"Ethernet\d+", row.get("name", "")) and speed.isdecimal() and row.get("index", "").isdecimal():
            mode = f"1x{int(speed) // 1000}G"
            yield _Cage(row["name"], 0, int(row["index"]), tuple(row["lanes"].split(",")), {mode: [row["alias"]]})


def _step(cages: Sequence[_Cage]) -> int:
    """The step of N in EthernetN from cage to cage."""
    numbers = [int(cage.name.removeprefix("Ethernet")) for cage in cages]
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) > 1:
        message = f"port names do not count evenly from cage to cage: steps of {', '.join(map(str, sorted(steps)))}"
        raise HardwareError(Problem(message, "a model file cannot express this", file=PLATFORM))
    return steps.pop() if steps else len(cages[0].lanes)


def _parsed(mode: str) -> _Mode | None:
    """A breakout; None for one of unequal ports."""
    match = MODE.fullmatch(mode.replace(" ", ""))
    if match is None:
        return None
    others = [int(speed.removesuffix("G")) for speed in (match[3] or "").split(",") if speed.removesuffix("G")]
    return _Mode(int(match[1]), (int(match[2]), *others), int(match[4]) if match[4] else None)


def _widest(cage: _Cage) -> Mapping[tuple[int, int], tuple[int, str]]:
    """Map ports and speed to lanes per port and the breakout that has them.

    Of several it is the one with the most lanes, then the one whose own speed it is.
    """
    found: dict[tuple[int, int], tuple[int, bool, str]] = {}
    for text in cage.modes:
        mode = _parsed(text)
        if mode is None or len(cage.lanes) % mode.ports:
            continue
        for at, speed in enumerate(mode.speeds):
            one = (mode.lanes_per_port(cage), at == 0, text)
            if speed >= SLOWEST_GBPS and one[0] and one[:2] > found.get((mode.ports, speed), (0, False, ""))[:2]:
                found[mode.ports, speed] = one
    return {key: (lanes, text) for key, (lanes, _, text) in found.items()}


def _splits(cages: Sequence[_Cage]) -> Iterator[Mapping[str, Any]]:
    """Yield a row for each way to split a cage, by the cages that have it."""
    having: dict[tuple[int, int, int], list[int]] = {}
    for cage in cages:
        for (ports, speed), (lanes, _) in _widest(cage).items():
            having.setdefault((ports, speed, lanes), []).append(cage.number)
    for (ports, speed, lanes), numbers in sorted(having.items(), key=lambda row: (row[0][0], -row[0][1], -row[0][2])):
        yield breakout(ports, speed, lanes, numbers, len(cages), "platform")


def _modes(cages: Sequence[_Cage]) -> Mapping[str, str]:
    """Map each breakout to what platform.json calls it, where that differs."""
    found: dict[str, str] = {}
    for cage in cages:
        for (ports, speed), (_, text) in _widest(cage).items():
            found.setdefault(f"{ports}x{speed}G", text)
    return {mode: text for mode, text in found.items() if mode != text}


def _alias(cages: Sequence[_Cage], port: int) -> tuple[str | None, list[int]]:
    """The pattern of the aliases of unsplit (port 0) or split (port 1) ports, and the cages that have others.

    Images have slips: a few cages of many may differ.
    """
    for pattern in _patterns(cages, port):
        others = [cage.number for cage in cages if not _follows(pattern, cage, is_split=port > 0)]
        if len(others) <= len(cages) * SLIPS:
            return pattern, others
    return None, []


def _patterns(cages: Sequence[_Cage], port: int) -> Iterator[str]:
    """Yield the patterns that the alias of a port of the last cage may follow."""
    cage = cages[-1]
    for text, aliases in cage.modes.items():
        mode = _parsed(text)
        if mode is None or len(aliases) <= port or (port == 0) != (mode.ports == 1):
            continue
        words = NUMBER.split(aliases[port])
        numbers = ["{cage}" if int(one) == cage.number else one for one in NUMBER.findall(aliases[port])]
        own = _joined(words, numbers)
        yield own
        for name in ("{sub}", "{lane}"):
            yield _joined(words, [one if one == "{cage}" else name for one in numbers])
        if own.endswith(LETTERS[port]):
            yield f"{own[:-1]}{{letter}}"


def _joined(words: Sequence[str], numbers: Sequence[str]) -> str:
    return "".join(word + number for word, number in zip(words, [*numbers, ""], strict=True))


def _follows(pattern: str, cage: _Cage, *, is_split: bool) -> bool:
    """Whether all aliases of a cage follow a pattern."""
    for text, aliases in cage.modes.items():
        mode = _parsed(text)
        if mode and (mode.ports > 1) == is_split and mode.ports <= len(LETTERS):
            lanes = mode.lanes_per_port(cage)
            if list(aliases) != [port_alias(pattern, cage.number, port, lanes) for port in range(mode.ports)]:
                return False
    return True


def _headroom(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of pg_profile_lookup.ini: speed, cable, size, xon, xoff, threshold, and sometimes the offset."""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 6 or not words[0].isdecimal() or int(words[0]) < SLOWEST_GBPS * 1000:
            continue
        try:
            yield {
                "speed_gbps": int(words[0]) // 1000,
                "cable_m": int(words[1].removesuffix("m")),
                "size_bytes": int(words[2]),
                "xon_bytes": int(words[3]),
                "xoff_bytes": int(words[4]),
                "xon_offset_bytes": int(words[6]) if len(words) > 6 else None,
                "source": "headroom",
            }
        except ValueError:
            continue


def _pools(text: str) -> Mapping[str, Any] | None:
    """The pools that a template of buffers writes out; None if it computes them or takes them from elsewhere."""
    ingress, egress = _entry(text, "ingress_lossless_pool"), _entry(text, "egress_lossless_pool")
    if not all(one.get("size", "").isdecimal() and one.get("mode") for one in (ingress, egress)):
        return None
    lossy = {name: _entry(text, f"{name}_pool") for name in ("ingress_lossy", "egress_lossy")}
    return {
        "source": "buffers",
        "ingress_lossless": {**_pool(ingress), "xoff": _number(ingress.get("xoff"))},
        "ingress_lossy": _pool(lossy["ingress_lossy"]) if lossy["ingress_lossy"] else None,
        "egress_lossless": _pool(egress),
        "egress_lossy": _pool(lossy["egress_lossy"]) if lossy["egress_lossy"] else None,
        "lossless_static_th": _number(_entry(text, "egress_lossless_profile").get("static_th")),
        "egress_lossy_bytes": _number(_entry(text, "egress_lossy_profile").get("size")),
    }


def _entry(text: str, name: str) -> dict[str, str]:
    """The fields of an object of a JSON template."""
    found = re.search(rf'"{name}"\s*:\s*{{([^{{}}]*)}}', text)
    return dict(FIELD.findall(found[1])) if found else {}


def _pool(fields: Mapping[str, str]) -> dict[str, Any]:
    return {"size": _number(fields.get("size")), "mode": fields.get("mode")}


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None

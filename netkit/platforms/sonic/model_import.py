"""The device folder of a SONiC image → a model file of the hardware catalogue."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import yaml

from netkit.errors import HardwareError, Problem
from netkit.platforms.sonic.hardware import LETTERS, NEEDED, REGULAR

PLATFORM, PORTS, HEADROOM, DYNAMIC = (
    "platform.json",
    "port_config.ini",
    "pg_profile_lookup.ini",
    "buffers_dynamic.json.j2",
)
MODE = re.compile(r"(\d+)x(\d+)G(?:\[([\dG,]*)\])?")
SLOWEST_GBPS = 50
"""Slower ports are not for a fabric."""
UNKNOWN = {"value": None, "source": None}


@dataclass(frozen=True, slots=True)
class _Cage:
    name: str
    number: int
    index: int
    lanes: tuple[str, ...]
    modes: Mapping[str, Sequence[str]]
    """Breakout as platform.json writes it → aliases of its ports."""


def model_file(files: Mapping[str, str], name: str, platform: str, hwsku: str) -> str:
    """Return a model file with all that the files of a device folder state; what they do not is null.

    `files` are those named in this module, as far as the folder and its hwsku have them. HardwareError if they do not
    describe a switch.
    """
    cages, left_out = _cages(files[PLATFORM])
    lanes = [cage.lanes for cage in cages]
    count = len(lanes[0])
    regular = [tuple(str(lane) for lane in range(count * at, count * (at + 1))) for at in range(len(cages))]
    splits = list(_splits(cages))
    rows = list(_headroom(files.get(HEADROOM, "")))
    sonic = {
        "source": "platform",
        "hwsku": hwsku,
        "platform": platform,
        "buffer_model": "dynamic" if DYNAMIC in files else None,
        "alias": _alias(cages),
        "subport_alias": _subport_alias(cages),
        "lanes_per_index": _step(cages),
        "first_index": int(cages[0].name.removeprefix("Ethernet")),
        "port_index_base": cages[0].index,
        "lanes": REGULAR if lanes == regular else [",".join(one) for one in lanes],
        "breakout_modes": _modes(cages),
        "buffer_pools": None,
    }
    content: dict[str, Any] = {
        "name": name,
        "vendor": None,
        "sources": {
            "platform": f"{PLATFORM} of {platform}, as the image has it",
            **({"headroom": f"{HEADROOM} of {platform}/{hwsku}, as the image has it"} if rows else {}),
        },
        "asic": UNKNOWN,
        "cages": {"value": len(cages), "source": "platform"},
        "cage_form": UNKNOWN,
        "lanes_per_cage": {"value": count, "source": "platform"},
        "max_ports": UNKNOWN,
        "breakouts": splits,
        "adaptive_routing": UNKNOWN,
        "adaptive_routing_speeds_gbps": UNKNOWN,
        "buffer": dict.fromkeys(("total_bytes", "cell_bytes", "headroom_pool_bytes"), UNKNOWN),
        "delay": dict.fromkeys(
            ("pipeline_bytes", "pipeline_ns", "mac_phy_ns", "mac_phy_bytes", "peer_response_bytes"), UNKNOWN
        ),
        "headroom_table": rows,
        "platforms": {"sonic": sonic},
    }
    head = [f"# {name}, from the device folder {platform} of a SONiC image.", *_open_points(sonic, left_out)]
    return "\n".join(head) + "\n" + yaml.dump(content, Dumper=_Plain, sort_keys=False, width=200)


class _Plain(yaml.SafeDumper):
    """Writes a value that is there twice in full."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (of the base class)
        return True


def _open_points(sonic: Mapping[str, Any], left_out: Sequence[str]) -> Iterator[str]:
    missing = ", ".join(key for key in NEEDED if sonic[key] is None)
    yield "# null is not in its files: give the value and where you read it, or leave it."
    if missing:
        yield f"# Needed to render SONiC: {missing}. Buffer pools are those of buffers_defaults_t1.j2."
    yield "# Whether a breakout blocks the next cage is not in its files: compare port_config.ini and set `disables`."
    if left_out:
        yield f"# Not for the fabric, so not here: {', '.join(left_out)}."


def _cages(text: str) -> tuple[list[_Cage], list[str]]:
    """Return the cages of the fabric in their order, and the names of the other ports."""
    try:
        interfaces = json.loads(text)["interfaces"]
        found = [
            _Cage(
                name,
                0,
                int(row["index"].split(",")[0]),
                tuple(lane for lane in row["lanes"].replace(" ", "").split(",") if lane),
                dict(row["breakout_modes"]),
            )
            for name, row in interfaces.items()
            if re.fullmatch(r"Ethernet\d+", name)
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"is not the platform.json of a SONiC image: {type(error).__name__}: {error}"
        raise HardwareError(
            Problem(message, "take it from /usr/share/sonic/device of the switch", file=PLATFORM)
        ) from None
    if not found:
        message = "has no ports: some images describe them in port_config.ini only"
        raise HardwareError(Problem(message, "write the model by hand, from a shipped one", file=PLATFORM))
    found.sort(key=lambda cage: (cage.index, int(cage.name.removeprefix("Ethernet"))))
    usual = Counter(len(cage.lanes) for cage in found).most_common(1)[0][0]
    fabric = [cage for cage in found if len(cage.lanes) == usual]
    numbered = [
        _Cage(cage.name, number, cage.index, cage.lanes, cage.modes) for number, cage in enumerate(fabric, start=1)
    ]
    return numbered, [cage.name for cage in found if len(cage.lanes) != usual]


def _step(cages: Sequence[_Cage]) -> int:
    """Return by how much N of EthernetN grows from cage to cage."""
    numbers = [int(cage.name.removeprefix("Ethernet")) for cage in cages]
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) > 1:
        message = f"port names do not count evenly from cage to cage: steps of {', '.join(map(str, sorted(steps)))}"
        raise HardwareError(Problem(message, "a model file cannot express this", file=PLATFORM))
    return steps.pop() if steps else len(cages[0].lanes)


def _parsed(mode: str) -> tuple[int, list[int]] | None:
    """Return ports and speeds of a breakout, the fastest first; None for one of unequal ports."""
    match = MODE.fullmatch(mode.replace(" ", ""))
    if match is None:
        return None
    others = [int(speed.removesuffix("G")) for speed in (match[3] or "").split(",") if speed.removesuffix("G")]
    return int(match[1]), [int(match[2]), *others]


def _splits(cages: Sequence[_Cage]) -> Iterator[Mapping[str, Any]]:
    """Yield a row for each way to split a cage, by the cages that have it."""
    having: dict[tuple[int, int], list[int]] = {}
    for cage in cages:
        for ports, speeds in filter(None, map(_parsed, cage.modes)):
            for speed in speeds:
                if speed >= SLOWEST_GBPS and len(cage.lanes) % ports == 0:
                    numbers = having.setdefault((ports, speed), [])
                    numbers += [cage.number] if cage.number not in numbers else []
    for (ports, speed), numbers in sorted(having.items(), key=lambda row: (row[0][0], -row[0][1])):
        yield {
            "ports": ports,
            "speed_gbps": speed,
            "lanes_per_port": len(cages[0].lanes) // ports,
            "cages": _range(numbers, len(cages)),
            "disables": "none",
            "source": "platform",
        }


def _range(numbers: Sequence[int], last: int) -> str:
    """Write cages as a model file does: all odd ones, all even ones, or the first run of them."""
    for word, first in (("odd", 1), ("even", 2)):
        if list(numbers) == list(range(first, last + 1, 2)):
            return word
    end = next((at for at, number in enumerate(numbers) if number != numbers[0] + at), len(numbers))
    return f"{numbers[0]}-{numbers[end - 1]}"


def _modes(cages: Sequence[_Cage]) -> Mapping[str, str]:
    """Map each breakout to what platform.json calls it, where that differs."""
    own, other = dict[str, str](), dict[str, str]()
    for mode in cages[0].modes:
        if parsed := _parsed(mode):
            ports, (fastest, *slower) = parsed
            own[f"{ports}x{fastest}G"] = mode
            for speed in slower:
                if speed >= SLOWEST_GBPS:
                    other.setdefault(f"{ports}x{speed}G", mode)
    return {mode: text for mode, text in {**other, **own}.items() if mode != text}


def _alias(cages: Sequence[_Cage]) -> str | None:
    """Return the pattern of the alias of an unsplit port, if all cages follow one."""
    patterns = {
        aliases[0].replace(str(cage.number), "{cage}") if aliases[0].endswith(str(cage.number)) else ""
        for cage in cages
        for mode, aliases in cage.modes.items()
        if (parsed := _parsed(mode)) and parsed[0] == 1 and aliases
    }
    return (patterns.pop() or None) if len(patterns) == 1 else None


def _subport_alias(cages: Sequence[_Cage]) -> str | None:
    """Return the pattern of the alias of a split port, if all cages follow one."""
    base = _alias(cages)
    ends = ("{letter}", "/{sub}", "_{sub}")
    fits = (
        end
        for end in ends
        if base
        and all(
            list(aliases)
            == [
                (base + end).format(cage=cage.number, letter=LETTERS[port], sub=port + 1)
                for port in range(len(aliases))
            ]
            for cage in cages
            for mode, aliases in cage.modes.items()
            if (parsed := _parsed(mode)) and 1 < parsed[0] <= len(LETTERS)
        )
    )
    end = next(fits, None)
    return f"{base}{end}" if end else None


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

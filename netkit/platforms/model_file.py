"""A model file of the hardware catalogue, written from what a switch states about itself; the rest is null."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from netkit.errors import HardwareError, Problem

UNKNOWN = {"value": None, "source": None}
SLOWEST_GBPS = 50
"""Slower ports are not for a fabric."""


class _Plain(yaml.SafeDumper):
    """Writes a value that is there twice in full."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (of the base class)
        return True


def written(head: Iterable[str], name: str, sources: Mapping[str, str], known: Mapping[str, Any]) -> str:
    """A model file: comments, and every key that netkit reads. Those not in `known` are null."""
    content: dict[str, Any] = {
        "name": name,
        "vendor": None,
        "sources": sources,
        **dict.fromkeys(("asic", "cages", "cage_form", "lanes_per_cage", "max_ports"), UNKNOWN),
        "breakouts": [],
        **dict.fromkeys(("adaptive_routing", "adaptive_routing_speeds_gbps"), UNKNOWN),
        "buffer": dict.fromkeys(("total_bytes", "cell_bytes", "headroom_pool_bytes"), UNKNOWN),
        "delay": dict.fromkeys(
            ("pipeline_bytes", "pipeline_ns", "mac_phy_ns", "mac_phy_bytes", "peer_response_bytes"), UNKNOWN
        ),
        "headroom_table": [],
    }
    comments = "".join(f"# {line}\n" for line in head)
    return comments + yaml.dump({**content, **known}, Dumper=_Plain, sort_keys=False, width=200)


def breakout(ports: int, speed_gbps: int, lanes: int, cages: Sequence[int], last: int, source: str) -> dict[str, Any]:
    """The row of a way to split these cages of `last`."""
    return {
        "ports": ports,
        "speed_gbps": speed_gbps,
        "lanes_per_port": lanes,
        "cages": cage_range(cages, last),
        "disables": "none",
        "source": source,
    }


def cage_range(numbers: Sequence[int], last: int) -> str:
    """Write cages as a model file does: all odd ones, all even ones, or runs of them."""
    for word, first in (("odd", 1), ("even", 2)):
        if last > 1 and list(numbers) == list(range(first, last + 1, 2)):
            return word
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ",".join(f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


def answer(files: Mapping[str, str], file: str, command: str) -> dict[str, Any]:
    """The object that a command printed as JSON; HardwareError if the file has something else."""
    remedy = f"save the output of: {command}"
    if file not in files:
        raise HardwareError(Problem("is missing", remedy, file=file))
    try:
        found = json.loads(files[file])
    except ValueError as error:
        raise HardwareError(Problem(f"is not JSON: {error}", remedy, file=file)) from None
    if not isinstance(found, dict) or not found:
        raise HardwareError(Problem("is not a JSON object with values", remedy, file=file))
    return found


def gbps(text: object) -> int | None:
    """Read a speed such as 400G or 400Gbps."""
    match = re.fullmatch(r"(\d+)G(?:bps)?", str(text))
    return int(match[1]) if match else None

"""Tolerant parsers of the output of `nv show … -o json` and the like. Nothing here raises, whatever the input."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from netkit.facts import Absent, Counters, Facts
from netkit.platforms.json_access import RECENT, printable, table
from netkit.platforms.view import View

Shown = Mapping[str, Any]
COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
BEGIN = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
NUMBER = re.compile(r"[-+]?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][-+]?[0-9]{1,4})?")
SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?(Bytes|B|KB|MB|GB)?")
CLOCK = re.compile(r"(?:([0-9]{1,6})(?:d| days?),? ?)?(?:([0-9]{1,6}):)?([0-9]{1,2}):([0-9]{2})")
UNITS = {"": 1, "B": 1, "Bytes": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
ON = frozenset({"on", "enable", "enabled", "yes", "true"})
OFF = frozenset({"off", "disable", "disabled", "no", "false"})
MOST = 1 << 64
DECODER = json.JSONDecoder(parse_constant=lambda _: None)
Parts = Mapping[str, Shown]
"""Port → the branch."""


@lru_cache(maxsize=RECENT)
def document(text: str) -> Any:
    """Find the first JSON document in a text, ignoring warnings around it; None if there is none."""
    if text.startswith("{"):
        with suppress(ValueError):  # as in most answers, there is nothing else; the faster parser, and the stricter one
            return from_json(text, allow_inf_nan=False)
    plain = COLOUR.sub("", text)
    begin = BEGIN.search(plain)
    if begin is None:
        return None
    try:
        return printable(DECODER.raw_decode(plain, begin.end() - 1)[0], plain)
    except (ValueError, RecursionError):
        return None


def tree(text: str) -> Shown | None:
    """Find the JSON object in a text; None if there is none."""
    found = document(text)
    return found if isinstance(found, dict) else None


def unread(command: str, text: str) -> Absent:
    """Explain why an output has no usable content."""
    is_empty = not text.strip() or document(text) in ({}, [])
    return Absent(f"{command}: prints {'nothing' if is_empty else 'something other than the JSON of NVUE'}")


def counted(command: str, counters: dict[str, dict[str, int]]) -> Counters | Absent:
    return {name: places for name, places in counters.items() if places} or Absent(f"{command}: shows no counters")


under = table


def inner(found: Shown, *path: str) -> Shown:
    """The object at a path, or the object itself: releases show either."""
    return under(found, *path) or found


def objects(found: object) -> Iterator[tuple[str, Shown]]:
    """Yield the objects within an object, by name."""
    if isinstance(found, dict):
        yield from ((name, one) for name, one in found.items() if isinstance(one, dict))


def word(found: Shown, *keys: str) -> str:
    """The first of some values that is a text or a number, as text."""
    for key in keys:
        value = found.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST:
            return str(value)
    return ""


def switched(value: object) -> bool | None:
    """Parse on and off in the words of any release; None for other words."""
    if isinstance(value, bool):
        return value
    text = value.lower() if isinstance(value, str) else ""
    if text in ON:
        return True
    return False if text in OFF else None


def whole(value: object) -> int | None:
    """Parse a counter, a number or text; None if it is not exact."""
    if isinstance(value, str):
        digits = value.removesuffix(" Bytes").strip()
        value = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 20 else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST else None


def size(value: object) -> int | None:
    """Parse a number of bytes, or a rounded text such as `1.43 MB`."""
    exact = whole(value)
    if exact is not None or not isinstance(value, str):
        return exact
    found = SIZE.fullmatch(value.strip())
    return round(float(found[1]) * UNITS[found[2] or ""]) if found else None


def real(value: object) -> float | None:
    """Parse a number, or the first number of a text."""
    if isinstance(value, str):
        found = NUMBER.search(value)
        value = float(found[0]) if found else None
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) >= MOST:
        return None
    return float(value) if math.isfinite(value) else None


def numbers(value: object) -> frozenset[int]:
    """Parse a list of numbers such as `0,3` or `24-31`; words such as `-` are ignored."""
    if isinstance(value, dict):
        value = ",".join(str(key) for key in value)
    if isinstance(value, list):
        value = ",".join(str(one) for one in value)
    parts = re.findall(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", str(value)) if isinstance(value, str | int) else []
    return frozenset(number for first, last in parts for number in range(int(first), int(last or first) + 1))


def index(name: object) -> int | None:
    """Parse a key that is a priority, a queue or a DSCP."""
    found = whole(name)
    return found if found is not None and found < 256 else None


def duration_s(value: object) -> float | None:
    """Parse a duration: a number, or `1d, 23:45:21`; None for a date."""
    if not isinstance(value, str):
        seconds = real(value)
        return seconds if seconds is not None and seconds >= 0 else None
    found = CLOCK.fullmatch(value.strip())
    if found is None:
        count = whole(value)
        return None if count is None else float(count)
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + rest)


@dataclass(frozen=True, slots=True)
class PortPart:
    """One branch of the tree below each port, with its parser."""

    path: str
    kinds: frozenset[str]
    parse: Callable[[Parts, Sequence[str]], Facts]
    """(branches of the ports, output of the commands in `beside`) → facts."""
    beside: tuple[str, ...] = ()


def view(part: PortPart, ports: Sequence[str], *, has_include: bool) -> View:
    """Read the branch of all ports at once, and fall back to port by port; without `has_include`, only the latter."""
    port_by_port = _port_by_port(part, ports)
    if not has_include:
        return port_by_port
    path = part.path.split()
    command = f'nv show interface --view="include=/*/{"/".join(path)}" -o json'

    def parse(*texts: str) -> Facts:
        text = texts[-1]
        tree_of_ports = tree(text)
        shown = {port: branch for port in ports if (branch := under(tree_of_ports, port, *path))}
        if shown:
            return part.parse(shown, texts)
        return _absent(part, Absent(f"{command}: shows it for no port") if tree_of_ports else unread(command, text))

    return View((*part.beside, command), part.kinds, parse, is_costly=True, fallback=port_by_port)


def _port_by_port(part: PortPart, ports: Sequence[str]) -> View:
    commands = tuple(f"nv show interface {port} {part.path} -o json" for port in ports)

    def parse(*texts: str) -> Facts:
        own = texts[len(part.beside) :]
        shown: dict[str, Shown] = {}
        for port, text in zip(ports, own, strict=True):
            branch = tree(text)
            if branch is not None:
                shown[port] = branch
        return part.parse(shown, texts) if shown else _absent(part, unread(commands[0], own[0]))

    return View((*part.beside, *commands), part.kinds, parse, is_costly=True)


def _absent(part: PortPart, why: Absent) -> Facts:
    return Facts(**dict.fromkeys(part.kinds, why))

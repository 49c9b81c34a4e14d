"""Names of ports: EOS writes some short, and one cage has several."""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

Value = TypeVar("Value")
LONG = "Ethernet"
SHORT = re.compile(r"Et(?=\d)", re.ASCII)
NAME = re.compile(r"Ethernet\d{1,4}(?:/\d{1,3}){0,2}", re.ASCII)
MOST_LANES = 64
"""More than any cage has."""


def long_name(name: str) -> str:
    """Return Ethernet1/5 for Et1/5; another name as it is."""
    return SHORT.sub(LONG, name.strip(), count=1)


def is_port(name: str, in_use: tuple[str, ...] = ()) -> bool:
    """Whether an interface has a cable; of those that are in use, if any are named."""
    return name in in_use if in_use else NAME.fullmatch(name) is not None


def cage(name: str) -> str:
    """Return the cage of a port: 1 for Ethernet1/5, 3/1 for Ethernet3/1/5, 7 for Ethernet7."""
    place = name.removeprefix(LONG)
    return place.rpartition("/")[0] or place


def first_lane(name: str) -> int:
    """Return the lane of its cage at which a port begins."""
    _, slash, lane = name.rpartition("/")
    return int(lane) if slash else 1


def lanes(ports: Iterable[str]) -> dict[str, range]:
    """Return the lanes of its cage that are a port's own: up to where the next port begins."""
    firsts = {port: first_lane(port) for port in ports}
    begun: dict[str, set[int]] = {}
    for port, first in firsts.items():
        begun.setdefault(cage(port), set()).add(first)
    return {
        port: range(first, min((other for other in begun[cage(port)] if other > first), default=first + MOST_LANES))
        for port, first in firsts.items()
    }


def own(channels: Mapping[int, Value], mine: range) -> dict[int, Value]:
    """Return a port's own lanes, from 1: some releases show it the whole cage, some count its lanes from 1."""
    found = {lane - mine.start + 1: value for lane, value in channels.items() if lane in mine}
    return found or dict(channels)

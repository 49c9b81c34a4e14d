"""The kinds of words and numbers a configuration holds, and how each is recognised."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PORT = re.compile(r"swp[1-9]\d{0,2}(s[0-7])?")
SVI = re.compile(r"vlan[1-9]\d{0,3}")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}")
RESERVED = frozenset({"auto", "none", "null", "any", "all"})
VRFS = ("default", "mgmt")


@dataclass(frozen=True, slots=True)
class Kind:
    """What a leaf or key may be: `wanted` says it to people, `read` returns the value as it is kept, or None."""

    wanted: str
    read: Callable[[str], str | int | None]


def kind(said: str) -> Kind:
    """Return the kind a schema names, such as `int 1 8`."""
    name, *rest = said.split()
    if name == "words":
        return Kind("one of " + ", ".join(rest), lambda given: given if given in rest else None)
    if name == "int":
        low, high = int(rest[0]), int(rest[1])
        return Kind(f"a number from {low} to {high}", lambda given: _whole(given, low, high))
    return KINDS[name]


def ranges(given: str) -> Iterator[str]:
    """Yield the names a range such as swp1-3,swp5s0-1 stands for."""
    stem = ""
    for part in given.split(","):
        found = re.fullmatch(r"(|[a-z]+(?:\d+s)?)(\d+)(?:-(\d+))?", part)
        if not found:
            yield part
            continue
        stem = found[1] or stem
        first, last = int(found[2]), int(found[3] or found[2])
        yield from (f"{stem}{at}" for at in range(first, min(last, first + 4095) + 1))


def _whole(given: str, low: int, high: int) -> int | None:
    if not re.fullmatch(r"\d{1,12}", given):
        return None
    return int(given) if low <= int(given) <= high else None


def _text(given: str) -> str | None:
    return given if given and given.isprintable() else None


def _name(given: str) -> str | None:
    return given if NAME.fullmatch(given) and given not in RESERVED else None


def _address(given: str) -> str | None:
    try:
        return str(ipaddress.IPv4Address(given))
    except ValueError:
        return None


def _prefix(given: str) -> str | None:
    try:
        ipaddress.IPv4Interface(given)
    except ValueError:
        return None
    return given if "/" in given else None


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    return lambda given: given if pattern.fullmatch(given) else None


def _interface(given: str) -> str | None:
    return given if PORT.fullmatch(given) or SVI.fullmatch(given) or given in {"lo", "eth0"} else None


def _peer(given: str) -> str | None:
    return given if PORT.fullmatch(given) else _address(given)


KINDS = {
    "text": Kind("printable text", _text),
    "name": Kind("a name", _name),
    "secret": Kind("printable text", _text),
    "address": Kind("an IPv4 address", _address),
    "prefix": Kind("an IPv4 address with its length", _prefix),
    "port": Kind("a port such as swp1 or swp1s0", _matching(PORT)),
    "svi": Kind("a VLAN interface such as vlan10", _matching(SVI)),
    "interface": Kind("an interface", _interface),
    "peer": Kind("a port or an IPv4 address", _peer),
    "vrf": Kind("one of " + ", ".join(VRFS), lambda given: given if given in VRFS else None),
}

"""Where the kernel of a host sends packets of its NICs: lookups bound to source and interface, as RoCE makes them.

`ip` prints the routes of those that have one, in order, and of the others which line of its input failed, and why.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from netkit.facts import Absent
from netkit.facts.routing import Lookup
from netkit.platforms.linux.facts.reading import document, member, members, word

FAILED = re.compile(r"Command failed \S*?:([0-9]{1,6})\s*\Z")
COMPLAINTS = "#@ complaints"
REFUSING = {"unreachable", "blackhole", "prohibit", "throw"}


def lookups(text: str, asked: Sequence[tuple[str, str, str]]) -> tuple[Lookup, ...] | Absent:
    """Return the answer to each lookup, in order."""
    answers, mark, said = text.partition(COMPLAINTS)
    failures = _failures(said)
    lines = [line for line in answers.splitlines() if line.strip()]
    if not mark or len(lines) + len(failures) != len(asked):
        return Absent("ip route get did not answer all that was asked")
    found = iter(lines)
    return tuple(
        Lookup(*one, failure=failures[number]) if number in failures else _lookup(one, next(found, ""))
        for number, one in enumerate(asked, 1)
    )


def _failures(said: str) -> dict[int, str]:
    """Return the lines of the input that failed, with what was said before."""
    found: dict[int, str] = {}
    reason = ""
    for line in said.splitlines():
        match = FAILED.search(line)
        if match:
            found[int(match[1])] = reason or "no route"
        reason = "" if match else _reason(line) or reason
    return found


def _reason(line: str) -> str:
    return line.strip().removeprefix("RTNETLINK answers: ").removeprefix("Error: ")


def _lookup(asked: tuple[str, str, str], line: str) -> Lookup:
    route = next(iter(members(document(line))), None)
    if route is None:
        return Lookup(*asked, failure="the answer of ip route get cannot be read")
    kind = word(route, "type")
    if kind in REFUSING:
        return Lookup(*asked, failure=kind)
    return Lookup(*asked, out_interface=word(route, "dev"), gateway=_gateway(route))


def _gateway(route: Mapping[str, Any]) -> str:
    """Return the next hop, which may be of another address family."""
    return word(route, "gateway") or word(member(route, "via"), "host")

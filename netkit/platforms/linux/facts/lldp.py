"""Who is at the other end of the cables, as lldpd knows it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from netkit.facts import Absent
from netkit.facts.system import Neighbor
from netkit.platforms.linux.facts.reading import document, members, word

AGE = re.compile(r"([0-9]{1,6}) days?, ([0-9]{1,2}):([0-9]{2}):([0-9]{2})")


def neighbors(text: str) -> Mapping[str, tuple[Neighbor, ...]] | Absent:
    """Return what lldpcli printed as json0, where every value is in a list; as json, some are alone."""
    found = document(text)
    if not isinstance(found, dict) or "lldp" not in found:
        return Absent("lldpd does not tell its neighbours: see whether it is installed and runs")
    heard: dict[str, list[Neighbor]] = {}
    for lldp in members(found["lldp"]):
        for interface in members(lldp.get("interface")):
            if word(interface, "name"):
                heard.setdefault(word(interface, "name"), []).append(_neighbor(interface))
    return {name: tuple(sorted(ones, key=_freshness)) for name, ones in heard.items()}


def _neighbor(interface: Mapping[str, Any]) -> Neighbor:
    chassis, port = members(interface.get("chassis")), members(interface.get("port"))
    return Neighbor(
        system=_value(chassis, "name") or _value(chassis, "id"),
        port=_value(port, "id"),
        description=_value(port, "descr"),
        age_s=_age_s(word(interface, "age")),
    )


def _value(about: Iterable[Mapping[str, Any]], key: str) -> str:
    for one in about:
        for told in members(one.get(key)):
            if word(told, "value"):
                return word(told, "value")
    return ""


def _age_s(text: str) -> float | None:
    match = AGE.match(text)
    if match is None:
        return None
    days, hours, minutes, seconds = map(int, match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _freshness(neighbor: Neighbor) -> float:
    return float("inf") if neighbor.age_s is None else neighbor.age_s

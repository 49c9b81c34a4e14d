"""What `mlnx_qos -i` prints."""

import re
from collections.abc import Mapping

from netkit.facts.qos import PortQos
from netkit.platforms.linux.facts.reading import number, plain

TRUST = re.compile(r"^Priority trust state: *(\S+)", re.MULTILINE)
MAP = re.compile(r"^\s*prio:([0-7]) dscp:([0-9,]*)", re.MULTILINE)
ROW = re.compile(r"^\s*(enabled|buffer)((?:\s+[0-9]){8})\s*$", re.MULTILINE)
CABLE = re.compile(r"^Cable len: *(\S+)", re.MULTILINE)
CLASS = re.compile(r"^tc: *([0-7])\b.*?tsa: *([a-z]+)(?:.*?bw: *([0-9]{1,3})%)?", re.MULTILINE)
MEMBER = re.compile(r"^\s+priority: *([0-7])\s*$", re.MULTILINE)


def is_of_it(text: str) -> bool:
    """Whether the tool printed this."""
    return TRUST.search(plain(text)) is not None


def parse(text: str) -> PortQos:
    """Return the QoS it shows."""
    told = plain(text)
    rows = {match[1]: [int(word) for word in match[2].split()] for match in ROW.finditer(told)}
    trust, cable = TRUST.search(told), CABLE.search(told)
    enabled = rows.get("enabled")
    pfc = None if enabled is None else frozenset(priority for priority, on in enumerate(enabled) if on)
    algorithms = {int(match[1]): match[2] for match in CLASS.finditer(told)}
    weights = {int(match[1]): int(match[3]) for match in CLASS.finditer(told) if match[3] is not None}
    return PortQos(
        trust=trust[1] if trust else "",
        dscp_to_priority=_map(told) or None,
        pfc_rx=pfc,
        pfc_tx=pfc,
        weights=weights if algorithms else None,
        strict=frozenset(tc for tc, name in algorithms.items() if name == "strict") if algorithms else None,
        priority_to_class=_classes(told) or None,
        cable_m=number(cable[1]) if cable else None,
        priority_to_buffer=dict(enumerate(rows["buffer"])) if "buffer" in rows else None,
    )


def _map(text: str) -> Mapping[int, int]:
    """Return the priority of each DSCP; with other trust than DSCP there is none."""
    return {
        int(dscp): int(match[1])
        for match in MAP.finditer(text)
        for dscp in match[2].split(",")
        if dscp and int(dscp[:4]) < 64 and len(dscp) < 4
    }


def _classes(text: str) -> Mapping[int, int]:
    """Return the traffic class of each priority: they stand below their class."""
    found: dict[int, int] = {}
    for block in text.split("\ntc:")[1:]:
        head = re.match(r" *([0-7])\b", block)
        for match in MEMBER.finditer(block) if head else ():
            found[int(match[1])] = int(head[1]) if head else 0
    return found

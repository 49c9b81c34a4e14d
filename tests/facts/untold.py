"""Facts that a device does not report, to compare with the table in docs/facts.md."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from netkit.facts import COUNTERS, Absent, Facts
from netkit.facts.device import KINDS
from tests.command import ROOT

PAGE = ROOT / "docs" / "facts.md"
ROW = re.compile(r"^\| ([a-z_]+(?:\.[a-z_]+)?) \|(.*)\|$", re.MULTILINE)
OF_HOSTS = frozenset({"lookups", "probes", "nics", "host"})
OF_NICS = re.compile(r"qos\.(cnp_|data_tos|cm_tos|ecn_notifies|ecn_reacts|priority_to_buffer)|counters\.priority_")
FIRST_OF_NICS = "cnp_sent"
OF_SWITCHES = re.compile(r"counters\.(queue_|ecn_marked|watchdog_)|qos\.(headroom|xoff)_bytes")
ELSEWHERE = re.compile(
    r"counters\.port_|interfaces\.(alias|description|outage_ended_ago_s)|lookups\.|probes\.|lags|mlag|lines\.lane_ber|host\."
)
"""Reported by other sources, only when something is wrong or beside the rails, or not modelled by the lab."""
EMPTY: tuple[Any, ...] = (None, "", {}, (), frozenset())


def table() -> Mapping[str, Mapping[str, str]]:
    """The reasons by fact and platform."""
    _, heading, text = PAGE.read_text(encoding="utf-8").partition("## What a platform does not report")
    assert heading, "no such heading in docs/facts.md"
    rows = text.partition("\n### ")[0]
    found = {name: [cell.strip() for cell in cells.split("|")] for name, cells in ROW.findall(rows) if name != "fact"}
    columns = ("nvue", "sonic", "eos", "frr", "hosts")
    return {name: dict(zip(columns, cells, strict=True)) for name, cells in found.items()}


def by_the_docs(platform: str) -> set[str]:
    """Facts that the table lists as not reported; those that only older versions lack count as reported."""
    return {name for name, cells in table().items() if cells[platform] and not cells[platform].startswith("before ")}


def by_device(facts: Facts, *, is_host: bool) -> set[str]:
    """Facts of its kind that a device did not report."""
    nic_counters = list(COUNTERS)[list(COUNTERS).index(FIRST_OF_NICS) :]
    others = OF_SWITCHES if is_host else OF_NICS
    return {
        name
        for name in _untold(facts)
        if not (others.match(name) or ELSEWHERE.match(name))
        and (is_host or name.removeprefix("counters.") not in {*OF_HOSTS, *nic_counters})
    }


def _untold(facts: Facts) -> Iterator[str]:
    for kind in KINDS:
        fact = getattr(facts, kind)
        if isinstance(fact, Absent):
            yield kind
        elif kind == "counters":
            yield from (f"counters.{name}" for name in COUNTERS if name not in fact)
        else:
            yield from (f"{kind}.{name}" for name in _empty(fact))


def _empty(fact: Any) -> Iterator[str]:
    """The fields that are empty in all items."""
    things = list(fact.values()) if isinstance(fact, Mapping) else list(fact) if isinstance(fact, tuple) else [fact]
    if things and is_dataclass(things[0]):
        for one in fields(things[0]):
            if all(getattr(thing, one.name) in EMPTY for thing in things):
                yield one.name

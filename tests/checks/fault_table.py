"""The table of faults and findings, `faults.yaml`, with its places resolved to names of a fabric."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

from netkit.design import Fabric, Host, Switch

FILE = Path(__file__).with_name("faults.yaml")
LABS = ("nvue", "sonic", "eos", "frr", "hosts")
EVERYWHERE = "pause-storm"
Found = tuple[str, str, str, str]
"""Verdict, check, device and place."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fault at one place, and its findings."""

    fault: str
    at: str
    labs: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    load: str = ""
    deploys: Mapping[str, object] = field(default_factory=dict)
    is_within: bool = False
    settles: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)
    hides: Mapping[str, str] = field(default_factory=dict)

    @property
    def patience_s(self) -> float:
        """How long daemons may take to notice, or the previous row may linger."""
        return 100.0 if self.settles else 40.0

    def __str__(self) -> str:
        return f"{self.fault}-{self.at}{''.join(f'-{value}' for value in self.options.values())}"

    def expected(self, fabric: Fabric) -> set[Found]:
        """The expected findings."""
        return {
            (verdict, check, *end)
            for verdict, check, place in (line.split() for line in self.found)
            for end in ends(fabric, place)
        }

    def allows(self, fabric: Fabric, one: Found) -> bool:
        """Whether a finding may accompany the fault."""
        return any(self._is_meant(fabric, line, one) for line in self.may)

    @staticmethod
    def _is_meant(fabric: Fabric, line: str, one: Found) -> bool:
        check, _, place = line.partition(" ")
        return one[1] == check and (not place or one[2:] in set(ends(fabric, place)))


@cache
def rows() -> tuple[Row, ...]:
    """All rows of the table."""
    return tuple(_row(one) for one in yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))


def rows_on(lab: str) -> tuple[Row, ...]:
    """The rows for one lab."""
    return tuple(row for row in rows() if lab in row.labs)


@cache
def daily(lab: str) -> tuple[Row, ...]:
    """The rows of a lab for the default lane: each fault on one lab, in turn, and one fault on all."""
    found: dict[str, list[Row]] = {one: [] for one in LABS}
    for fault in dict.fromkeys(row.fault for row in rows()):
        firsts = {one: row for row in reversed(rows()) if row.fault == fault for one in row.labs}
        tried_on = sorted(firsts, key=lambda one: (len(found[one]), LABS.index(one)))
        for one in tried_on if fault == EVERYWHERE else tried_on[:1]:
            found[one].append(firsts[one])
    return tuple(found[lab])


def _row(given: Mapping[str, object]) -> Row:
    names = {"with": "options", "within": "is_within"}
    values = {
        names.get(name, name): tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    return Row(**values)  # type: ignore[arg-type]  # a wrong shape fails at once


def ends(fabric: Fabric, place: str) -> Iterator[tuple[str, str]]:
    """Device and place of each end that a place of the table stands for."""
    named, _, priority = place.partition("/")
    tail = f"/{priority}" if priority else ""
    device, is_towards, far = named.partition(">")
    if not is_towards:
        device, _, port = named.partition(":")
        yield device, port + tail
        return
    switch = fabric.device(device)
    assert isinstance(switch, Switch)
    found = [(device, port.name + tail) for port in switch.ports if fnmatchcase(port.peer, far)]
    assert found, place
    yield from found


def place_of(fabric: Fabric, place: str) -> str:
    """A place in the syntax of `netkit lab break`."""
    (device, port), *_ = ends(fabric, place)
    return f"{device}:{port}" if port else device


def kind_of(fabric: Fabric, place: str) -> str:
    """The kind of a place, in the terms of the catalogue of faults."""
    (device, port), *_ = ends(fabric, place)
    is_host = isinstance(fabric.device(device), Host)
    if port:
        return "host NIC" if is_host else "switch port"
    return "host" if is_host else "switch"

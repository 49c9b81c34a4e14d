"""SNMP objects: typed rows, the ordered tree of an agent, and the snapshot of the switch they are computed from."""

import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce

from netkit.design.fabric import Switch
from netkit.lab.reading import SwitchPortReading, TransceiverReading
from netkit.lab.state import PortState, SwitchState

Oid = tuple[int, ...]
TRUE, FALSE = 1, 2
MIB_2: Oid = (1, 3, 6, 1, 2, 1)
ENTERPRISES: Oid = (1, 3, 6, 1, 4, 1)


class SmiType(IntEnum):
    """The SMIv2 types used here, by their AgentX numbers."""

    INTEGER = 2
    STRING = 4
    OBJECT = 6
    COUNTER32 = 65
    GAUGE32 = 66
    COUNTER64 = 70


@dataclass(frozen=True, slots=True)
class MibRow:
    """One object instance with its value."""

    oid: Oid
    kind: SmiType
    value: int | bytes | Oid


def integer(oid: Oid, value: int) -> MibRow:
    """An Integer32, clamped to its range."""
    return MibRow(oid, SmiType.INTEGER, max(-(2**31), min(2**31 - 1, value)))


def gauge(oid: Oid, value: int) -> MibRow:
    """A Gauge32, which stays at its maximum instead of wrapping."""
    return MibRow(oid, SmiType.GAUGE32, max(0, min(2**32 - 1, value)))


def counter32(oid: Oid, value: int) -> MibRow:
    """A Counter32, which wraps at 32 bits."""
    return MibRow(oid, SmiType.COUNTER32, value % 2**32)


def counter64(oid: Oid, value: int) -> MibRow:
    return MibRow(oid, SmiType.COUNTER64, value % 2**64)


def string(oid: Oid, value: str) -> MibRow:
    return MibRow(oid, SmiType.STRING, value.encode())


def octets(oid: Oid, value: bytes) -> MibRow:
    return MibRow(oid, SmiType.STRING, value)


def truth(oid: Oid, value: bool) -> MibRow:
    return MibRow(oid, SmiType.INTEGER, TRUE if value else FALSE)


def mac_octets(mac: str) -> bytes:
    """Convert a MAC address to bytes; an empty string gives none."""
    return bytes.fromhex(mac.replace(":", ""))


FRESH_S = 1.0


@dataclass(frozen=True, slots=True)
class Mib:
    """A subtree and the function that computes its rows."""

    root: Oid
    draw: Callable[[], Iterable[MibRow]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The rows of a subtree as of one moment."""

    rows: tuple[MibRow, ...]
    oids: tuple[Oid, ...]
    at: float


class MibTree:
    """GET and GETNEXT over subtrees that do not overlap."""

    def __init__(self, mibs: Iterable[Mib], fresh_s: float = FRESH_S) -> None:
        self.mibs = tuple(sorted(mibs, key=lambda mib: mib.root))
        self._roots = [mib.root for mib in self.mibs]
        self._drawn: dict[Oid, Drawn] = {}
        self._fresh_s = fresh_s

    def get(self, oid: Oid) -> MibRow | None:
        at = bisect_right(self._roots, oid) - 1
        if at < 0 or oid[: len(self._roots[at])] != self._roots[at]:
            return None
        drawn = self._now(self.mibs[at])
        position = bisect_left(drawn.oids, oid)
        return drawn.rows[position] if position < len(drawn.oids) and drawn.oids[position] == oid else None

    def next(self, oid: Oid, *, is_included: bool = False, end: Oid = ()) -> MibRow | None:
        """The first object after `oid` (or at it, if included) and before `end`, if given."""
        for mib in self.mibs[max(0, bisect_right(self._roots, oid) - 1) :]:
            if end and mib.root >= end:
                return None
            drawn = self._now(mib)
            position = bisect_left(drawn.oids, oid) if is_included else bisect_right(drawn.oids, oid)
            if position < len(drawn.oids):
                return drawn.rows[position] if not end or drawn.oids[position] < end else None
        return None

    def forget(self) -> None:
        """Drop cached rows."""
        self._drawn.clear()

    def _now(self, mib: Mib) -> Drawn:
        drawn = self._drawn.get(mib.root)
        if drawn is None or time.monotonic() - drawn.at >= self._fresh_s:
            rows = tuple(sorted(mib.draw(), key=lambda row: row.oid))
            drawn = Drawn(rows, tuple(row.oid for row in rows), time.monotonic())
            self._drawn[mib.root] = drawn
        return drawn


FIRST_LINUX_INDEX = 3
"""lo and eth0 come first."""


@dataclass(frozen=True, slots=True)
class SnmpInterface:
    """A port with its ifIndex and its name in SNMP."""

    index: int
    label: str
    """ifDescr and ifName: the port's name, on SONiC its alias."""
    state: PortState
    reading: SwitchPortReading


@dataclass(frozen=True, slots=True)
class SnmpSnapshot:
    """A switch at one moment, its interfaces in the order of ifIndex."""

    switch: Switch
    state: SwitchState
    interfaces: tuple[SnmpInterface, ...]


def snapshot(switch: Switch, state: SwitchState, readings: Iterable[SwitchPortReading]) -> SnmpSnapshot:
    configured = {port.name: port for port in state.ports}
    interfaces = []
    for position, reading in enumerate(readings):
        port = configured.get(reading.name, PortState(reading.name))
        index = interface_index(switch.platform, reading.name, position)
        interfaces.append(SnmpInterface(index, port.alias or reading.name, port, reading))
    return SnmpSnapshot(switch, state, tuple(sorted(interfaces, key=lambda interface: interface.index)))


def interface_index(platform: str, port: str, position: int) -> int:
    """The ifIndex of a port.

    SONiC counts from the number in the port's name. Numbering from 3 in port order on Cumulus and FRR, and by 1000 per
    cage on EOS, is the lab's choice: collectors must read ifName.
    """
    numbers = [int(number) for number in re.findall(r"\d+", port)]
    if platform == "sonic" and numbers:
        return numbers[0] + 1
    if platform == "eos" and numbers:
        return reduce(lambda index, number: 1000 * index + number, numbers)
    return FIRST_LINUX_INDEX + position


def modules(snapshot: SnmpSnapshot) -> Iterator[tuple[SnmpInterface, TransceiverReading]]:
    """Yield the interfaces that have a transceiver, with the transceiver."""
    for interface in snapshot.interfaces:
        if interface.reading.module is not None:
            yield interface, interface.reading.module

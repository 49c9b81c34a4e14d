"""How bad a port is, by its rates, and whether it is the source of pauses."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple

from netkit.design import Fabric, Host, Switch
from netkit.watch.feed import PortReading

Kind = Literal["host", "fabric", "nic"]


class Wire(NamedTuple):
    """A port, and what it is cabled to."""

    device: str
    port: str
    kind: Kind
    group: str
    """The rail it belongs to, or the tier where rails meet."""
    speed_gbps: float
    peer: str
    peer_port: str
    ecn_min_bytes: int | None = None
    """The length of its lossless queues from which packets are marked; None of a NIC."""
    headroom_bytes: int | None = None
    """What a lossless priority may still receive once a pause was sent."""

    @property
    def label(self) -> str:
        """The text that a filter searches."""
        return f"{self.device}:{self.port} {self.peer}:{self.peer_port} {self.group} {self.kind}".lower()


def wires(fabric: Fabric, devices: Iterable[Switch | Host]) -> tuple[Wire, ...]:
    """The cabled ports of some devices."""
    speeds = {(link.device, link.port): link.speed_gbps for link in fabric.links()}
    return tuple(
        wire
        for device in devices
        for wire in (_of_switch(device) if isinstance(device, Switch) else _of_host(device, speeds))
    )


def _of_switch(switch: Switch) -> Iterator[Wire]:
    group = f"rail {switch.rail}" if switch.role == "leaf" else f"{switch.role}s"
    for port in switch.ports:
        kind: Kind = "host" if port.role == "host" else "fabric"
        headroom_bytes = port.profile.headroom.xoff_bytes if port.profile.headroom else None
        limits = port.profile.ecn.min_bytes, headroom_bytes
        yield Wire(switch.name, port.name, kind, group, port.speed_gbps, port.peer, port.peer_port, *limits)


def _of_host(host: Host, speeds: dict[tuple[str, str], int]) -> Iterator[Wire]:
    for nic in host.nics:
        speed_gbps = speeds.get((host.name, nic.interface), 0)
        yield Wire(host.name, nic.interface, "nic", f"rail {nic.rail}", speed_gbps, nic.leaf, nic.leaf_port)


BUSY = 0.8
"""The utilisation from which a port counts as busy."""
STEPS = 8
"""Steps of utilisation in the sort order."""


class Level(IntEnum):
    """What is wrong with a port, from the least."""

    UNKNOWN = 0
    QUIET = 1
    BUSY = 2
    QUEUES = 3
    """A queue was longer than the ECN minimum, however briefly."""
    MARKS = 4
    DROPS = 5
    SLIGHTLY_PAUSED = 6
    SLIGHTLY_PAUSING = 7
    DAMAGED = 8
    FILLS = 9
    """Much of its headroom was used: when that is full, lossless packets are lost."""
    PAUSED = 10
    PAUSING = 11
    FLAPS = 12
    """Worse than pauses, which mostly come from elsewhere: a flapping link is a fault of this very port."""
    SOURCE = 13
    """It pauses others, and nothing pauses it: the origin of pauses."""
    LOSES = 14


WORDS = {
    Level.UNKNOWN: "",
    Level.QUIET: "traffic",
    Level.BUSY: "busy",
    Level.QUEUES: "queues",
    Level.MARKS: "marks",
    Level.DROPS: "drops",
    Level.SLIGHTLY_PAUSED: "paused",
    Level.SLIGHTLY_PAUSING: "pauses",
    Level.DAMAGED: "errors",
    Level.FILLS: "fills",
    Level.FLAPS: "flaps",
    Level.PAUSED: "paused",
    Level.PAUSING: "pauses",
    Level.SOURCE: "source",
    Level.LOSES: "loses",
}
SEVERE = (Level.LOSES, Level.SOURCE, Level.FLAPS, Level.PAUSING, Level.PAUSED)
SLIGHT = (
    *(Level.FILLS, Level.DAMAGED, Level.SLIGHTLY_PAUSING, Level.SLIGHTLY_PAUSED),
    *(Level.DROPS, Level.MARKS, Level.QUEUES),
)


@dataclass(frozen=True, slots=True)
class PauseLimits:
    """From when pauses and used headroom are shown, and from when pauses are severe; the limits of the checks."""

    pause_fraction_warn: float = 0.01
    pause_fraction_fail: float = 0.05
    pause_rate_warn: float = 100
    pause_rate_fail: float = 1000
    headroom_warn_percent: float = 50


class Severity(NamedTuple):
    """The level, and how much of it in steps of two."""

    level: Level = Level.UNKNOWN
    step: int = 0


class PauseSummary(NamedTuple):
    """A port's part in pauses, whatever else is worse about it."""

    is_held: bool = False
    """The other end pauses it, if only slightly."""
    source: Severity = Severity()
    """Its severity if pauses begin there; no level if it does not pause the other end."""


NO_PAUSES = PauseSummary()


def sources(lately: Mapping[Wire, tuple[Severity, PauseSummary]]) -> Mapping[Wire, Severity]:
    """Raise the severity of ports where pauses begin: they pause others, and nothing pauses them."""
    held = {_chip(wire) for wire, (_, pauses) in lately.items() if pauses.is_held}
    return {
        wire: one if pauses is NO_PAUSES or _chip(wire) in held else max(one, pauses.source)
        for wire, (one, pauses) in lately.items()
    }


def _chip(wire: Wire) -> tuple[str, str]:
    """The unit that passes pauses on: a whole switch, but each NIC of a host by itself."""
    return wire.device, wire.port if wire.kind == "nic" else ""


def judged(reading: PortReading, speed_gbps: float, limits: PauseLimits) -> Severity:
    if all(value is None for value in reading):
        return Severity()
    return max(_severities(reading, speed_gbps, limits))


def _severities(reading: PortReading, speed_gbps: float, limits: PauseLimits) -> Iterable[Severity]:
    used = use(reading, speed_gbps)
    yield Severity(Level.BUSY if used >= BUSY else Level.QUIET, int(used * STEPS))
    counted = (
        (Level.LOSES, reading.loss),
        (Level.FLAPS, reading.flaps),
        (Level.DAMAGED, reading.errors),
        (Level.DROPS, reading.drops),
        (Level.MARKS, reading.marks),
    )
    yield from (Severity(level, _step(value)) for level, value in counted if value)
    if reading.headroom_share is not None and 100 * reading.headroom_share > limits.headroom_warn_percent:
        yield Severity(Level.FILLS, _step(reading.headroom_share))
    if reading.queue_share is not None and reading.queue_share >= 1:
        yield Severity(Level.QUEUES, _step(reading.queue_share))
    for held, rate, slight, severe in (
        (reading.pause_in, reading.pauses_in, Level.SLIGHTLY_PAUSED, Level.PAUSED),
        (reading.pause_out, reading.pauses_out, Level.SLIGHTLY_PAUSING, Level.PAUSING),
    ):
        warn, fail = _pause_shares(held, rate, limits)
        if fail >= 1:
            yield Severity(severe, _step(fail))
        elif warn >= 1:
            yield Severity(slight, _step(warn))


def pauses_of(reading: PortReading, limits: PauseLimits) -> PauseSummary:
    """The part of one interval in pauses."""
    is_held = max(_pause_shares(reading.pause_in, reading.pauses_in, limits)) >= 1
    _, sent = _pause_shares(reading.pause_out, reading.pauses_out, limits)
    if not is_held and sent < 1:
        return NO_PAUSES
    return PauseSummary(is_held, Severity(Level.SOURCE, _step(sent)) if sent >= 1 else Severity())


def _pause_shares(held: float | None, rate: float | None, limits: PauseLimits) -> tuple[float, float]:
    """Pauses relative to both limits: by time where that is reported, else by rate."""
    if held is not None:
        return _share(held, limits.pause_fraction_warn), _share(held, limits.pause_fraction_fail)
    return _share(rate or 0.0, limits.pause_rate_warn), _share(rate or 0.0, limits.pause_rate_fail)


def _share(value: float, limit: float) -> float:
    return value / limit if limit else value and math.inf


def _step(value: float) -> int:
    return int(math.log2(min(max(value, 2**-40), 2**80)))


def use(reading: PortReading, speed_gbps: float) -> float:
    """The utilisation in the busier direction."""
    return max(reading.rx_bps or 0.0, reading.tx_bps or 0.0) / (speed_gbps * 1e9) if speed_gbps else 0.0


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts swp2 before swp10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", text))


Counts = Mapping[str, int]
Ages = tuple[tuple[float, Counts], ...]
"""The last reports of places, with their times, latest first."""

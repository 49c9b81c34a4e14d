"""What is wrong with a port, and in which order ports are worth looking at."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from netkit.watch.reading import Reading
from netkit.watch.wire import Wire

BUSY = 0.8
"""The use of a port from which it is worth a word."""
STEPS = 8
"""Steps of use that make a difference to the order."""


class Level(IntEnum):
    """What may be wrong, from the least."""

    UNKNOWN = 0
    QUIET = 1
    BUSY = 2
    MARKS = 3
    DROPS = 4
    SLIGHTLY_PAUSED = 5
    SLIGHTLY_PAUSING = 6
    DAMAGED = 7
    PAUSED = 8
    PAUSING = 9
    FLAPS = 10
    """Pauses come from elsewhere mostly; a link that goes down is what is wrong with this very port."""
    SOURCE = 11
    """It pauses others, and nothing pauses it: where pauses come from."""
    LOSES = 12


WORDS = {
    Level.UNKNOWN: "",
    Level.QUIET: "traffic",
    Level.BUSY: "busy",
    Level.MARKS: "marks",
    Level.DROPS: "drops",
    Level.SLIGHTLY_PAUSED: "paused",
    Level.SLIGHTLY_PAUSING: "pauses",
    Level.DAMAGED: "errors",
    Level.FLAPS: "flaps",
    Level.PAUSED: "paused",
    Level.PAUSING: "pauses",
    Level.SOURCE: "source",
    Level.LOSES: "loses",
}
SEVERE = (Level.LOSES, Level.SOURCE, Level.FLAPS, Level.PAUSING, Level.PAUSED)
SLIGHT = (Level.DAMAGED, Level.SLIGHTLY_PAUSING, Level.SLIGHTLY_PAUSED, Level.DROPS, Level.MARKS)


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on pauses are worth a word, and from when on they are bad; as the checks have it."""

    pause_fraction_warn: float = 0.01
    pause_fraction_fail: float = 0.05
    pause_rate_warn: float = 100
    pause_rate_fail: float = 1000


class Standing(NamedTuple):
    """How bad a port is: the level, and how much of it in steps of two."""

    level: Level = Level.UNKNOWN
    step: int = 0


class Pauses(NamedTuple):
    """What a port has to do with pauses, whatever else is worse about it."""

    is_held: bool = False
    """The other end holds it up, if only a bit."""
    source: Standing = Standing()
    """How bad it is, should pauses begin there; no level where it does not hold up the other end."""


NO_PAUSES = Pauses()


def sources(lately: Mapping[Wire, tuple[Standing, Pauses]]) -> Mapping[Wire, Standing]:
    """Return standings in which a port that pauses others says so when pauses begin there: nothing pauses it."""
    held = {_chip(wire) for wire, (_, pauses) in lately.items() if pauses.is_held}
    return {
        wire: one if pauses is NO_PAUSES or _chip(wire) in held else max(one, pauses.source)
        for wire, (one, pauses) in lately.items()
    }


def _chip(wire: Wire) -> tuple[str, str]:
    """Return what passes pauses on: all of a switch, but of a host each NIC by itself."""
    return wire.device, wire.port if wire.kind == "nic" else ""


def judged(reading: Reading, speed_gbps: float, limits: Limits) -> Standing:
    """Return how bad one interval is."""
    if all(value is None for value in reading):
        return Standing()
    return max(_standings(reading, speed_gbps, limits))


def _standings(reading: Reading, speed_gbps: float, limits: Limits) -> Iterable[Standing]:
    used = use(reading, speed_gbps)
    yield Standing(Level.BUSY if used >= BUSY else Level.QUIET, int(used * STEPS))
    counted = (
        (Level.LOSES, reading.loss),
        (Level.FLAPS, reading.flaps),
        (Level.DAMAGED, reading.errors),
        (Level.DROPS, reading.drops),
        (Level.MARKS, reading.marks),
    )
    yield from (Standing(level, _step(value)) for level, value in counted if value)
    for held, rate, slight, severe in (
        (reading.pause_in, reading.pauses_in, Level.SLIGHTLY_PAUSED, Level.PAUSED),
        (reading.pause_out, reading.pauses_out, Level.SLIGHTLY_PAUSING, Level.PAUSING),
    ):
        warn, fail = _pause_shares(held, rate, limits)
        if fail >= 1:
            yield Standing(severe, _step(fail))
        elif warn >= 1:
            yield Standing(slight, _step(warn))


def pauses_of(reading: Reading, limits: Limits) -> Pauses:
    """Return what one interval has to do with pauses."""
    is_held = max(_pause_shares(reading.pause_in, reading.pauses_in, limits)) >= 1
    _, sent = _pause_shares(reading.pause_out, reading.pauses_out, limits)
    if not is_held and sent < 1:
        return NO_PAUSES
    return Pauses(is_held, Standing(Level.SOURCE, _step(sent)) if sent >= 1 else Standing())


def _pause_shares(held: float | None, rate: float | None, limits: Limits) -> tuple[float, float]:
    """Return pauses as parts of both limits: by time where that is told, by rate elsewhere."""
    if held is not None:
        return _share(held, limits.pause_fraction_warn), _share(held, limits.pause_fraction_fail)
    return _share(rate or 0.0, limits.pause_rate_warn), _share(rate or 0.0, limits.pause_rate_fail)


def _share(value: float, limit: float) -> float:
    return value / limit if limit else value and math.inf


def _step(value: float) -> int:
    return int(math.log2(min(max(value, 2**-40), 2**80)))


def use(reading: Reading, speed_gbps: float) -> float:
    """Return the part of its speed a port moves in the busier direction."""
    return max(reading.rx_bps or 0.0, reading.tx_bps or 0.0) / (speed_gbps * 1e9) if speed_gbps else 0.0


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key by which swp2 comes before swp10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", text))

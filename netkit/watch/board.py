"""All that is known at a moment: the tracks of all ports, and how it goes with their devices."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from netkit.facts import Sample
from netkit.watch.feed import Condition
from netkit.watch.meter import Meter
from netkit.watch.reading import Rates, Reading, by_port, reading
from netkit.watch.track import NOTHING, Point, Track
from netkit.watch.trouble import Limits, Standing, judged, natural, pauses_of, sources
from netkit.watch.wire import Wire

PATIENCE = 2.5
"""Times the interval of a device after which what it told last is no longer shown as what is."""
STEP_S = 1.0
HOLD_S = 10.0
"""What was wrong keeps its place for so long, so that rows do not jump with each second."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What is watched: the same in a record as it was live."""

    fabric: str
    wires: tuple[Wire, ...]
    lossless: tuple[int, ...] = ()
    limits: Limits = field(default_factory=Limits)
    interval_s: float = 1.0
    lab: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the devices."""
        return tuple(dict.fromkeys(wire.device for wire in self.wires))


class Row(NamedTuple):
    """A port at a moment."""

    wire: Wire
    standing: Standing
    reading: Reading
    track: Track
    end_s: float
    """Where its history ends: with its last interval, or where one is overdue."""
    rates: Rates
    """Those of its places now; none once an interval is overdue."""

    def peaks(self, quantity: str, columns: int) -> Sequence[float | None]:
        """Return the highest value of each of the last seconds; None where nothing was measured."""
        return self.track.peaks(quantity, self.end_s, columns, STEP_S)


class Health(NamedTuple):
    """A device at a moment."""

    device: str
    condition: Condition
    silent_s: float | None
    """For how long it has told nothing; None when it never told anything."""
    samples: int
    is_overdue: bool


class Scene(NamedTuple):
    """A moment, ready to be drawn."""

    outline: Outline
    clock: str
    rows: tuple[Row, ...]
    """What is wrong first."""
    health: tuple[Health, ...]


@dataclass(slots=True)
class _Device:
    meter: Meter
    condition: Condition
    heard_s: float | None = None
    at_s: float = 0.0
    samples: int = 0


class Board:
    """Takes what feeds deliver. Its memory does not grow with time."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        first = Condition(every_s=outline.interval_s)
        self._devices = {name: _Device(Meter(), first) for name in outline.devices}
        self._wires = {(wire.device, wire.port): wire for wire in outline.wires}
        self._tracks = {key: Track() for key in self._wires}
        self._lossless = frozenset(outline.lossless)
        self._lock = threading.Lock()

    def deliver(self, device: str, sample: Sample, heard_s: float) -> None:
        """Take counters that came at a moment."""
        with self._lock:
            known = self._devices.get(device)
            if known is None:
                return
            known.heard_s, known.at_s, known.samples = heard_s, sample.at_s, known.samples + 1
            for port, rates in by_port(known.meter.rates(sample)).items():
                track = self._tracks.get((device, port))
                if track is not None:
                    self._add(track, self._wires[device, port], sample.at_s, rates)

    def _add(self, track: Track, wire: Wire, at_s: float, rates: Rates) -> None:
        spans = [delta.seconds for places in rates.values() for delta in places.values() if delta.is_known]
        if spans:
            told = reading(rates, self._lossless)
            standing = judged(told, wire.speed_gbps, self.outline.limits)
            pauses = pauses_of(told, self.outline.limits)
            track.add(Point(at_s - max(spans), at_s, told, standing, pauses), rates)

    def tell(self, device: str, condition: Condition) -> None:
        """Take note of how it goes with a device."""
        with self._lock:
            if device in self._devices:
                self._devices[device].condition = condition

    def health(self, now_s: float) -> Mapping[str, Health]:
        """Return how it goes with each device."""
        with self._lock:
            return {name: self._health(name, device, now_s) for name, device in self._devices.items()}

    def _health(self, name: str, device: _Device, now_s: float) -> Health:
        ahead_s = 0.0 if device.heard_s is None else device.heard_s - now_s  # the clock was set back since
        silent_s = None if device.heard_s is None else max(0.0, -ahead_s)
        patience_s = PATIENCE * max(device.condition.every_s, self.outline.interval_s)
        is_overdue = silent_s is None or silent_s > patience_s or ahead_s > patience_s
        return Health(name, device.condition, silent_s, device.samples, is_overdue)

    def scene(self, now_s: float, clock: str = "") -> Scene:
        """Return all that can be drawn of a moment."""
        return Scene(self.outline, clock, self.rows(now_s), tuple(self.health(now_s).values()))

    def rows(self, now_s: float) -> tuple[Row, ...]:
        """Return every port, what is wrong first; equals in the order of their names."""
        health = self.health(now_s)
        with self._lock:
            found = list(self._rows(health))
        return tuple(sorted(found, key=_rank))

    def _rows(self, health: Mapping[str, Health]) -> Iterator[Row]:
        ends = {name: self._end_s(one) for name, one in health.items()}
        lately = {wire: self._tracks[key].worst(ends[wire.device] - HOLD_S) for key, wire in self._wires.items()}
        standings = sources(lately)
        for key, wire in self._wires.items():
            track, device = self._tracks[key], health[wire.device]
            end_s = ends[wire.device]
            patience_s = PATIENCE * max(STEP_S, device.condition.every_s)
            is_told = not device.is_overdue and track.end_s is not None and end_s - track.end_s <= patience_s
            now = track.latest if is_told else NOTHING
            yield Row(wire, standings[wire], now, track, end_s, track.rates if is_told else {})

    def _end_s(self, health: Health) -> float:
        """Return where the history of a device ends: with its last sample, or where one is overdue."""
        late_s = (health.silent_s or 0.0) if health.is_overdue else 0.0
        return self._devices[health.device].at_s + late_s


def _rank(row: Row) -> tuple[object, ...]:
    return -row.standing.level, -row.standing.step, natural(row.wire.device), natural(row.wire.port)

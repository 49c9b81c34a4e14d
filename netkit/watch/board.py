"""The state of every watched port over time: rates from samples, history, and what is wrong now."""

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from netkit.facts import Counters, Sample
from netkit.facts.counter import place
from netkit.facts.qos import Buffer
from netkit.judge.delta import Delta, deltas
from netkit.watch.feed import (
    NO_PEAKS,
    WATCHED,
    Condition,
    Peaks,
    PortReading,
    Rates,
    by_port,
    peaks,
    peaks_by_port,
    reading,
    with_peaks,
)
from netkit.watch.port_severity import (
    NO_PAUSES,
    Ages,
    Counts,
    PauseLimits,
    PauseSummary,
    Severity,
    Wire,
    judged,
    natural,
    pauses_of,
    sources,
)

MOST_AGES = 8
"""Places that were missing for so many samples are forgotten."""


class Meter:
    """Remembers the last count at each place. A sample need not tell all: a stream tells what it has."""

    def __init__(self) -> None:
        self._last: dict[str, Ages] = {}
        self._before: Counters = {}
        """The sample before: whether others fell with a count says why it fell."""
        self._buffers: dict[str, Buffer] = {}
        self._boot = ""

    def peaks(self, sample: Sample) -> Mapping[str, Peaks]:
        """Return how full queues were since the samples before; to be asked before the rates of the same sample."""
        if sample.boot != self._boot:
            self._buffers.clear()
        found = peaks(self._buffers, sample.buffers)
        self._buffers.update(sample.buffers)
        return found

    def rates(self, sample: Sample) -> Rates:
        """Return what was added since the samples before; what cannot be said is a delta without a value."""
        if sample.boot != self._boot:
            self._last.clear()  # it restarted, so that nothing before can be compared with
            self._boot = sample.boot
            self._before = {}
        rates = {
            name: self._added(name, counts, sample)
            for name, counts in sample.counters.items()
            if name in WATCHED and counts
        }
        self._before = sample.counters
        return rates

    def _added(self, name: str, counts: Counts, sample: Sample) -> Mapping[str, Delta]:
        found: dict[str, Delta] = {}
        rest: list[tuple[float, Counts]] = []
        for earlier_s, known in self._last.get(name, ()):
            earlier, later, others = _shared(known, counts)
            if later:
                first = Sample(earlier_s, {**self._before, name: earlier})
                found.update(deltas(name, (first, Sample(sample.at_s, {**sample.counters, name: later}))))
            if others:
                rest.append((earlier_s, others))
        self._last[name] = ((sample.at_s, counts), *rest)[:MOST_AGES]
        return found


def _shared(known: Counts, counts: Counts) -> tuple[Counts, Counts, Counts]:
    """Return what both tell, as it was and as it is, and what only the earlier one tells; mostly they tell the same."""
    if known.keys() == counts.keys():
        return known, counts, {}
    both = known.keys() & counts.keys()
    others = {place: count for place, count in known.items() if place not in both}
    return {place: known[place] for place in both}, {place: counts[place] for place in both}, others


KEPT = 64
"""Intervals: a minute at one a second."""
LEAST_SHARE = 0.3
"""An interval counts in a column it fills by so much: each column that was measured at all has one that does."""
NOTHING = PortReading()


class Point(NamedTuple):
    """One interval: a rate holds for all of it, not only for its end."""

    from_s: float
    to_s: float
    reading: PortReading
    severity: Severity = Severity()
    """How bad it is."""
    pauses: PauseSummary = NO_PAUSES


class Track:
    """A bounded history."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=KEPT)
        self.rates: Rates = {}
        """The last rates at each place of the port."""
        self.levels: Mapping[str, Peaks] = {}
        """The last peaks of each of its queues."""

    def add(self, point: Point, rates: Rates, levels: Mapping[str, Peaks] | None = None) -> None:
        """Remember an interval. A stream may tell one piece by piece; those are one."""
        last = self._points[-1] if self._points else None
        if last is not None and _is_same(last, point):
            told = (
                value if value is not None else before
                for before, value in zip(last.reading, point.reading, strict=True)
            )
            worst, pauses = max(last.severity, point.severity), _either(last.pauses, point.pauses)
            self._points[-1] = Point(
                min(last.from_s, point.from_s), max(last.to_s, point.to_s), PortReading(*told), worst, pauses
            )
        else:
            if last is not None and point.to_s <= last.to_s:
                self._points.clear()  # the clock was set back: nobody can tell what was when
            self._points.append(point)
        self.rates = {**self.rates, **rates}
        self.levels = {**self.levels, **(levels or {})}

    @property
    def latest(self) -> PortReading:
        """Return the last interval."""
        return self._points[-1].reading if self._points else NOTHING

    @property
    def end_s(self) -> float | None:
        """Return when the last interval ended."""
        return self._points[-1].to_s if self._points else None

    def since(self, from_s: float) -> tuple[Point, ...]:
        """Return the intervals that end after a moment."""
        kept = tuple(self._points)  # at one stroke: others may add meanwhile
        return tuple(point for point in kept if point.to_s > from_s)

    def worst(self, from_s: float) -> tuple[Severity, PauseSummary]:
        """Return how bad the worst interval was that ended after a moment, and what they all had to do with pauses."""
        worst, pauses = Severity(), NO_PAUSES
        for point in reversed(tuple(self._points)):
            if point.to_s <= from_s:
                break
            worst = max(worst, point.severity)
            pauses = _either(pauses, point.pauses)
        return worst, pauses

    def peaks(self, quantity: str, end_s: float, columns: int, step_s: float) -> Sequence[float | None]:
        """Return the highest value in each of so many steps up to a moment; None where nothing was measured."""
        found: list[float | None] = [None] * columns
        first_s = end_s - columns * step_s
        for point in self.since(first_s):
            value = getattr(point.reading, quantity)
            if value is None:
                continue
            for column in _columns(point, first_s, columns, step_s):
                here = found[column]
                found[column] = value if here is None else max(here, value)
        return found


def _is_same(last: Point, point: Point) -> bool:
    """Whether two intervals are for the better part one."""
    common_s = min(last.to_s, point.to_s) - max(last.from_s, point.from_s)
    return common_s > min(last.to_s - last.from_s, point.to_s - point.from_s) / 2


def _either(one: PauseSummary, other: PauseSummary) -> PauseSummary:
    if one is other or other is NO_PAUSES:
        return one
    if one is NO_PAUSES:
        return other
    return PauseSummary(one.is_held or other.is_held, max(one.source, other.source))


def _columns(point: Point, first_s: float, columns: int, step_s: float) -> Sequence[int]:
    """Return the columns an interval counts in."""
    begin, end = (point.from_s - first_s) / step_s, (point.to_s - first_s) / step_s
    candidates = range(max(0, int(begin)), min(columns, int(end) + 1))
    least = min(LEAST_SHARE, (end - begin) / 2)
    return [column for column in candidates if min(end, column + 1) - max(begin, column) >= least - 1e-9]


OVERDUE_INTERVALS = 2.5
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
    limits: PauseLimits = field(default_factory=PauseLimits)
    interval_s: float = 1.0
    lab: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the devices."""
        return tuple(dict.fromkeys(wire.device for wire in self.wires))


class Row(NamedTuple):
    """A port at a moment."""

    wire: Wire
    severity: Severity
    reading: PortReading
    track: Track
    end_s: float
    """Where its history ends: with its last interval, or where one is overdue."""
    rates: Rates
    """Those of its places now; none once an interval is overdue."""
    levels: Mapping[str, Peaks]
    """How full its queues were, by place."""

    def peaks(self, quantity: str, columns: int) -> Sequence[float | None]:
        """Return the highest value of each of the last seconds; None where nothing was measured."""
        return self.track.peaks(quantity, self.end_s, columns, STEP_S)


class Health(NamedTuple):
    """A device at a moment."""

    device: str
    condition: Condition
    silent_s: float | None
    """For how long it has reported nothing; None when it never reported."""
    samples: int
    is_overdue: bool


class BoardView(NamedTuple):
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
            levels = peaks_by_port(known.meter.peaks(sample))
            for port, rates in by_port(known.meter.rates(sample)).items():
                track = self._tracks.get((device, port))
                if track is not None:
                    self._add(track, self._wires[device, port], sample.at_s, rates, levels.get(port, {}))

    def _add(self, track: Track, wire: Wire, at_s: float, rates: Rates, levels: Mapping[str, Peaks]) -> None:
        spans = [delta.seconds for places in rates.values() for delta in places.values() if delta.is_known]
        if spans:
            lossless = (levels.get(place(wire.port, number), NO_PEAKS) for number in self._lossless)
            told = with_peaks(reading(rates, self._lossless), lossless, wire.ecn_min_bytes, wire.headroom_bytes)
            severity = judged(told, wire.speed_gbps, self.outline.limits)
            pauses = pauses_of(told, self.outline.limits)
            track.add(Point(at_s - max(spans), at_s, told, severity, pauses), rates, levels)

    def report(self, device: str, condition: Condition) -> None:
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
        overdue_s = OVERDUE_INTERVALS * max(device.condition.every_s, self.outline.interval_s)
        is_overdue = silent_s is None or silent_s > overdue_s or ahead_s > overdue_s
        return Health(name, device.condition, silent_s, device.samples, is_overdue)

    def view(self, now_s: float, clock: str = "") -> BoardView:
        """Return all that can be drawn of a moment."""
        return BoardView(self.outline, clock, self.rows(now_s), tuple(self.health(now_s).values()))

    def rows(self, now_s: float) -> tuple[Row, ...]:
        """Return every port, what is wrong first; equals in the order of their names."""
        health = self.health(now_s)
        with self._lock:
            found = list(self._rows(health))
        return tuple(sorted(found, key=_rank))

    def _rows(self, health: Mapping[str, Health]) -> Iterator[Row]:
        ends = {name: self._end_s(one) for name, one in health.items()}
        lately = {wire: self._tracks[key].worst(ends[wire.device] - HOLD_S) for key, wire in self._wires.items()}
        severities = sources(lately)
        for key, wire in self._wires.items():
            track, device = self._tracks[key], health[wire.device]
            end_s = ends[wire.device]
            overdue_s = OVERDUE_INTERVALS * max(STEP_S, device.condition.every_s)
            is_told = not device.is_overdue and track.end_s is not None and end_s - track.end_s <= overdue_s
            now = track.latest if is_told else NOTHING
            rates, levels = (track.rates, track.levels) if is_told else ({}, {})
            yield Row(wire, severities[wire], now, track, end_s, rates, levels)

    def _end_s(self, health: Health) -> float:
        """Return where the history of a device ends: with its last sample, or where one is overdue."""
        late_s = (health.silent_s or 0.0) if health.is_overdue else 0.0
        return self._devices[health.device].at_s + late_s


def _rank(row: Row) -> tuple[object, ...]:
    return -row.severity.level, -row.severity.step, natural(row.wire.device), natural(row.wire.port)

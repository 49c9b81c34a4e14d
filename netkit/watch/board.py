"""The state of every watched port over time: rates from samples, history, and severity."""

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
"""The number of samples after which a missing place is dropped."""


class Meter:
    """Keeps the last count of each place. A sample may be partial: a stream delivers pieces."""

    def __init__(self) -> None:
        self._last: dict[str, Ages] = {}
        self._before: Counters = {}
        """The previous sample: if other counts fell too, it is a reset, not a wrap."""
        self._buffers: dict[str, Buffer] = {}
        self._boot = ""

    def peaks(self, sample: Sample) -> Mapping[str, Peaks]:
        """The peaks of queues since the samples before; call it before `rates` of the same sample."""
        if sample.boot != self._boot:
            self._buffers.clear()
        found = peaks(self._buffers, sample.buffers)
        self._buffers.update(sample.buffers)
        return found

    def rates(self, sample: Sample) -> Rates:
        """What was added since the samples before; an unknown rate is a delta without a value."""
        if sample.boot != self._boot:
            self._last.clear()  # it restarted: earlier counts are not comparable
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
    """The places in both samples, earlier and later, and those only in the earlier one."""
    if known.keys() == counts.keys():
        return known, counts, {}
    both = known.keys() & counts.keys()
    others = {place: count for place, count in known.items() if place not in both}
    return {place: known[place] for place in both}, {place: counts[place] for place in both}, others


KEPT = 64
"""Intervals: a minute at one per second."""
LEAST_SHARE = 0.3
"""The share of a column that an interval has to fill to count in it: every measured column has such an interval."""
NOTHING = PortReading()


class Point(NamedTuple):
    """One interval; its rates apply to all of it."""

    from_s: float
    to_s: float
    reading: PortReading
    severity: Severity = Severity()

    pauses: PauseSummary = NO_PAUSES


class Track:
    """The bounded history of a port."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=KEPT)
        self.rates: Rates = {}
        """The last rates at each place of the port."""
        self.levels: Mapping[str, Peaks] = {}
        """The last peaks of each of its queues."""

    def add(self, point: Point, rates: Rates, levels: Mapping[str, Peaks] | None = None) -> None:
        """Add an interval. A stream may deliver one in pieces; they are merged."""
        last = self._points[-1] if self._points else None
        if last is not None and _is_same(last, point):
            values = (
                value if value is not None else before
                for before, value in zip(last.reading, point.reading, strict=True)
            )
            worst, pauses = max(last.severity, point.severity), _either(last.pauses, point.pauses)
            self._points[-1] = Point(
                min(last.from_s, point.from_s), max(last.to_s, point.to_s), PortReading(*values), worst, pauses
            )
        else:
            if last is not None and point.to_s <= last.to_s:
                self._points.clear()  # the clock was set back: the order is unknown
            self._points.append(point)
        self.rates = {**self.rates, **rates}
        self.levels = {**self.levels, **(levels or {})}

    @property
    def latest(self) -> PortReading:
        """The last interval."""
        return self._points[-1].reading if self._points else NOTHING

    @property
    def end_s(self) -> float | None:
        """The end of the last interval."""
        return self._points[-1].to_s if self._points else None

    def since(self, from_s: float) -> tuple[Point, ...]:
        """The intervals that end after a time."""
        kept = tuple(self._points)  # a copy: other threads may add meanwhile
        return tuple(point for point in kept if point.to_s > from_s)

    def worst(self, from_s: float) -> tuple[Severity, PauseSummary]:
        """The worst severity of the intervals that end after a time, and all their pauses together."""
        worst, pauses = Severity(), NO_PAUSES
        for point in reversed(tuple(self._points)):
            if point.to_s <= from_s:
                break
            worst = max(worst, point.severity)
            pauses = _either(pauses, point.pauses)
        return worst, pauses

    def peaks(self, quantity: str, end_s: float, columns: int, step_s: float) -> Sequence[float | None]:
        """The highest value in each step up to a time; None where nothing was measured."""
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
    """Whether two intervals overlap by more than half."""
    common_s = min(last.to_s, point.to_s) - max(last.from_s, point.from_s)
    return common_s > min(last.to_s - last.from_s, point.to_s - point.from_s) / 2


def _either(one: PauseSummary, other: PauseSummary) -> PauseSummary:
    if one is other or other is NO_PAUSES:
        return one
    if one is NO_PAUSES:
        return other
    return PauseSummary(one.is_held or other.is_held, max(one.source, other.source))


def _columns(point: Point, first_s: float, columns: int, step_s: float) -> Sequence[int]:
    """The columns in which an interval counts."""
    begin, end = (point.from_s - first_s) / step_s, (point.to_s - first_s) / step_s
    candidates = range(max(0, int(begin)), min(columns, int(end) + 1))
    least = min(LEAST_SHARE, (end - begin) / 2)
    return [column for column in candidates if min(end, column + 1) - max(begin, column) >= least - 1e-9]


OVERDUE_INTERVALS = 2.5
"""Intervals without a sample after which the last one is no longer shown as current."""
STEP_S = 1.0
HOLD_S = 10.0
"""How long a port keeps its severity, so that rows do not jump every second."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What is watched; a record stores it, too."""

    fabric: str
    wires: tuple[Wire, ...]
    lossless: tuple[int, ...] = ()
    limits: PauseLimits = field(default_factory=PauseLimits)
    interval_s: float = 1.0
    lab: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(wire.device for wire in self.wires))


class Row(NamedTuple):
    """A port at one time."""

    wire: Wire
    severity: Severity
    reading: PortReading
    track: Track
    end_s: float
    """The end of its history: the last interval, or the time of an overdue one."""
    rates: Rates
    """The current rates of its places; empty once an interval is overdue."""
    levels: Mapping[str, Peaks]
    """The peaks of its queues, by place."""

    def peaks(self, quantity: str, columns: int) -> Sequence[float | None]:
        """The highest value in each of the last seconds; None where nothing was measured."""
        return self.track.peaks(quantity, self.end_s, columns, STEP_S)


class Health(NamedTuple):
    """A device at one time."""

    device: str
    condition: Condition
    silent_s: float | None
    """The time since its last sample; None if there was none."""
    samples: int
    is_overdue: bool


class BoardView(NamedTuple):
    """The board at one time, ready to be drawn."""

    outline: Outline
    clock: str
    rows: tuple[Row, ...]
    """The worst first."""
    health: tuple[Health, ...]


@dataclass(slots=True)
class _Device:
    meter: Meter
    condition: Condition
    heard_s: float | None = None
    at_s: float = 0.0
    samples: int = 0


class Board:
    """Collects what feeds deliver, in bounded memory."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        first = Condition(every_s=outline.interval_s)
        self._devices = {name: _Device(Meter(), first) for name in outline.devices}
        self._wires = {(wire.device, wire.port): wire for wire in outline.wires}
        self._tracks = {key: Track() for key in self._wires}
        self._lossless = frozenset(outline.lossless)
        self._lock = threading.Lock()

    def deliver(self, device: str, sample: Sample, heard_s: float) -> None:
        """Add the counters of a device, received at `heard_s`."""
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
            current = with_peaks(reading(rates, self._lossless), lossless, wire.ecn_min_bytes, wire.headroom_bytes)
            severity = judged(current, wire.speed_gbps, self.outline.limits)
            pauses = pauses_of(current, self.outline.limits)
            track.add(Point(at_s - max(spans), at_s, current, severity, pauses), rates, levels)

    def report(self, device: str, condition: Condition) -> None:
        with self._lock:
            if device in self._devices:
                self._devices[device].condition = condition

    def health(self, now_s: float) -> Mapping[str, Health]:
        with self._lock:
            return {name: self._health(name, device, now_s) for name, device in self._devices.items()}

    def _health(self, name: str, device: _Device, now_s: float) -> Health:
        ahead_s = 0.0 if device.heard_s is None else device.heard_s - now_s  # the clock was set back since
        silent_s = None if device.heard_s is None else max(0.0, -ahead_s)
        overdue_s = OVERDUE_INTERVALS * max(device.condition.every_s, self.outline.interval_s)
        is_overdue = silent_s is None or silent_s > overdue_s or ahead_s > overdue_s
        return Health(name, device.condition, silent_s, device.samples, is_overdue)

    def view(self, now_s: float, clock: str = "") -> BoardView:
        """Everything needed to draw the board at one time."""
        return BoardView(self.outline, clock, self.rows(now_s), tuple(self.health(now_s).values()))

    def rows(self, now_s: float) -> tuple[Row, ...]:
        """All ports, the worst first; equals sorted by name."""
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
        """The end of a device's history: its last sample, or the time of an overdue one."""
        late_s = (health.silent_s or 0.0) if health.is_overdue else 0.0
        return self._devices[health.device].at_s + late_s


def _rank(row: Row) -> tuple[object, ...]:
    return -row.severity.level, -row.severity.step, natural(row.wire.device), natural(row.wire.port)

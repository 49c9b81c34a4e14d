"""Counters over a window: the increase between two samples, or why it is unknown."""

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from netkit.facts import COUNTERS, Absent, Observation, Sample, Snapshot
from netkit.facts.counter import place

NARROW = 1 << 32
WIDE = 1 << 64
NEAR_THE_END = 0.9
"""A count must have been this close to the end of its range to have wrapped."""
MOST_WRAPPED = 0.25
"""The part of its range that a counter may plausibly have counted across its end."""
MOST_NUMBERS = 16
"""The most priorities, queues or bins of a port."""
LONGEST_WRAP_S = 3600.0
"""Over a longer window a counter that wrapped, perhaps twice, cannot be distinguished from one that was reset."""


class CounterState(StrEnum):
    """What is known about a counter."""

    DELTA = "delta"
    BASELINE = "baseline"
    """There is only one sample: nothing to compare with."""
    RESET = "reset"
    """It was reset within the window; what it counted before is unknown."""
    MISSING = "missing"
    """The device does not report it."""
    STUCK = "stuck"
    """It is unchanged while the other end of the cable counts: its device no longer updates it."""
    FAILED = "failed"
    """The device did not answer, or reported it at the start of the window only."""


KNOWN = CounterState.DELTA
"""Faster to look up than the member of the class, which checks do for each counter."""


class Delta(NamedTuple):
    """A counter over a window."""

    state: CounterState
    value: int = 0
    """What was added; 0 unless the state is a delta."""
    seconds: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the value is meaningful."""
        return self.state is KNOWN

    @property
    def per_s(self) -> float:
        return self.value / self.seconds if self.seconds > 0 else 0.0


MISSING = Delta(CounterState.MISSING)
FAILED = Delta(CounterState.FAILED)
STUCK = Delta(CounterState.STUCK)


Unchanged = dict[tuple[str, ...], Mapping[str, Delta]]
"""Places → the deltas of counters that counted nothing at these places."""


def deltas(name: str, samples: tuple[Sample, ...], unchanged: Unchanged | None = None) -> Mapping[str, Delta]:
    """What a counter added at each of its places between the first and the last sample.

    `unchanged` are those of other counters of the samples, and get those of this one.
    """
    if not samples:
        return {}
    first, last = samples[0], samples[-1]
    later = last.counters.get(name, {})
    seconds = last.at_s - first.at_s
    if len(samples) == 1 or seconds <= 0:
        return dict.fromkeys(later, Delta(CounterState.BASELINE))
    if first.boot != last.boot:  # even a higher count proves nothing
        return dict.fromkeys(later, Delta(CounterState.RESET, seconds=seconds))
    earlier = first.counters.get(name, {})
    if earlier == later:  # as most counters, which count errors
        known, places = {} if unchanged is None else unchanged, tuple(later)
        return known.get(places) or known.setdefault(
            places, dict.fromkeys(later, Delta(CounterState.DELTA, seconds=seconds))
        )
    gone = dict.fromkeys(earlier.keys() - later.keys(), Delta(CounterState.FAILED, seconds=seconds))
    found = dict(gone)
    same: dict[int, Delta] = {}
    for at, count in later.items():
        before = earlier.get(at)
        if before is None:
            found[at] = Delta(CounterState.BASELINE, seconds=seconds)
        elif count >= before:
            added = count - before
            found[at] = same.get(added) or same.setdefault(added, Delta(CounterState.DELTA, added, seconds))
        else:
            found[at] = _fallen(name, at, samples, seconds)
    return found


def has_fallen(earlier: Mapping[str, int], later: Mapping[str, int]) -> bool:
    """Whether a counter is lower than before at any place."""
    if earlier is later:  # parsed from equal answers
        return False
    if list(earlier) == list(later):  # as usual: no look-up for each
        return any(map(operator.lt, later.values(), earlier.values()))
    return any(count < earlier.get(at, 0) for at, count in later.items())


def _fallen(name: str, at: str, samples: tuple[Sample, ...], seconds: float) -> Delta:
    """What is known about a counter that is lower than before."""
    earlier, later = (sample.counters[name][at] for sample in (samples[0], samples[-1]))
    added = _wrapped(earlier, later, _bits(name)) if seconds <= LONGEST_WRAP_S else None
    if added is None or _was_cleared(name, at, samples, is_narrow=earlier < NARROW):
        return Delta(CounterState.RESET, seconds=seconds)
    return Delta(CounterState.DELTA, added, seconds)


def _bits(name: str) -> int:
    return COUNTERS[name].bits if name in COUNTERS else 64


def _wrapped(earlier: int, later: int, bits: int) -> int | None:
    """What a wrapped counter added; None if it was too far from the end of any range."""
    for end in (NARROW, WIDE) if bits > 32 else (NARROW,):
        added = end - earlier + later
        near = end / 2 if bits == 32 else end * NEAR_THE_END
        if near <= earlier < end and added <= end * MOST_WRAPPED:
            return added
    return None


def _was_cleared(name: str, at: str, samples: tuple[Sample, ...], *, is_narrow: bool) -> bool:
    """Whether a count that fell was reset: another of its port fell without a wrap, or has over 32 bits.

    Clearing counters clears all of a port, and not all of them are close to the end of their range at that moment.
    """
    beside = tuple(_beside(name, at, samples))
    if any(earlier > later and _wrapped(earlier, later, _bits(other)) is None for other, earlier, later in beside):
        return True
    return is_narrow and _bits(name) > 32 and any(later >= NARROW for _, _, later in beside)


def _beside(name: str, at: str, samples: tuple[Sample, ...]) -> Iterator[tuple[str, int, int]]:
    """Yield each other counter of the same port with its earlier and later value."""
    port = at if is_of_port(name) else at.rpartition("/")[0]
    numbered = tuple(place(port, number) for number in range(MOST_NUMBERS))
    first, last = samples[0].counters, samples[-1].counters
    for other, counts in last.items():
        known = first.get(other, {})
        for here in (port,) if is_of_port(other) else numbered:
            if here in counts and here in known and (other, here) != (name, at):
                yield other, known[here], counts[here]


def is_of_port(name: str) -> bool:
    return name not in COUNTERS or COUNTERS[name].scope == "port"


SLACK_S = 60.0
"""Device clocks drift, and counters are read shortly before or after the clock."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The counters of a device in an earlier run."""

    sample: Sample
    boot: str = ""
    uptime_s: float | None = None


def since(snapshot: Snapshot, earlier: Mapping[str, Earlier]) -> Snapshot:
    """A snapshot whose windows begin at an earlier run; devices without one keep their window."""
    devices = {name: _since(one, earlier[name]) if name in earlier else one for name, one in snapshot.devices.items()}
    return replace(snapshot, devices=devices)


def _since(one: Observation, earlier: Earlier) -> Observation:
    first = earlier.sample
    if not one.samples or first.at_s >= one.samples[-1].at_s:
        return one
    boots = ("before", "after") if _is_restarted(one, earlier) else ("", "")
    samples = (replace(first, boot=boots[0]), *(replace(sample, boot=boots[1]) for sample in one.samples))
    return replace(one, samples=samples)


def _is_restarted(one: Observation, earlier: Earlier) -> bool:
    """Whether a device rebooted in between: by its boot ID, else by its uptime."""
    system = one.facts.system
    if isinstance(system, Absent):
        return False
    if system.boot and earlier.boot:
        return system.boot != earlier.boot
    if system.uptime_s is None:
        return False
    return system.uptime_s + SLACK_S < one.samples[-1].at_s - earlier.sample.at_s

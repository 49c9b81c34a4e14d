"""Counters over a window: what was added between two samples, and what cannot be said."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from netkit.facts import COUNTERS, Sample

NARROW = 1 << 32
WIDE = 1 << 64
NEAR_THE_END = 0.9
"""A count must have come so close to the end of its range to have passed it."""
MOST_WRAPPED = 0.25
"""Of its range, how much a counter may have counted across its end before that is implausible."""
LONGEST_WRAP_S = 3600.0
"""Over a longer window nobody can tell one that ran over its end, and how often, from one that began anew."""


class State(StrEnum):
    """What is known about a counter."""

    DELTA = "delta"
    BASELINE = "baseline"
    """There is only one sample: nothing to compare with."""
    RESET = "reset"
    """It began anew within the window; how much it counted before is not known."""
    MISSING = "missing"
    """The device does not tell it."""
    FAILED = "failed"
    """The device was asked and did not answer, or told it at the beginning of the window and not at its end."""


class Delta(NamedTuple):
    """A counter over a window."""

    state: State
    value: int = 0
    """What was added; 0 unless the state is a delta."""
    seconds: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the value means something."""
        return self.state is State.DELTA

    @property
    def per_s(self) -> float:
        """Return the rate."""
        return self.value / self.seconds if self.seconds > 0 else 0.0


MISSING = Delta(State.MISSING)
FAILED = Delta(State.FAILED)


def deltas(name: str, samples: tuple[Sample, ...]) -> Mapping[str, Delta]:
    """Return what a counter added at each of its places between the first and the last sample."""
    if not samples:
        return {}
    first, last = samples[0], samples[-1]
    later = last.counters.get(name, {})
    seconds = last.at_s - first.at_s
    if len(samples) == 1 or seconds <= 0:
        return dict.fromkeys(later, Delta(State.BASELINE))
    if first.boot != last.boot:  # a count that is higher all the same says nothing
        return dict.fromkeys(later, Delta(State.RESET, seconds=seconds))
    earlier = first.counters.get(name, {})
    bits = COUNTERS[name].bits if name in COUNTERS else 64
    gone = dict.fromkeys(earlier.keys() - later.keys(), Delta(State.FAILED, seconds=seconds))
    return gone | {place: _delta(earlier.get(place), count, seconds, bits) for place, count in later.items()}


def _delta(earlier: int | None, later: int, seconds: float, bits: int) -> Delta:
    if earlier is None:
        return Delta(State.BASELINE, seconds=seconds)
    if later >= earlier:
        return Delta(State.DELTA, later - earlier, seconds)
    for end in (NARROW, WIDE) if bits > 32 else (NARROW,):
        wrapped = end - earlier + later
        near = end / 2 if bits == 32 else end * NEAR_THE_END
        if seconds <= LONGEST_WRAP_S and near <= earlier < end and wrapped <= end * MOST_WRAPPED:
            return Delta(State.DELTA, wrapped, seconds)
    return Delta(State.RESET, seconds=seconds)

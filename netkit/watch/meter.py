"""Successive samples of one device → what each counter added since it was last told."""

from collections.abc import Mapping

from netkit.facts import Counters, Sample
from netkit.judge.delta import Delta, deltas
from netkit.watch.reading import WATCHED, Rates

Counts = Mapping[str, int]
Ages = tuple[tuple[float, Counts], ...]
"""When places were told last, and what; the latest first."""
MOST_AGES = 8
"""Places that were missing for so many samples are forgotten."""


class Meter:
    """Remembers the last count at each place. A sample need not tell all: a stream tells what it has."""

    def __init__(self) -> None:
        self._last: dict[str, Ages] = {}
        self._before: Counters = {}
        """The sample before: whether others fell with a count says why it fell."""
        self._boot = ""

    def rates(self, sample: Sample) -> Rates:
        """Return what was added since the samples before; what cannot be said is a delta without a value."""
        if sample.boot != self._boot:
            self._last.clear()  # it began anew, so that nothing before can be compared with
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

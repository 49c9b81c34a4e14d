"""Successive samples of one device → what each counter added since it was last told."""

from collections.abc import Mapping

from netkit.facts import Sample
from netkit.judge.delta import Delta, deltas
from netkit.watch.reading import WATCHED, Rates

Counts = Mapping[str, int]


class Meter:
    """Remembers the last count at each place. A sample need not tell all: a stream tells what it has."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, tuple[float, int]]] = {}
        self._boot = ""

    def rates(self, sample: Sample) -> Rates:
        """Return what was added since the samples before; what cannot be said is a delta without a value."""
        if sample.boot != self._boot:
            self._last.clear()  # it began anew, so that nothing before can be compared with
            self._boot = sample.boot
        return {
            name: self._added(name, counts, sample.at_s)
            for name, counts in sample.counters.items()
            if name in WATCHED and counts
        }

    def _added(self, name: str, counts: Counts, at_s: float) -> Mapping[str, Delta]:
        known = self._last.setdefault(name, {})
        times = {known[place][0] for place in counts if place in known}
        found: dict[str, Delta] = {}
        for earlier_s in times:
            earlier = {place: known[place][1] for place in counts if known.get(place, (None,))[0] == earlier_s}
            later = {place: counts[place] for place in earlier}
            found.update(deltas(name, (Sample(earlier_s, {name: earlier}), Sample(at_s, {name: later}))))
        known.update((place, (at_s, count)) for place, count in counts.items())
        return found

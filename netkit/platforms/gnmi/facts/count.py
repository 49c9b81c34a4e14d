"""Counts as servers name them, before they are netkit's counters: a stream tells some of them at a time."""

from collections.abc import Iterable, Iterator, Mapping

from netkit.facts import Counters
from netkit.platforms.gnmi.facts import openconfig, sonic
from netkit.platforms.gnmi.update import Update, leaves
from netkit.platforms.shown import whole
from netkit.platforms.snmp.facts.port import NAMES

Counts = Mapping[tuple[str, str], int]
"""The server's name of a count, and the place → the count."""


def counts(platform: str, updates: Iterable[Update], names: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield what updates count; `names` are what the server calls ports → the ports, where it has names of its own."""
    place = sonic.place if platform == "sonic" else openconfig.place
    for update in updates:
        for path, value in leaves(update):
            count, found = whole(value), place(path, names)
            if count is not None and found is not None:
                yield found, count


def counters(platform: str, found: Counts, wanted: tuple[str, ...]) -> Counters:
    """Return counts as counters, of the wanted ports; of all that are called as ports are when none is named."""
    table = sonic.COUNTERS if platform == "sonic" else openconfig.COUNTERS
    told: dict[str, dict[str, int]] = {}
    for name, sums in table.items():
        for at in _places(sums, found):
            count = next((sum(each) for one in sums if (each := _all(one, found, at))), None)
            if count is not None and _is_wanted(platform, at, wanted):
                told.setdefault(name, {})[at] = count
    return told


def _places(sums: tuple[tuple[str, ...], ...], found: Counts) -> list[str]:
    firsts = {one[0] for one in sums}
    return sorted({at for leaf, at in found if leaf in firsts})


def _all(leaf_names: tuple[str, ...], found: Counts, at: str) -> list[int]:
    """Return the counts that make up a sum; nothing when one of them is not there."""
    each = [found[leaf, at] for leaf in leaf_names if (leaf, at) in found]
    return each if len(each) == len(leaf_names) else []


def _is_wanted(platform: str, at: str, wanted: tuple[str, ...]) -> bool:
    if wanted:
        return at in wanted or at.rpartition("/")[0] in wanted
    shape = NAMES.get(platform)
    return shape is not None and any(shape.fullmatch(name) for name in (at, at.rpartition("/")[0]))

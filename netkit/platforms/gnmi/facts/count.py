"""Counts as servers name them, before they are netkit's counters: a stream tells some of them at a time."""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from netkit.facts import Absent, Counters, Facts, counter
from netkit.platforms.agents import Count, Sums, agents_of
from netkit.platforms.gnmi.message import MOST_PATHS, Path, PathElement, Update, leaves
from netkit.platforms.json_access import whole

Counts = Mapping[tuple[str, str], int]
"""The server's name of a count, and the place → the count."""


class Counting:
    """Reads updates of one server. The leaf and place of a path are found once: a stream tells it each time."""

    def __init__(self, platform: str, names: Mapping[str, str], wanted: tuple[str, ...] = ()) -> None:
        known = agents_of(platform)
        self._database = known.gnmi.database if known and known.gnmi else None
        self._names, self._wanted = names, frozenset(wanted)
        self._known: dict[int, tuple[Path, tuple[str, str] | None]] = {}

    def counts(self, updates: Iterable[Update]) -> Iterator[Count]:
        """Yield what updates count on wanted ports, by the server's name of the count and the place."""
        for update in updates:
            if self._database is None:
                yield from self._of_openconfig(update)
            else:
                yield from (one for one in self._database.counts(update, self._names) if self._has(one[0][1]))

    def _of_openconfig(self, update: Update) -> Iterator[Count]:
        if not isinstance(update.value, dict | list):
            yield from _told(self._place(update.path), update.value)
            return
        for path, value in leaves(update):
            yield from _told(self._found(path), value)

    def _place(self, path: Path) -> tuple[str, str] | None:
        """Return the place of a path that is read again and again, and so is the same object each time."""
        known = self._known.get(id(path))
        if known is None or known[0] is not path:
            known = path, self._found(path)
            if len(self._known) < MOST_PATHS:
                self._known[id(path)] = known
        return known[1]

    def _found(self, path: Path) -> tuple[str, str] | None:
        found = place(path, self._names)
        return found if found is not None and self._has(found[1]) else None

    def _has(self, at: str) -> bool:
        return not self._wanted or at in self._wanted or at.rpartition("/")[0] in self._wanted


def _told(place: tuple[str, str] | None, value: object) -> Iterator[Count]:
    count = whole(value) if place is not None else None
    if place is not None and count is not None:
        yield place, count


def counters(platform: str, found: Counts, told: AbstractSet[tuple[str, str]] | None = None) -> Counters:
    """Return counts as counters, of all that are called as ports are; of some only those that were told now."""
    known = agents_of(platform)
    database = known.gnmi.database if known and known.gnmi else None
    table = COUNTERS if database is None else database.counters
    by_leaf: dict[str, dict[str, int]] = {}
    for (leaf, at), count in found.items():
        by_leaf.setdefault(leaf, {})[at] = count
    shape, now = known.port if known else None, found.keys() if told is None else told
    summed = {name: _summed(sums, by_leaf, shape, now) for name, sums in table.items()}
    return {name: places for name, places in summed.items() if places}


def as_facts(found: Counters) -> Facts:
    """Return counters as facts."""
    return Facts(counters=found or Absent("the gNMI server shows no counters of these ports"))


def _summed(
    sums: Sums,
    by_leaf: Mapping[str, Mapping[str, int]],
    shape: re.Pattern[str] | None,
    now: AbstractSet[tuple[str, str]],
) -> Mapping[str, int]:
    """Return a counter by place: of several sums the first whose leaves are all there."""
    found: dict[str, int] = {}
    told: dict[str, int] = {}
    for leaf_names in sums:
        first, *others = (by_leaf.get(leaf, {}) for leaf in leaf_names)
        for at, count in first.items():
            if at not in found and all(at in one for one in others) and _is_port(at, shape):
                found[at] = count + sum(one[at] for one in others)
                if any((leaf, at) in now for leaf in leaf_names):
                    told[at] = found[at]
    return told


def _is_port(at: str, shape: re.Pattern[str] | None) -> bool:
    return shape is not None and any(shape.fullmatch(name) for name in (at, at.rpartition("/")[0]))


SHAPES: Mapping[tuple[str, ...], str] = {
    ("interfaces", "interface", "state", "counters"): "",
    ("interfaces", "interface", "ethernet", "state", "counters"): "ethernet/",
    ("interfaces", "interface", "ethernet", "phy", "state"): "phy/",
    ("qos", "interfaces", "interface", "output", "queues", "queue", "state"): "queue/",
    ("qos", "interfaces", "interface", "state", "switch-priority", "counters"): "priority/",
}
"""Names of the steps of a path → what netkit puts before the leaf at its end."""
NUMBERED = ("queue", "switch-priority")
"""Lists whose entries belong to one queue or priority of a port."""
COUNTERS: Mapping[str, Sums] = {
    "rx_bytes": (("in-octets",),),
    "tx_bytes": (("out-octets",),),
    "rx_packets": (("in-pkts",), ("in-unicast-pkts", "in-multicast-pkts", "in-broadcast-pkts")),
    "tx_packets": (("out-pkts",), ("out-unicast-pkts", "out-multicast-pkts", "out-broadcast-pkts")),
    "rx_errors": (("in-errors",),),
    "tx_errors": (("out-errors",),),
    "rx_drops": (("in-discards",),),
    "tx_drops": (("out-discards",),),
    "carrier_changes": (("carrier-transitions",), ("ethernet/carrier-transitions",)),
    "rx_pause": (("priority/in-pause-pkts",),),
    "tx_pause": (("priority/out-pause-pkts",),),
    "queue_tx_packets": (("queue/transmit-pkts",),),
    "queue_tx_bytes": (("queue/transmit-octets",),),
    "queue_drops": (("queue/dropped-pkts",), ("queue/no-buffer-uc-dropped-pkts",)),
    "queue_ecn_marked": (("queue/ecn-marked-pkts",),),
    "fec_uncorrectable": (("phy/rs-fec-uncorrectable-blocks",),),
    "corrected_bits": (("phy/corrected-bits",),),
    "received_bits": (("phy/received-bits",),),
}
NUMBER = re.compile(r"(?:.*\D)?(\d{1,2})", re.ASCII)
"""Queues are called 3, UC3, TC-3: the number at the end is theirs."""
LAST = 7


def place(path: Path, names: Mapping[str, str]) -> tuple[str, str] | None:
    """Return how netkit calls the leaf at a path, and where it counts; None when it is no counter."""
    if len(path) < 2:
        return None
    prefix = SHAPES.get(tuple(_plain(one.name) for one in path[:-1]))
    port = next((_key(one) for one in path if _plain(one.name) == "interface"), "")
    if prefix is None or not port:
        return None
    port = names.get(port, port)
    numbered = next((one for one in path if _plain(one.name) in NUMBERED), None)
    number = _number(numbered) if numbered else None
    if numbered and number is None:
        return None
    return prefix + _plain(path[-1].name), counter.place(port, number) if number is not None else port


def _plain(name: str) -> str:
    """Return a name without the module it is from."""
    return name.rpartition(":")[2]


def _key(step: PathElement) -> str:
    return step.keys.get("name") or step.keys.get("interface-id") or ""


def _number(step: PathElement) -> int | None:
    found = next((match for key in step.keys.values() if (match := NUMBER.fullmatch(key))), None)
    return int(found[1]) if found and int(found[1]) <= LAST else None

"""What a check reads by gNMI."""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from netkit.facts import Absent, Counters, Facts, counter
from netkit.facts.device import KINDS, Interface
from netkit.platforms import json_access
from netkit.platforms.agents import Count, Sums, agents_of
from netkit.platforms.gnmi.message import CAPABILITIES, MOST_PATHS, ONCE, Path, PathElement, Update, leaves, read
from netkit.platforms.json_access import whole
from netkit.platforms.view import View, ViewSubject

Counts = Mapping[tuple[str, str], int]
"""The server's name of a count, and the place → the count."""


class Counting:
    """Parses the updates of one server, and caches what each path means, as a stream repeats it."""

    def __init__(self, platform: str, names: Mapping[str, str], wanted: tuple[str, ...] = ()) -> None:
        known = agents_of(platform)
        self._database = known.gnmi.database if known and known.gnmi else None
        self._names, self._wanted = names, frozenset(wanted)
        self._known: dict[int, tuple[Path, tuple[str, str] | None]] = {}

    def counts(self, updates: Iterable[Update]) -> Iterator[Count]:
        """Yield the counts of wanted ports, by the server's name of the counter and place."""
        for update in updates:
            if self._database is None:
                yield from self._of_openconfig(update)
            else:
                yield from (one for one in self._database.counts(update, self._names) if self._has(one[0][1]))

    def _of_openconfig(self, update: Update) -> Iterator[Count]:
        if isinstance(update.value, dict | list):
            found = [(self._found(path), value) for path, value in leaves(update)]
        else:
            found = [(self._cached(update.path), update.value)]
        for key, value in found:
            count = whole(value) if key is not None else None
            if key is not None and count is not None:
                yield key, count

    def _cached(self, path: Path) -> tuple[str, str] | None:
        """Look a path up by identity: `message.Paths` returns the same object for the same path."""
        known = self._known.get(id(path))
        if known is None or known[0] is not path:
            known = path, self._found(path)
            if len(self._known) < MOST_PATHS:
                self._known[id(path)] = known
        return known[1]

    def _found(self, path: Path) -> tuple[str, str] | None:
        key = place(path, self._names)
        return key if key is not None and self._has(key[1]) else None

    def _has(self, at: str) -> bool:
        return not self._wanted or at in self._wanted or at.rpartition("/")[0] in self._wanted


def counters_of(platform: str, found: Counts, updated: AbstractSet[tuple[str, str]] | None = None) -> Counters:
    """Convert counts of ports to netkit's counters; with `updated`, only those to which one of these counts adds."""
    known = agents_of(platform)
    database = known.gnmi.database if known and known.gnmi else None
    table = COUNTERS if database is None else database.counters
    by_leaf: dict[str, dict[str, int]] = {}
    for (leaf, at), count in found.items():
        by_leaf.setdefault(leaf, {})[at] = count
    port = known.port if known else None
    summed = {
        name: _summed(sums, by_leaf, port, found.keys() if updated is None else updated) for name, sums in table.items()
    }
    return {name: places for name, places in summed.items() if places}


def as_facts(found: Counters) -> Facts:
    return Facts(counters=found or Absent("the gNMI server shows no counters of these ports"))


def _summed(
    sums: Sums,
    by_leaf: Mapping[str, Mapping[str, int]],
    port: re.Pattern[str] | None,
    updated: AbstractSet[tuple[str, str]],
) -> Mapping[str, int]:
    """A counter by place, from the first of its sums whose leaves are all known there."""
    found: dict[str, int] = {}
    result: dict[str, int] = {}
    for leaf_names in sums:
        first, *others = (by_leaf.get(leaf, {}) for leaf in leaf_names)
        for at, count in first.items():
            is_port = port is not None and any(map(port.fullmatch, (at, at.rpartition("/")[0])))
            if is_port and at not in found and all(at in one for one in others):
                found[at] = count + sum(one[at] for one in others)
                if any((leaf, at) in updated for leaf in leaf_names):
                    result[at] = found[at]
    return result


SHAPES: Mapping[tuple[str, ...], str] = {
    ("interfaces", "interface", "state", "counters"): "",
    ("interfaces", "interface", "ethernet", "state", "counters"): "ethernet/",
    ("interfaces", "interface", "ethernet", "phy", "state"): "phy/",
    ("qos", "interfaces", "interface", "output", "queues", "queue", "state"): "queue/",
    ("qos", "interfaces", "interface", "state", "switch-priority", "counters"): "priority/",
}
"""Names of the elements of a path → prefix of the leaf at its end."""
NUMBERED = ("queue", "switch-priority")
"""Lists with one entry for each queue or priority."""
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
"""Queues are named 3, UC3 or TC-3: the last number counts."""
LAST = 7


def place(path: Path, names: Mapping[str, str]) -> tuple[str, str] | None:
    """The name of the leaf in netkit at a path, and the port or queue it counts; None for other leaves."""
    if len(path) < 2:
        return None
    prefix = SHAPES.get(tuple(_plain(one.name) for one in path[:-1]))
    keys = next((one.keys for one in path if _plain(one.name) == "interface"), {})
    port = keys.get("name") or keys.get("interface-id") or ""
    if prefix is None or not port:
        return None
    port = names.get(port, port)
    numbered = next((one for one in path if _plain(one.name) in NUMBERED), None)
    number = _index(numbered) if numbered else None
    if numbered and number is None:
        return None
    return prefix + _plain(path[-1].name), counter.place(port, number) if number is not None else port


def _plain(name: str) -> str:
    """Strip the YANG module from a name."""
    return name.rpartition(":")[2]


def _index(element: PathElement) -> int | None:
    found = next((match for key in element.keys.values() if (match := NUMBER.fullmatch(key))), None)
    return int(found[1]) if found and int(found[1]) <= LAST else None


INTERFACES, QUEUES = "/interfaces/interface/state", "/qos/interfaces/interface/output/queues/queue/state"
UP = {"UP": True, "DOWN": False}
NO_SERVER = Absent("the platform has no gNMI server")
NOT_READ = Absent("netkit reads only counters and interfaces by gNMI")
READ = frozenset({"counters", "interfaces"})
OTHERS = frozenset(KINDS) - READ - {"nics", "host", "lookups", "probes"}


def views(subject: ViewSubject) -> tuple[View, ...]:
    known = agents_of(subject.platform)
    if known is None or known.gnmi is None or known.gnmi.only_streams is not None:
        reason = known.gnmi.only_streams if known and known.gnmi else None
        return (_absent(OTHERS | READ, reason or NO_SERVER),)
    database = known.gnmi.database
    if database:
        return (*database.views(subject.ports), _absent(OTHERS, NOT_READ))
    commands = (f"{ONCE}{INTERFACES}", f"{ONCE}{QUEUES}")
    parse = partial(counters, platform=subject.platform, wanted=subject.ports)
    return (
        View(commands, frozenset({"counters"}), parse),
        View(commands[:1], frozenset({"interfaces"}), interfaces),
        _absent(OTHERS, NOT_READ),
    )


def _absent(kinds: frozenset[str], reason: Absent) -> View:
    facts = Facts(**dict.fromkeys(kinds, reason))
    return View((CAPABILITIES,), kinds, lambda _: facts)


def counters(*texts: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Parse the counters of an OpenConfig server."""
    updates = (update for text in texts for update in read(text))
    return as_facts(counters_of(platform, dict(Counting(platform, {}, wanted).counts(updates))))


def interfaces(text: str) -> Facts:
    found: dict[str, dict[str, object]] = {}
    for update in read(text):
        for path, value in leaves(update):
            port = path[1].keys.get("name", "") if len(path) == 4 and path[2].name == "state" else ""
            if port:
                found.setdefault(port, {})[path[-1].name.rpartition(":")[2]] = value
    ports = {
        port: Interface(
            is_up=UP.get(json_access.text(leaf.get("oper-status"))),
            is_enabled=UP.get(json_access.text(leaf.get("admin-status"))),
            mtu_bytes=json_access.whole(leaf.get("mtu")),
            description=json_access.text(leaf.get("description")),
        )
        for port, leaf in found.items()
    }
    return Facts(interfaces=ports or Absent("the gNMI server shows no interfaces"))

"""Counters of ports, priorities and queues."""

from collections.abc import Iterable, Iterator, Mapping

from netkit.facts import Absent, Counters, Facts
from netkit.facts.counter import place
from netkit.platforms.eos.facts.interface import (
    ECN_COUNTERS,
    INTERFACES,
    PFC_COUNTERS,
    QUEUE_DROPS,
    QUEUES,
    WATCHDOG,
    cells,
    is_port,
)
from netkit.platforms.shown import Shown, named, parsed, table, whole

PORT: Mapping[str, tuple[str, ...]] = {
    "rx_bytes": ("inOctets",),
    "tx_bytes": ("outOctets",),
    "rx_packets": ("inUcastPkts", "inMulticastPkts", "inBroadcastPkts"),
    "tx_packets": ("outUcastPkts", "outMulticastPkts", "outBroadcastPkts"),
    "rx_errors": ("totalInErrors",),
    "tx_errors": ("totalOutErrors",),
    "rx_drops": ("inDiscards",),
    "tx_drops": ("outDiscards",),
    "carrier_changes": ("linkStatusChanges",),
}
PRIORITY = {"rx_pause": "rxFrames", "tx_pause": "txFrames"}
STORM = {"watchdog_detected": "stuckCount", "watchdog_restored": "recoveryCount"}
QUEUE = {
    "queue_tx_packets": "enqueuedPackets",
    "queue_tx_bytes": "enqueuedBytes",
    "queue_drops": "droppedPackets",
}
Found = Iterator[tuple[str, str, int]]
"""Name, place, count."""
Ports = tuple[str, ...]
"""Those in use: what others count only costs. None named are all."""


def ports(shown: str, in_use: Ports) -> Facts:
    """Return what ports count."""
    return _counters(_ports(shown, in_use), INTERFACES)


def _ports(shown: str, in_use: Ports) -> Found:
    for port, one in named(parsed(shown), "interfaces"):
        counts = table(one, "interfaceCounters")
        for name, keys in PORT.items() if is_port(port, in_use) else ():
            found = [whole(counts.get(key)) for key in keys]
            if None not in found:
                yield name, port, sum(count or 0 for count in found)


def pauses(shown: str, in_use: Ports) -> Facts:
    """Return pause frames by priority."""
    answer = parsed(shown)
    both = (*named(answer, "interfaces"), *named(answer, "interfaceCounters"))
    return _counters(_numbered(both, in_use, "priorities", PRIORITY), PFC_COUNTERS)


def storms(shown: str, in_use: Ports, lossless: tuple[int, ...]) -> Facts:
    """Return storms by priority. EOS shows a port with its first one: those that are not there have had none."""
    answer = parsed(shown)
    if not isinstance(table(answer).get("interfaces"), dict):
        return Facts(counters=Absent(f"{WATCHDOG} cannot be read"))
    none = ((name, place(port, number), 0) for name in STORM for port in in_use for number in lossless)
    return _counters((*none, *_numbered(named(answer, "interfaces"), in_use, "txQueues", STORM)), WATCHDOG)


def _numbered(shown: Iterable[tuple[str, Shown]], in_use: Ports, key: str, names: Mapping[str, str]) -> Found:
    for port, one in shown:
        for number, counts in named(one, key):
            for name, word in names.items():
                count = whole(counts.get(word))
                if count is not None and is_port(port, in_use) and number.isdecimal():
                    yield name, place(port, number), count


def marks(shown: str, in_use: Ports) -> Facts:
    """Return marked packets by queue. A dash says that nobody counts them, which is not zero."""
    found = (
        ("queue_ecn_marked", place(port, queue), marked)
        for port, one in named(parsed(shown), "intfQueueCounters")
        for queue, count in table(one, "queueCounters").items()
        if (marked := whole(count)) is not None and is_port(port, in_use) and queue.isdecimal()
    )
    return _counters(found, ECN_COUNTERS)


def queues(shown: str, in_use: Ports) -> Facts:
    """Return what queues have sent and dropped. Classes that a modular switch only counts together are left out."""
    return _counters(_queues(shown, in_use), QUEUES)


def _queues(shown: str, in_use: Ports) -> Found:
    for port, one in named(parsed(shown), "egressQueueCounters", "interfaces"):
        for name, classes in named(one, "ucastQueues", "trafficClasses"):
            queue = name.removeprefix("TC")
            if is_port(port, in_use) and queue.isascii() and queue.isdecimal():
                yield from ((counter, place(port, queue), count) for counter, count in _summed(classes))


def _summed(classes: Shown) -> Iterator[tuple[str, int]]:
    """Yield the counts of a queue, all drop precedences together."""
    precedences = [one for _, one in named(classes, "dropPrecedences")]
    for name, key in QUEUE.items():
        counts = [whole(one.get(key)) for one in precedences]
        if counts and None not in counts:
            yield name, sum(count or 0 for count in counts)


def arrivals(shown: str, in_use: Ports) -> Facts:
    """Return what ports lost for want of buffer before it was in a queue."""
    found = (
        ("port_buffer_drops", port, dropped)
        for port, row in cells(shown)
        if (dropped := whole(row.get("InDropped"))) is not None and is_port(port, in_use)
    )
    return _counters(found, QUEUE_DROPS)


def _counters(found: Iterable[tuple[str, str, int]], command: str) -> Facts:
    """Return what was found as counters."""
    counters: dict[str, dict[str, int]] = {}
    for name, at, count in found:
        counters.setdefault(name, {})[at] = count
    told: Counters | Absent = counters or Absent(f"{command} shows no counters")
    return Facts(counters=told)

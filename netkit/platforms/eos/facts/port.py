"""Modules and their light."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from netkit.facts import Absent, Counters, Facts
from netkit.facts.counter import place
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.eos.facts.interface import (
    ECN_COUNTERS,
    INTERFACES,
    INVENTORY,
    MOST_LANES,
    PFC_COUNTERS,
    QUEUE_DROPS,
    QUEUES,
    THRESHOLDS,
    WATCHDOG,
    cage,
    cells,
    is_port,
    lanes,
    long_name,
    own,
)
from netkit.platforms.json_access import Shown, named, number, parsed, table, text, whole

DARK_DBM, NO_LIGHT_DBM = -30.0, -40.0
"""What EOS shows for no light, and what netkit calls it."""
QUANTITIES: Mapping[str, Quantity] = {
    "rxPower": "rx_dbm",
    "txPower": "tx_dbm",
    "txBias": "bias_ma",
    "temperature": "temperature_c",
    "voltage": "voltage_v",
}
EMPTY, NOT_TOLD = "Not Present", "N/A"
COPPER = re.compile(r"CR\d*\b|DAC|copper", re.IGNORECASE)
ACTIVE = re.compile(r"AOC|-AR\d*\b", re.IGNORECASE)
# Unverified on a switch: in which words a release tells the firmware of a module.
MODULE = re.compile(r"(?:name|port|interface)\s*:?\s*(Et\S+?):?\s*", re.IGNORECASE)
FIRMWARE = re.compile(r"\s*(?:\w+ )?firmware (?:version|revision)\s*:\s*(\S+)\s*", re.IGNORECASE)


def modules(thresholds: str, inventory: str, hardware: str, ports: tuple[str, ...]) -> Facts:
    """Return what the ports in use, and all others that show a module, have in their cages."""
    light = {name: one for name, one in named(parsed(thresholds), "interfaces") if is_port(name)}
    slots = dict(named(parsed(inventory), "xcvrSlots"))
    versions = dict(_firmware(hardware))
    names = dict.fromkeys((*filter(is_port, ports), *light))
    own_lanes = lanes(names)
    found = {
        name: _module(light.get(name, {}), slots.get(cage(name), {}), own_lanes[name], versions.get(name, ""))
        for name in names
    }
    told = {name: module for name, module in found.items() if module is not None}
    return Facts(modules=told or Absent(f"neither {THRESHOLDS} nor {INVENTORY} shows a module"))


def _module(shown: Shown, slot: Shown, mine: range, version: str) -> Module | None:
    if not any(map(text, (shown.get("mediaType"), shown.get("vendorSn")))) and text(slot.get("mfgName")) in {EMPTY, ""}:
        return Module(is_present=False) if slot else None
    parameters = {QUANTITIES[key]: one for key, one in named(shown, "parameters") if key in QUANTITIES}
    media = text(shown.get("mediaType"))
    return Module(
        kind=_kind(media or text(slot.get("modelName")), is_lit="rx_dbm" in parameters),
        identifier=media,
        vendor=text(slot.get("mfgName")),
        part=text(slot.get("modelName")),
        serial=text(shown.get("vendorSn")) or text(slot.get("serialNum")),
        firmware=version,
        temperature_c=_once(parameters.get("temperature_c", {})),
        voltage_v=_once(parameters.get("voltage_v", {})),
        lanes=_lanes(parameters, mine),
        limits={key: limits for key, one in parameters.items() if (limits := _limits(one)) != Limits()},
    )


def _kind(media: str, *, is_lit: bool) -> Literal["optic", "aoc", "copper", "unknown"]:
    if ACTIVE.search(media):
        return "aoc"
    if COPPER.search(media):
        return "copper"
    return "optic" if is_lit else "unknown"


def _once(parameter: Shown) -> float | None:
    """Return what a module has but once."""
    return next((found for one in table(parameter, "channels").values() if (found := number(one)) is not None), None)


def _lanes(parameters: Mapping[Quantity, Shown], mine: range) -> dict[int, Lane]:
    read: dict[Quantity, dict[int, float]] = {
        key: own(_channels(parameters.get(key, {})), mine) for key in ("rx_dbm", "tx_dbm", "bias_ma")
    }
    numbers = sorted({lane for channels in read.values() for lane in channels})
    return {
        lane: Lane(_light(read["rx_dbm"].get(lane)), _light(read["tx_dbm"].get(lane)), read["bias_ma"].get(lane))
        for lane in numbers
    }


def _channels(parameter: Shown) -> dict[int, float]:
    return {
        int(lane): value
        for lane, shown in table(parameter, "channels").items()
        if lane.isascii() and lane.isdecimal() and len(lane) <= 2 and 0 < int(lane) <= MOST_LANES
        if (value := number(shown)) is not None
    }


def _light(dbm: float | None) -> float | None:
    return NO_LIGHT_DBM if dbm is not None and dbm <= DARK_DBM else dbm


def _limits(parameter: Shown) -> Limits:
    """Return a module's own limits. 0 says that it has none."""
    shown = table(parameter, "threshold")
    return Limits(*(number(shown.get(key)) or None for key in ("lowAlarm", "lowWarn", "highWarn", "highAlarm")))


def _firmware(shown: str) -> Iterable[tuple[str, str]]:
    port = ""
    for line in shown.splitlines():
        if found := MODULE.fullmatch(line.strip()):
            port = long_name(found[1])
        elif (told := FIRMWARE.fullmatch(line)) and told[1] != NOT_TOLD and is_port(port):
            yield port, told[1]


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
        for index, counts in named(one, key):
            for name, word in names.items():
                count = whole(counts.get(word))
                if count is not None and is_port(port, in_use) and index.isdecimal():
                    yield name, place(port, index), count


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

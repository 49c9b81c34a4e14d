"""Parsers of EOS's transceivers and counters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from netkit.facts import Absent, Facts
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
from netkit.platforms.json_access import LARGEST, Shown, named, number, parsed, table, text, whole

DARK_DBM, NO_LIGHT_DBM = -30.0, -40.0
"""EOS's value for no optical power, and netkit's."""
QUANTITIES: Mapping[str, Quantity] = {
    "rxPower": "rx_dbm",
    "txPower": "tx_dbm",
    "txBias": "bias_ma",
    "temperature": "temperature_c",
    "voltage": "voltage_v",
}
LEVELS = ("lowAlarm", "lowWarn", "highWarn", "highAlarm")
NO_LIMITS = Limits()
EMPTY, UNKNOWN = "Not Present", "N/A"
COPPER = re.compile(r"CR\d*\b|DAC|copper", re.IGNORECASE)
ACTIVE = re.compile(r"AOC|-AR\d*\b", re.IGNORECASE)
# Unverified on a switch: the format of a module's firmware version.
MODULE = re.compile(r"(?:name|port|interface)\s*:?\s*(Et\S+?):?\s*", re.IGNORECASE)
FIRMWARE = re.compile(r"\s*(?:\w+ )?firmware (?:version|revision)\s*:\s*(\S+)\s*", re.IGNORECASE)


def modules(thresholds: str, inventory: str, hardware: str, ports: Iterable[str]) -> Facts:
    """Build the modules of the ports in use, and of all other ports that show one."""
    optics = {name: one for name, one in named(parsed(thresholds), "interfaces") if is_port(name)}
    slots = dict(named(parsed(inventory), "xcvrSlots"))
    versions: dict[str, str] = {}
    port = ""
    for line in hardware.splitlines():
        if heading := MODULE.fullmatch(line.strip()):
            port = long_name(heading[1])
        elif (version := FIRMWARE.fullmatch(line)) and version[1] != UNKNOWN and is_port(port):
            versions[port] = version[1]
    names = dict.fromkeys((*filter(is_port, ports), *optics))
    own_lanes = lanes(names)
    found = {
        name: _module(optics.get(name, {}), slots.get(cage(name), {}), own_lanes[name], versions.get(name, ""))
        for name in names
    }
    known = {name: module for name, module in found.items() if module is not None}
    return Facts(modules=known or Absent(f"neither {THRESHOLDS} nor {INVENTORY} shows a module"))


@lru_cache(maxsize=1024)
def _limits(*levels: float | None) -> Limits:
    """The limits of a module; 0 means that it has none."""
    return Limits(*(level or None for level in levels)) if any(levels) else NO_LIMITS


def _module(shown: Shown, slot: Shown, mine: range, version: str) -> Module | None:
    if not any(map(text, (shown.get("mediaType"), shown.get("vendorSn")))) and text(slot.get("mfgName")) in {EMPTY, ""}:
        return Module(is_present=False) if slot else None
    parameters = {QUANTITIES[key]: one for key, one in named(shown, "parameters") if key in QUANTITIES}
    media = text(shown.get("mediaType"))
    limits = {key: _limits(*map(number, map(table(one, "threshold").get, LEVELS))) for key, one in parameters.items()}
    return Module(
        kind=_kind(media or text(slot.get("modelName")), is_lit="rx_dbm" in parameters),
        identifier=media,
        vendor=text(slot.get("mfgName")),
        part=text(slot.get("modelName")),
        serial=text(shown.get("vendorSn")) or text(slot.get("serialNum")),
        firmware=version,
        temperature_c=_first(parameters.get("temperature_c", {})),
        voltage_v=_first(parameters.get("voltage_v", {})),
        lanes=_lanes(parameters, mine),
        limits={key: one for key, one in limits.items() if one is not NO_LIMITS},
    )


def _kind(media: str, *, is_lit: bool) -> Literal["optic", "aoc", "copper", "unknown"]:
    if ACTIVE.search(media):
        return "aoc"
    if COPPER.search(media):
        return "copper"
    return "optic" if is_lit else "unknown"


def _first(parameter: Shown) -> float | None:
    """A value that a module has once, for all lanes."""
    return next((found for one in table(parameter, "channels").values() if (found := number(one)) is not None), None)


@lru_cache(maxsize=256)
def _lane(name: str) -> int:
    """The number of a lane; 0 if it is not one."""
    is_number = name.isascii() and name.isdecimal() and len(name) <= 2
    return int(name) if is_number and int(name) <= MOST_LANES else 0


def _lanes(parameters: Mapping[Quantity, Shown], mine: range) -> dict[int, Lane]:
    quantities: tuple[Quantity, ...] = ("rx_dbm", "tx_dbm", "bias_ma")
    read: dict[Quantity, dict[int, float]] = {}
    for key in quantities:
        channels = {
            lane: value
            for name, shown in table(parameters.get(key, {}), "channels").items()
            if (lane := _lane(name)) and (value := number(shown)) is not None
        }
        read[key] = own(channels, mine)
    numbers = sorted({lane for values in read.values() for lane in values})
    return {
        lane: Lane(_power(read["rx_dbm"].get(lane)), _power(read["tx_dbm"].get(lane)), read["bias_ma"].get(lane))
        for lane in numbers
    }


def _power(dbm: float | None) -> float | None:
    return NO_LIGHT_DBM if dbm is not None and dbm <= DARK_DBM else dbm


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
Ports = Mapping[str, object]
"""The ports in use, the only ones whose counters are kept; empty: all."""
Counts = dict[str, dict[str, int]]
"""Name → place → count."""


def ports(shown: str, in_use: Ports) -> Facts:
    found: Counts = {name: {} for name in PORT}
    wanted = [(found[name], keys) for name, keys in PORT.items()]
    for port, one in named(parsed(shown), "interfaces"):
        if is_port(port, in_use):
            counts = table(one, "interfaceCounters")
            for counted, keys in wanted:
                _add(counted, port, [counts.get(key) for key in keys])
    return _counters(found, INTERFACES)


def pauses(shown: str, in_use: Ports) -> Facts:
    answer = parsed(shown)
    both = (*named(answer, "interfaces"), *named(answer, "interfaceCounters"))
    return _counters(_numbered(both, in_use, "priorities", PRIORITY), PFC_COUNTERS)


def storms(shown: str, in_use: Ports, lossless: tuple[int, ...]) -> Facts:
    """Parse PFC storms by priority. EOS lists a port from its first storm on; others have had none."""
    answer = parsed(shown)
    if not isinstance(table(answer).get("interfaces"), dict):
        return Facts(counters=Absent(f"{WATCHDOG} cannot be read"))
    found = _numbered(named(answer, "interfaces"), in_use, "txQueues", STORM)
    none = {place(port, number): 0 for port in in_use for number in lossless}
    return _counters({name: {**none, **counts} for name, counts in found.items()}, WATCHDOG)


def _numbered(shown: Iterable[tuple[str, Shown]], in_use: Ports, key: str, names: Mapping[str, str]) -> Counts:
    found: Counts = {name: {} for name in names}
    wanted = [(found[name], word) for name, word in names.items()]
    for port, one in shown:
        for index, counts in named(one, key) if is_port(port, in_use) else ():
            if index.isdecimal():
                at = place(port, index)
                for counted, word in wanted:
                    _add(counted, at, (counts.get(word),))
    return found


def marks(shown: str, in_use: Ports) -> Facts:
    """Parse ECN-marked packets by queue. A dash means not counted, which is not zero."""
    found = {
        place(port, queue): marked
        for port, one in named(parsed(shown), "intfQueueCounters")
        if is_port(port, in_use)
        for queue, count in table(one, "queueCounters").items()
        if queue.isdecimal() and (marked := whole(count)) is not None
    }
    return _counters({"queue_ecn_marked": found}, ECN_COUNTERS)


def queues(shown: str, in_use: Ports) -> Facts:
    """Parse queue counters, summed over drop precedences; classes that modular switches count together are skipped."""
    found: Counts = {name: {} for name in QUEUE}
    wanted = [(found[name], key) for name, key in QUEUE.items()]
    for port, one in named(parsed(shown), "egressQueueCounters", "interfaces"):
        for name, classes in table(one, "ucastQueues", "trafficClasses").items() if is_port(port, in_use) else ():
            queue = name.removeprefix("TC")
            if not (queue.isascii() and queue.isdecimal()):
                continue
            precedences = [one for one in table(classes, "dropPrecedences").values() if isinstance(one, dict)]
            at = place(port, queue)
            for counted, key in wanted:
                _add(counted, at, [one.get(key) for one in precedences])
    return _counters(found, QUEUES)


def _add(found: dict[str, int], at: str, shown: Sequence[object]) -> None:
    """Add the sum of some counts, unless one is missing or there are none."""
    total = None
    for one in shown:
        count = one if type(one) is int and 0 <= one < LARGEST else whole(one)
        if count is None:
            return
        total = count if total is None else total + count
    if total is not None:
        found[at] = total


def arrivals(shown: str, in_use: Ports) -> Facts:
    """Parse ingress drops of ports that ran out of buffer."""
    found = {
        port: dropped
        for port, row in cells(shown)
        if (dropped := whole(row.get("InDropped"))) is not None and is_port(port, in_use)
    }
    return _counters({"port_buffer_drops": found}, QUEUE_DROPS)


def _counters(found: Counts, command: str) -> Facts:
    counters = {name: counts for name, counts in found.items() if counts}
    return Facts(counters=counters or Absent(f"{command} shows no counters"))

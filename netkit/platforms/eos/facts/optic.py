"""Modules and their light."""

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from netkit.facts import Absent, Facts
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.eos.facts.interface import INVENTORY, MOST_LANES, THRESHOLDS, cage, is_port, lanes, long_name, own
from netkit.platforms.shown import Shown, named, number, parsed, table, text

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

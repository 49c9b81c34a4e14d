"""Modules by their own memory, as `ethtool -m` prints it: SFF-8636 and CMIS."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Literal

from netkit.facts import Absent
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.linux.facts.lane import DARK_DBM, in_use, measured
from netkit.platforms.linux.facts.reading import number, pairs, sections

Rows = Mapping[str, str]
Kind = Literal["optic", "aoc", "copper", "unknown"]
LANE = re.compile(r"(.+?) ?\(Channel ([0-9]{1,2})\)\Z")
LIMIT = re.compile(r"(.+?) (high|low) (alarm|warning) threshold\Z")
PARENTHESES = re.compile(r"0x[0-9a-fA-F]+ \((.*)\)\Z")
DBM = re.compile(r"(\S+) dBm")
BIAS, TX, RX = "Laser tx bias current", "Transmit avg optical power", "Rcvr signal avg optical power"
QUANTITIES: Mapping[str, Quantity] = {
    "Laser bias current": "bias_ma",
    "Laser output power": "tx_dbm",
    "Laser tx power": "tx_dbm",
    "Laser rx power": "rx_dbm",
    "Module temperature": "temperature_c",
    "Module voltage": "voltage_v",
}
YES_NO = {"Yes": True, "On": True, "No": False, "Off": False}


def modules(text: str) -> Mapping[str, Module] | Absent:
    """Return the modules that tell of themselves, by interface."""
    found = {name: dict(pairs(page, " :")) for name, page in sections(text).items()}
    told = {name: module(rows) for name, rows in found.items() if "Identifier" in rows}
    return told or Absent("ethtool -m shows no module of any NIC")


def module(rows: Rows) -> Module:
    """Return a module by its rows."""
    kind = _kind(rows)
    lanes = in_use(_lanes(rows)) if kind != "copper" else {}
    return Module(
        kind=kind,
        identifier=_named(rows.get("Identifier", "")),
        vendor=rows.get("Vendor name", ""),
        part=rows.get("Vendor PN", ""),
        serial=rows.get("Vendor SN", ""),
        firmware=rows.get("Active firmware version", ""),
        temperature_c=_first(rows.get("Module temperature", "")) if kind != "copper" else None,
        voltage_v=_first(rows.get("Module voltage", "")) if kind != "copper" else None,
        lanes=lanes if kind == "optic" else measured(lanes),
        limits=_limits(rows) if kind != "copper" else {},
    )


def _kind(rows: Rows) -> Kind:
    technology = rows.get("Transmitter technology", "").lower()
    if "copper" in technology:
        return "copper"
    if not technology:
        return "unknown"
    return "aoc" if "no separable" in rows.get("Connector", "").lower() else "optic"


def _named(value: str) -> str:
    """Return the name that stands in parentheses behind a code."""
    match = PARENTHESES.match(value)
    return match[1] if match else value


def _first(value: str) -> float | None:
    return number(next(iter(value.split()), ""))


def light(value: str) -> float | None:
    """Return a power in dBm; no light is -40."""
    match = DBM.search(value)
    if match is None:
        return None
    if match[1] == "-inf":
        return DARK_DBM
    told = number(match[1])
    return None if told is None else max(told, DARK_DBM)


def _lanes(rows: Rows) -> dict[int, Lane]:
    lanes: dict[int, Lane] = {}
    for key, value in rows.items():
        match = LANE.match(key)
        if match and match[1] in {BIAS, TX, RX}:
            lane = lanes.get(int(match[2]), Lane())
            lanes[int(match[2])] = _with(lane, match[1], value)
    losses, faults = _flags(rows.get("Rx loss of signal"), lanes), _flags(rows.get("Tx fault"), lanes)
    return {
        at: replace(lane, has_rx_loss=losses.get(at), has_tx_fault=faults.get(at)) for at, lane in sorted(lanes.items())
    }


def _with(lane: Lane, what: str, value: str) -> Lane:
    if what == BIAS:
        return replace(lane, bias_ma=_first(value))
    return replace(lane, tx_dbm=light(value)) if what == TX else replace(lane, rx_dbm=light(value))


def _flags(value: str | None, lanes: Iterable[int]) -> Mapping[int, bool | None]:
    """Return a flag of each lane: `None` is none of them, a list has one for each, a word is for all."""
    if value is None:
        return {}
    if value.startswith("["):
        words = value.strip("[] ").split(",")
        return {at: YES_NO.get(word.strip()) for at, word in enumerate(words, 1)}
    return dict.fromkeys(lanes, False if value == "None" else YES_NO.get(value))


def _limits(rows: Rows) -> Mapping[Quantity, Limits]:
    found: dict[Quantity, Limits] = {}
    for key, value in rows.items():
        match = LIMIT.match(key)
        if match and match[1] in QUANTITIES:
            name = QUANTITIES[match[1]]
            level = light(value) if name in {"rx_dbm", "tx_dbm"} else _first(value)
            found[name] = replace(found.get(name, Limits()), **{f"{match[2]}_{match[3]}": level})
    return {name: limits for name, limits in found.items() if _is_range(limits)}


def _is_range(limits: Limits) -> bool:
    """Whether limits leave anything between them: a module without thresholds has zeros."""
    told = {getattr(limits, field.name) for field in fields(limits)} - {None}
    return len(told) > 1


def merged(own: Module, other: Module) -> Module:
    """Return a module as its memory tells it, and what it does not tell, the media among it, by the NIC's firmware."""
    empty = Module()
    filled = {
        field.name: getattr(other, field.name)
        for field in fields(Module)
        if getattr(own, field.name) == getattr(empty, field.name)
    }
    filled |= {"identifier": other.identifier or own.identifier, "limits": {**other.limits, **own.limits}}
    if 0 < len(other.lanes) < len(own.lanes):
        filled["lanes"] = other.lanes  # its memory has those of the other port too, in a module that serves two
    return replace(own, **filled)

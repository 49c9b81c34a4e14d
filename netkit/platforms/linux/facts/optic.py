"""Modules of a host's NICs, by `mlxlink` and `ethtool`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Literal

from netkit.facts import Absent
from netkit.facts.optic import Lane, Limits, Line, Module, Quantity
from netkit.platforms.linux.facts.reading import document, member, number, pairs, plain, sections, whole

DARK_DBM = -40.0


def is_lit(lane: Lane) -> bool:
    """Whether anything goes in or out of a lane."""
    lights = (lane.rx_dbm, lane.tx_dbm)
    return bool(lane.bias_ma) or any(light is not None and light > DARK_DBM for light in lights)


def in_use(lanes: Mapping[int, Lane], count: int | None = None) -> Mapping[int, Lane]:
    """Return the lanes a port uses: as many as its media says, or those up to the last that is lit.

    A DR4 module in a cage of eight lanes uses four. A dead lane among them still counts: there are 1, 2, 4 or 8. While
    all are dark nobody can tell, and all stay.
    """
    last = max((number for number, lane in lanes.items() if is_lit(lane)), default=0)
    wanted = max(last, count or 0) or max(lanes, default=0)
    most = next((size for size in (1, 2, 4, 8, 16) if size >= wanted), wanted)
    return {number: lane for number, lane in sorted(lanes.items()) if number <= most}


def measured(lanes: Mapping[int, Lane]) -> Mapping[int, Lane]:
    """Return lanes without what no lane has any of: cables of a kind that does not measure say so with zeros."""
    lights = [light for lane in lanes.values() for light in (lane.rx_dbm, lane.tx_dbm)]
    has_light = any(light is not None and light != 0 and light > DARK_DBM for light in lights)
    has_current = any(lane.bias_ma for lane in lanes.values())
    unlit = {} if has_light else {"rx_dbm": None, "tx_dbm": None, "has_rx_loss": None}
    dead = {} if has_current else {"bias_ma": None}
    return {number: replace(lane, **unlit, **dead) for number, lane in lanes.items()}


def limits(low: float | None, high: float | None) -> Limits | None:
    """Return alarm limits; bounds that leave nothing between them are none."""
    return Limits(low_alarm=low, high_alarm=high) if low is not None and high is not None and low < high else None


RANGED = re.compile(r"([^\[]*)\[([^\]]*?)\.\.([^\]]*?)\]\s*\Z")
LANES_OF_MEDIA = re.compile(r"[0-9]{2,4}GBASE-[A-Z]+([0-9])\b")
MOST_LANES = 16
KEYS: Mapping[Quantity, str] = {
    "temperature_c": "Temperature [C]",
    "voltage_v": "Voltage [mV]",
    "bias_ma": "Bias Current [mA]",
    "rx_dbm": "Rx Power Current [dBm]",
    "tx_dbm": "Tx Power Current [dBm]",
}
Rows = Mapping[str, object]
Values = Sequence[float | None]


def values(rows: Rows, key: str) -> list[str]:
    """Return a value for each lane: a list inside an object, or words separated by commas."""
    told = rows.get(key, "")
    listed = told.get("values") if isinstance(told, dict) else None
    if isinstance(listed, list):
        return [str(one).strip() for one in listed[:64] if isinstance(one, str | int | float)]
    return [part.strip() for part in told.split(",")[:64]] if isinstance(told, str) and told else []


def word(rows: Rows, key: str) -> str:
    """Return a text; empty where there is none, or not for this link."""
    told = rows.get(key)
    return told.strip() if isinstance(told, str) and told.strip() != "N/A" else ""


def mlxlink_module(rows: Rows) -> Module | None:
    """Return a module; None where nothing is told of it."""
    cable = word(rows, "Cable Type").lower()
    if "unplugged" in cable:
        return Module(is_present=False)
    if not word(rows, "Identifier"):
        return None
    is_copper = "copper" in cable or "copper" in word(rows, "Cable Technology").lower()
    media = word(rows, "Active Set Media Compliance Code") or word(rows, "Compliance")
    found = Module(
        kind="copper" if is_copper else "aoc" if "active" in cable else "optic" if "optical" in cable else "unknown",
        identifier=f"{word(rows, 'Identifier')} {media}".strip(),
        vendor=word(rows, "Vendor Name"),
        part=word(rows, "Vendor Part Number"),
        serial=word(rows, "Vendor Serial Number"),
        firmware=word(rows, "FW Version"),
    )
    has_readings = not is_copper and word(rows, "Digital Diagnostic Monitoring") != "No"
    return _measured(found, rows, media) if has_readings else found


def _measured(found: Module, rows: Rows, media: str) -> Module:
    told = {name: _readings(rows, key, 0.001 if name == "voltage_v" else 1) for name, key in KEYS.items()}
    match = LANES_OF_MEDIA.search(media)
    lanes = in_use(_lanes(rows, *(told[name][0] for name in _LIGHTS)), int(match[1]) if match else None)
    return replace(
        found,
        temperature_c=told["temperature_c"][0][0],
        voltage_v=told["voltage_v"][0][0],
        lanes=lanes if found.kind == "optic" else measured(lanes),
        limits={name: limits for name, (_, limits) in told.items() if limits is not None},
    )


_LIGHTS: tuple[Quantity, ...] = ("rx_dbm", "tx_dbm", "bias_ma")


def _readings(rows: Rows, key: str, unit: float) -> tuple[Values, Limits | None]:
    """Return a reading's values and the module's own alarm limits: `v,v,v,v [low..high]`."""
    told = word(rows, key)
    match = RANGED.match(told)
    found = [_scaled(part, unit) for part in (match[1] if match else told).split(",")[:MOST_LANES]]
    return found, limits(_scaled(match[2], unit), _scaled(match[3], unit)) if match else None


def _scaled(text: str, unit: float) -> float | None:
    told = number(text)
    return None if told is None else round(told * unit, 6)


def _lanes(rows: Rows, rx: Values, tx: Values, bias: Values) -> Mapping[int, Lane]:
    losses, faults = values(rows, "Rx LOS [per lane]"), values(rows, "Tx Fault [per lane]")
    if all(value is None for told in (rx, tx, bias) for value in told):
        return {}
    return {
        index + 1: Lane(
            rx_dbm=_light(rx, index),
            tx_dbm=_light(tx, index),
            bias_ma=bias[index] if index < len(bias) else None,
            has_rx_loss=_flag(losses, index),
            has_tx_fault=_flag(faults, index),
        )
        for index in range(max(len(rx), len(tx), len(bias)))
    }


def _light(told: Values, index: int) -> float | None:
    value = told[index] if index < len(told) else None
    return None if value is None else max(value, DARK_DBM)


def _flag(told: Sequence[str], index: int) -> bool | None:
    return {"0": False, "1": True}.get(told[index]) if index < len(told) else None


SMALLEST = 1e-30
"""A rate of 15E-255 is the tool's zero."""
DASHES = re.compile(r"-{3,}\Z")


@dataclass(frozen=True, slots=True)
class OpticReading:
    """What one call told."""

    module: Module | None = None
    line: Line | None = None
    bins: Mapping[int, int] = field(default_factory=dict)
    """Number of wrong symbols → codewords."""


def shown(text: str) -> OpticReading:
    """Return what one call told; nothing where it told nothing."""
    found = _sections(text)
    return OpticReading(
        module=mlxlink_module(member(found, "Module Info")),
        line=_line(member(found, "Operational Info"), member(found, "Physical Counters and BER Info")),
        bins=dict(_bins(member(found, "Histogram of FEC Errors"))),
    )


def _sections(text: str) -> Mapping[str, Any]:
    told = document(text)
    if isinstance(told, dict):
        return member(member(told, "result"), "output")
    return _of_text(text)


def _of_text(text: str) -> Mapping[str, Any]:
    """Return the text form in the shape of the JSON: headings are underlined, lanes are separated by commas."""
    found: dict[str, dict[str, object]] = {}
    rows: dict[str, object] = {}
    for line, after in pairwise([*plain(text).splitlines(), ""]):
        key, colon, value = line.partition(":")
        if DASHES.match(after.strip()) and line.strip():
            rows = found.setdefault(line.strip(), {})
        elif colon and key.strip():
            rows[key.strip()] = value.strip()
    return found


def _line(operation: Rows, counters: Rows) -> Line | None:
    if not operation and not counters:
        return None
    lanes = dict(enumerate(map(_rate, values(counters, "Raw Physical BER Per Lane")), 1))
    known = {at: rate for at, rate in lanes.items() if rate is not None}
    ber = _rate(word(counters, "Raw Physical BER"))
    return Line(
        fec=fec_name(word(operation, "FEC")),
        ber=max(known.values(), default=None) if ber is None else ber,
        effective_ber=_rate(word(counters, "Effective Physical BER")),
        lane_ber=known,
    )


def fec_name(told: str) -> str:
    """Return a kind of FEC in the words of facts, or as it was told."""
    upper = told.upper()
    if "RS" in upper and "FEC" in upper:
        return "rs"
    if "FIRECODE" in upper.replace("-", "").replace(" ", "") or "FC-FEC" in upper:
        return "fc"
    return "none" if upper == "NO FEC" else told


def _rate(told: str) -> float | None:
    rate = number(told)
    if rate is None or not 0 <= rate <= 1:
        return None
    return rate if rate >= SMALLEST else 0.0


def _bins(rows: Rows) -> Iterator[tuple[int, int]]:
    """Yield the bins: the number stands in the name, the count last."""
    for name in rows:
        head, _, index = name.partition(" ")
        words = " ".join(values(rows, name)).split()
        count = whole(words[-1]) if words else None
        if head == "Bin" and whole(index) is not None and count is not None:
            yield int(index), count


ModuleRows = Mapping[str, str]
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


def module(rows: ModuleRows) -> Module:
    """Return a module by its rows."""
    kind = _kind(rows)
    lanes = in_use(_optic_lanes(rows)) if kind != "copper" else {}
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


def _kind(rows: ModuleRows) -> Kind:
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


def _optic_lanes(rows: ModuleRows) -> dict[int, Lane]:
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


def _limits(rows: ModuleRows) -> Mapping[Quantity, Limits]:
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

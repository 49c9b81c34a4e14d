"""Transceivers of a host's NICs: parsers of `mlxlink` and `ethtool`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

from netkit.facts import Absent
from netkit.facts.optic import Lane, Limits, Line, Module, Quantity
from netkit.platforms.linux.facts.reading import RECENT, document, member, number, pairs, plain, sections, whole

DARK_DBM = -40.0
NICS, SHARD = 8, 256
"""NICs of a host, usually, and devices that are read together."""


def is_lit(lane: Lane) -> bool:
    """Whether a lane has optical power or bias current."""
    lights = (lane.rx_dbm, lane.tx_dbm)
    return bool(lane.bias_ma) or any(light is not None and light > DARK_DBM for light in lights)


def in_use(lanes: Mapping[int, Lane], count: int | None = None) -> Mapping[int, Lane]:
    """Select the lanes a port uses: the number its media type specifies, or those up to the last lit one.

    A DR4 module in a cage of eight lanes uses four. The number is rounded up to 1, 2, 4 or 8, so that a dead lane among
    them still counts. While all are dark, all stay.
    """
    last = max((number for number, lane in lanes.items() if is_lit(lane)), default=0)
    wanted = max(last, count or 0) or max(lanes, default=0)
    most = next((size for size in (1, 2, 4, 8, 16) if size >= wanted), wanted)
    return {number: lane for number, lane in sorted(lanes.items()) if number <= most}


def measured(lanes: Mapping[int, Lane]) -> Mapping[int, Lane]:
    """Drop quantities that are zero on all lanes: cables report zeros for what they do not measure."""
    lights = [light for lane in lanes.values() for light in (lane.rx_dbm, lane.tx_dbm)]
    has_light = any(light is not None and light != 0 and light > DARK_DBM for light in lights)
    has_current = any(lane.bias_ma for lane in lanes.values())
    unlit = {} if has_light else {"rx_dbm": None, "tx_dbm": None, "has_rx_loss": None}
    dead = {} if has_current else {"bias_ma": None}
    return {number: replace(lane, **unlit, **dead) for number, lane in lanes.items()}


def limits(low: float | None, high: float | None) -> Limits | None:
    """Build alarm limits; None for an empty range."""
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
    """The values by lane: a list inside an object, or comma-separated words."""
    value = rows.get(key, "")
    listed = value.get("values") if isinstance(value, dict) else None
    if isinstance(listed, list):
        return [str(one).strip() for one in listed[:64] if isinstance(one, str | int | float)]
    return [part.strip() for part in value.split(",")[:64]] if isinstance(value, str) and value else []


def word(rows: Rows, key: str) -> str:
    """A text; empty if missing or not applicable."""
    value = rows.get(key)
    return value.strip() if isinstance(value, str) and value.strip() != "N/A" else ""


def mlxlink_module(rows: Rows) -> Module | None:
    """Build the module from `mlxlink`; None if it is not identified."""
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
    readings: dict[Quantity, Values] = {}
    ranges: dict[Quantity, Limits | None] = {}
    for name, key in KEYS.items():  # `v,v,v,v [low..high]`
        unit = 0.001 if name == "voltage_v" else 1
        text = word(rows, key)
        match = RANGED.match(text)
        parts = (match[1] if match else text).split(",")[:MOST_LANES]
        readings[name] = [_scaled(part, unit) for part in parts]
        ranges[name] = limits(_scaled(match[2], unit), _scaled(match[3], unit)) if match else None
    count = LANES_OF_MEDIA.search(media)
    every = _lanes(rows, readings["rx_dbm"], readings["tx_dbm"], readings["bias_ma"])
    lanes = in_use(every, int(count[1]) if count else None)
    return replace(
        found,
        temperature_c=readings["temperature_c"][0],
        voltage_v=readings["voltage_v"][0],
        lanes=lanes if found.kind == "optic" else measured(lanes),
        limits={name: one for name, one in ranges.items() if one is not None},
    )


def _scaled(text: str, unit: float) -> float | None:
    value = number(text)
    return None if value is None else round(value * unit, 6)


def _lanes(rows: Rows, rx: Values, tx: Values, bias: Values) -> Mapping[int, Lane]:
    losses, faults = values(rows, "Rx LOS [per lane]"), values(rows, "Tx Fault [per lane]")
    if all(value is None for values in (rx, tx, bias) for value in values):
        return {}
    return {
        index + 1: Lane(
            rx_dbm=_power(rx, index),
            tx_dbm=_power(tx, index),
            bias_ma=bias[index] if index < len(bias) else None,
            has_rx_loss=_flag(losses, index),
            has_tx_fault=_flag(faults, index),
        )
        for index in range(max(len(rx), len(tx), len(bias)))
    }


def _power(values: Values, index: int) -> float | None:
    value = values[index] if index < len(values) else None
    return None if value is None else max(value, DARK_DBM)


def _flag(words: Sequence[str], index: int) -> bool | None:
    return {"0": False, "1": True}.get(words[index]) if index < len(words) else None


SMALLEST = 1e-30
"""The tool prints 15E-255 for zero."""
DASHES = re.compile(r"-{3,}\Z")


@dataclass(frozen=True, slots=True)
class OpticReading:
    """The result of one call of `mlxlink`."""

    module: Module | None = None
    line: Line | None = None
    bins: Mapping[int, int] = field(default_factory=dict)
    """Symbol errors in a codeword → number of codewords."""


@lru_cache(maxsize=SHARD * NICS)
def shown(text: str) -> OpticReading:
    """Parse the output of one call, as JSON or text."""
    answer = document(text)
    found = member(member(answer, "result"), "output") if isinstance(answer, dict) else _of_text(text)
    histogram = member(found, "Histogram of FEC Errors")
    bins = {}
    for name in histogram:  # a bin's number is in its name, the count is the last word
        head, _, index = name.partition(" ")
        words = " ".join(values(histogram, name)).split()
        count = whole(words[-1]) if words else None
        if head == "Bin" and whole(index) is not None and count is not None:
            bins[int(index)] = count
    return OpticReading(
        module=mlxlink_module(member(found, "Module Info")),
        line=_line(member(found, "Operational Info"), member(found, "Physical Counters and BER Info")),
        bins=bins,
    )


def _of_text(text: str) -> Mapping[str, Any]:
    """Convert text output to the structure of the JSON: headings are underlined, lanes are comma-separated."""
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


def fec_name(text: str) -> str:
    """Convert the tool's name of an FEC to `rs`, `fc` or `none`; other names stay as they are."""
    upper = text.upper()
    if "RS" in upper and "FEC" in upper:
        return "rs"
    if "FIRECODE" in upper.replace("-", "").replace(" ", "") or "FC-FEC" in upper:
        return "fc"
    return "none" if upper == "NO FEC" else text


def _rate(text: str) -> float | None:
    rate = number(text)
    if rate is None or not 0 <= rate <= 1:
        return None
    return rate if rate >= SMALLEST else 0.0


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


@lru_cache(maxsize=RECENT)
def modules(text: str) -> Mapping[str, Module] | Absent:
    """Parse `ethtool -m`: the modules that identify themselves, by interface."""
    found = {name: dict(pairs(page, " :")) for name, page in sections(text).items()}
    known = {name: module(rows) for name, rows in found.items() if "Identifier" in rows}
    return known or Absent("ethtool -m shows no module of any NIC")


def module(rows: ModuleRows) -> Module:
    technology = rows.get("Transmitter technology", "").lower()
    kind: Kind = "aoc" if "no separable" in rows.get("Connector", "").lower() else "optic"
    if "copper" in technology:
        kind = "copper"
    elif not technology:
        kind = "unknown"
    identifier = rows.get("Identifier", "")
    name = PARENTHESES.match(identifier)
    lanes = in_use(_optic_lanes(rows)) if kind != "copper" else {}
    return Module(
        kind=kind,
        identifier=name[1] if name else identifier,
        vendor=rows.get("Vendor name", ""),
        part=rows.get("Vendor PN", ""),
        serial=rows.get("Vendor SN", ""),
        firmware=rows.get("Active firmware version", ""),
        temperature_c=_first(rows.get("Module temperature", "")) if kind != "copper" else None,
        voltage_v=_first(rows.get("Module voltage", "")) if kind != "copper" else None,
        lanes=lanes if kind == "optic" else measured(lanes),
        limits=_limits(*(row for row in rows.items() if row[0].endswith("threshold"))) if kind != "copper" else {},
    )


def _first(value: str) -> float | None:
    return number(next(iter(value.split()), ""))


def light(value: str) -> float | None:
    """Parse optical power in dBm; none is -40."""
    match = DBM.search(value)
    if match is None:
        return None
    if match[1] == "-inf":
        return DARK_DBM
    dbm = number(match[1])
    return None if dbm is None else max(dbm, DARK_DBM)


def _optic_lanes(rows: ModuleRows) -> dict[int, Lane]:
    read: dict[str, dict[int, float | None]] = {BIAS: {}, TX: {}, RX: {}}
    for key, value in rows.items():
        match = LANE.match(key) if key.endswith(")") else None
        if match and match[1] in read:
            read[match[1]][int(match[2])] = _first(value) if match[1] == BIAS else light(value)
    numbers = sorted({*read[BIAS], *read[TX], *read[RX]})
    losses, faults = _flags(rows.get("Rx loss of signal"), numbers), _flags(rows.get("Tx fault"), numbers)
    return {
        at: Lane(read[RX].get(at), read[TX].get(at), read[BIAS].get(at), losses.get(at), faults.get(at))
        for at in numbers
    }


def _flags(value: str | None, lanes: Iterable[int]) -> Mapping[int, bool | None]:
    """Parse a flag by lane: `None` means no lane, a list has one value per lane, a word applies to all."""
    if value is None:
        return {}
    if value.startswith("["):
        words = value.strip("[] ").split(",")
        return {at: YES_NO.get(word.strip()) for at, word in enumerate(words, 1)}
    return dict.fromkeys(lanes, False if value == "None" else YES_NO.get(value))


@lru_cache(maxsize=RECENT)
def _limits(*thresholds: tuple[str, str]) -> Mapping[Quantity, Limits]:
    """Parse the limits, which modules of a kind share."""
    found: dict[Quantity, dict[str, float | None]] = {}
    for key, value in thresholds:
        match = LIMIT.match(key)
        if match and match[1] in QUANTITIES:
            name = QUANTITIES[match[1]]
            level = light(value) if name in {"rx_dbm", "tx_dbm"} else _first(value)
            found.setdefault(name, {})[f"{match[2]}_{match[3]}"] = level
    # A module without thresholds has zeros: keep limits with at least two different values.
    return {name: Limits(**levels) for name, levels in found.items() if len({*levels.values()} - {None}) > 1}


def merged(own: Module, other: Module) -> Module:
    """Complete a module read from its memory with values from the NIC's firmware, which knows the media type."""
    empty = Module()
    filled = {
        field.name: getattr(other, field.name)
        for field in fields(Module)
        if getattr(own, field.name) == getattr(empty, field.name)
    }
    filled |= {"identifier": other.identifier or own.identifier, "limits": {**other.limits, **own.limits}}
    if 0 < len(other.lanes) < len(own.lanes):
        filled["lanes"] = other.lanes  # in a module shared by two ports, its memory has the lanes of both
    return replace(own, **filled)

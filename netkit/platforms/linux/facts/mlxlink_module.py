"""Modules as the firmware of a NIC tells of them: readings of all lanes in one value, with the alarm limits behind."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.linux.facts import lane
from netkit.platforms.linux.facts.reading import number

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


def module(rows: Rows) -> Module | None:
    """Return a module; None where nothing is told of it."""
    cable = word(rows, "Cable Type").lower()
    if "unplugged" in cable:
        return Module(is_present=False)
    if not word(rows, "Identifier"):
        return None
    is_copper = "copper" in cable or "copper" in word(rows, "Cable Technology").lower()
    media = _media(rows)
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


def _media(rows: Rows) -> str:
    return word(rows, "Active Set Media Compliance Code") or word(rows, "Compliance")


def _measured(found: Module, rows: Rows, media: str) -> Module:
    told = {name: _readings(rows, key, 0.001 if name == "voltage_v" else 1) for name, key in KEYS.items()}
    match = LANES_OF_MEDIA.search(media)
    lanes = lane.in_use(_lanes(rows, *(told[name][0] for name in _LIGHTS)), int(match[1]) if match else None)
    return replace(
        found,
        temperature_c=told["temperature_c"][0][0],
        voltage_v=told["voltage_v"][0][0],
        lanes=lanes if found.kind == "optic" else lane.measured(lanes),
        limits={name: limits for name, (_, limits) in told.items() if limits is not None},
    )


_LIGHTS: tuple[Quantity, ...] = ("rx_dbm", "tx_dbm", "bias_ma")


def _readings(rows: Rows, key: str, unit: float) -> tuple[Values, Limits | None]:
    """Return a reading's values and the module's own alarm limits: `v,v,v,v [low..high]`."""
    told = word(rows, key)
    match = RANGED.match(told)
    found = [_scaled(part, unit) for part in (match[1] if match else told).split(",")[:MOST_LANES]]
    return found, lane.limits(_scaled(match[2], unit), _scaled(match[3], unit)) if match else None


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
    return None if value is None else max(value, lane.DARK_DBM)


def _flag(told: Sequence[str], index: int) -> bool | None:
    return {"0": False, "1": True}.get(told[index]) if index < len(told) else None

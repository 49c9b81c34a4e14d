"""Modules as xcvrd publishes them in STATE_DB, each port's own lanes numbered from 1."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

from netkit.facts import Facts
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.sonic.facts.dump import Database, Row, database, dbm, flag, number, unread, whole, without, word

Kind = Literal["optic", "aoc", "copper", "unknown"]
MOST_LANES = 8
STATUS_TABLES = ("TRANSCEIVER_STATUS", "TRANSCEIVER_STATUS_SW", "TRANSCEIVER_STATUS_FLAG")
"""Up to 202411 one table; later by where a value comes from."""
LIMITS: Mapping[Quantity, str] = {
    "rx_dbm": "rxpower",
    "tx_dbm": "txpower",
    "bias_ma": "txbias",
    "temperature_c": "temp",
    "voltage_v": "vcc",
}
KINDS: Sequence[tuple[Kind, re.Pattern[str]]] = (
    ("copper", re.compile(r"passive_copper|copper cable|base-?cr|\bcr\d|\bdac\b", re.IGNORECASE)),
    ("aoc", re.compile(r"active_cable|active cable|\baoc\b|\bacc\b", re.IGNORECASE)),
    ("optic", re.compile(r"[sn]m_media|_850_|sm_|vcsel|laser|base-?[sdflevz]r|\b[sdflz]r\d|cwdm|psm4", re.IGNORECASE)),
)
GENERIC = re.compile(r"\w+_media_interface")


def modules(state: str, config: str) -> Facts:
    """Return the modules of the ports that tell theirs."""
    found = database(state)
    if found is None:
        return Facts(modules=unread("STATE_DB"))
    ports = (database(config) or Database({})).table("PORT|")
    names = [*found.table("TRANSCEIVER_INFO|"), *_empty(found)]
    told = {name: _module(found, name, ports.get(name, {})) for name in names}
    return Facts(modules=told or without("STATE_DB", "TRANSCEIVER_INFO"))


def _empty(found: Database) -> Iterator[str]:
    """Yield the ports whose cage is said to be empty."""
    for table in STATUS_TABLES:
        for name, row in found.table(f"{table}|").items():
            if row.get("status") == "0" and not found.row(f"TRANSCEIVER_INFO|{name}"):
                yield name


def _module(found: Database, name: str, port: Row) -> Module:
    info, sensors = found.row(f"TRANSCEIVER_INFO|{name}"), found.row(f"TRANSCEIVER_DOM_SENSOR|{name}")
    if not info:
        return Module(is_present=False)
    flags = {key: value for table in STATUS_TABLES for key, value in found.row(f"{table}|{name}").items()}
    firmware = found.row(f"TRANSCEIVER_FIRMWARE_INFO|{name}")
    return Module(
        kind=_kind(info),
        identifier=_identifier(info),
        vendor=word(info.get("manufacturer")),
        part=word(info.get("model")),
        serial=word(info.get("serial")),
        firmware=word(info.get("active_firmware")) or word(firmware.get("active_firmware")),
        temperature_c=number(sensors.get("temperature")),
        voltage_v=number(sensors.get("voltage")),
        lanes=_lanes(sensors, flags, port),
        limits=dict(_limits(found.row(f"TRANSCEIVER_DOM_THRESHOLD|{name}"))),
    )


def _kind(info: Row) -> Kind:
    said = " ".join(
        info.get(name, "")
        for name in ("specification_compliance", "media_interface_technology", "type_of_media_interface")
    )
    return next((kind for kind, pattern in KINDS if pattern.search(said)), "unknown")


def _identifier(info: Row) -> str:
    """Return form factor and compliance; a compliance that names only the kind of medium adds nothing."""
    compliance = word(info.get("specification_compliance"))
    is_plain = not GENERIC.fullmatch(compliance) and "{" not in compliance
    return " ".join(filter(None, (word(info.get("type")), compliance if is_plain else "")))


def _lanes(sensors: Row, flags: Row, port: Row) -> dict[int, Lane]:
    told = {lane: found for lane in range(1, MOST_LANES + 1) if (found := _lane(sensors, flags, lane)) != Lane()}
    lit = [lane for lane, found in told.items() if (found.rx_dbm, found.tx_dbm, found.bias_ma) != (None, None, None)]
    return {number: told[lane] for number, lane in enumerate(_own(lit, port), 1)}


def _own(lit: Sequence[int], port: Row) -> Sequence[int]:
    """Return the lanes of a port that shares its module; xcvrd publishes those of the whole module for each."""
    part, width = whole(port.get("subport")) or 0, port.get("lanes", "").count(",") + 1
    if not part or not 0 < width < MOST_LANES:
        return lit
    own = [lane for lane in lit if (part - 1) * width < lane <= part * width]
    share = len(lit) * width // MOST_LANES
    return own or (lit[(part - 1) * share : part * share] if share else lit)


def _lane(sensors: Row, flags: Row, lane: int) -> Lane:
    return Lane(
        rx_dbm=dbm(sensors.get(f"rx{lane}power")),
        tx_dbm=dbm(sensors.get(f"tx{lane}power")),
        bias_ma=number(sensors.get(f"tx{lane}bias")),
        has_rx_loss=flag(flags.get(f"rxlos{lane}")),
        has_tx_fault=flag(flags.get(f"txfault{lane}")),
    )


def _limits(row: Row) -> Iterator[tuple[Quantity, Limits]]:
    for quantity in get_args(Quantity):
        name = LIMITS[quantity]
        found = Limits(
            *(number(row.get(f"{name}{end}")) for end in ("lowalarm", "lowwarning", "highwarning", "highalarm"))
        )
        if found.is_range:
            yield quantity, found

"""Modules as xcvrd publishes them in STATE_DB, with the lanes of each port numbered from 1."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

from netkit.facts import Facts
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.sonic.facts.dump import Database, Row, database, dbm, flag, number, unread, whole, without, word

Kind = Literal["optic", "aoc", "copper", "unknown"]
MOST_LANES = 8
STATUS_TABLES = ("TRANSCEIVER_STATUS", "TRANSCEIVER_STATUS_SW", "TRANSCEIVER_STATUS_FLAG")
"""One table up to 202411; later one for each source of values."""
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
    found = database(state)
    if found is None:
        return Facts(modules=unread("STATE_DB"))
    ports = (database(config) or Database({})).table("PORT|")
    names = list(found.table("TRANSCEIVER_INFO|"))
    for table in STATUS_TABLES:
        rows = found.table(f"{table}|")
        names += [name for name, row in rows.items() if row.get("status") == "0"]  # an empty cage
    shown = {name: _module(found, name, ports.get(name, {})) for name in names}
    return Facts(modules=shown or without("STATE_DB", "TRANSCEIVER_INFO"))


def _module(found: Database, name: str, port: Row) -> Module:
    info, sensors = found.row(f"TRANSCEIVER_INFO|{name}"), found.row(f"TRANSCEIVER_DOM_SENSOR|{name}")
    if not info:
        return Module(is_present=False)
    flags = {key: value for table in STATUS_TABLES for key, value in found.row(f"{table}|{name}").items()}
    firmware = found.row(f"TRANSCEIVER_FIRMWARE_INFO|{name}")
    fields = ("specification_compliance", "media_interface_technology", "type_of_media_interface")
    medium = " ".join(info.get(field, "") for field in fields)
    compliance = word(info.get("specification_compliance"))
    if GENERIC.fullmatch(compliance) or "{" in compliance:  # names only the kind of medium
        compliance = ""
    return Module(
        kind=next((kind for kind, pattern in KINDS if pattern.search(medium)), "unknown"),
        identifier=" ".join(filter(None, (word(info.get("type")), compliance))),
        vendor=word(info.get("manufacturer")),
        part=word(info.get("model")),
        serial=word(info.get("serial")),
        firmware=word(info.get("active_firmware")) or word(firmware.get("active_firmware")),
        temperature_c=number(sensors.get("temperature")),
        voltage_v=number(sensors.get("voltage")),
        lanes=_lanes(sensors, flags, port),
        limits=dict(_limits(found.row(f"TRANSCEIVER_DOM_THRESHOLD|{name}"))),
    )


def _lanes(sensors: Row, flags: Row, port: Row) -> dict[int, Lane]:
    """Select the lanes of a port; xcvrd publishes those of the whole module for each port that shares it."""
    lanes = {number: _lane(sensors, flags, number) for number in range(1, MOST_LANES + 1)}
    own = [number for number, lane in lanes.items() if (lane.rx_dbm, lane.tx_dbm, lane.bias_ma) != (None, None, None)]
    subport, width = whole(port.get("subport")) or 0, port.get("lanes", "").count(",") + 1
    if subport and 0 < width < MOST_LANES:
        share = len(own) * width // MOST_LANES
        by_number = [number for number in own if (subport - 1) * width < number <= subport * width]
        by_share = own[(subport - 1) * share : subport * share] if share else own
        own = by_number or by_share
    return {index: lanes[number] for index, number in enumerate(own, 1)}


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

"""Optical modules: ENTITY-MIB lists them, ENTITY-SENSOR-MIB has their readings.

No MIB maps an entity to its port; only the description does, in a form that differs by platform. The forms of SONiC
and EOS are known; Cumulus is assumed to use the same, which is unverified on a switch.
"""

import math
import re
from collections.abc import Iterator, Mapping

from netkit.facts import Absent, Facts
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.agents import SensorValue, agents_of
from netkit.platforms.snmp.facts.interface import labels
from netkit.platforms.snmp.transport import Oid, Table, number, table, words

DESCRIPTION, FIRMWARE, SERIAL, VENDOR, PART = 2, 9, 11, 12, 13
TYPE, SCALE, PRECISION, VALUE, STATUS = 1, 2, 3, 4, 5
OK = 1
WATTS, DBM = 6, 14
"""Types of sensors; some agents report dBm as 14, which is not in the RFC."""
UNITS = 9
"""EntitySensorDataScale `units(9)`; each step from it is a factor of 1000."""
MOST_DIGITS = 12
DIGITS = 6
NO_LIMIT = 10**9
DARK_DBM = -40.0
SENSOR = re.compile(r"(?:DOM )?(RX Power|TX Power|TX Bias|Temperature|Voltage) Sensor for (\S{1,40})", re.IGNORECASE)
SLOT = re.compile(r"(.{0,60}?)\s*\bfor (\S{1,40})")
NO_FORM = "Xcvr"
KINDS: Mapping[str, Quantity] = {
    "rx power": "rx_dbm",
    "tx power": "tx_dbm",
    "tx bias": "bias_ma",
    "temperature": "temperature_c",
    "voltage": "voltage_v",
}
PREFIXES: Mapping[Quantity, int] = {"bias_ma": 3}
"""Power of ten from the unit of a sensor to netkit's: amperes to milliamperes."""
PER_MODULE = frozenset({"temperature_c", "voltage_v"})
WHOLE = 0
"""The lane of readings that a module has only once."""


def modules(
    if_text: str, names_text: str, entities_text: str, sensors_text: str, limits_text: str = "", *, platform: str
) -> Facts:
    entities, sensors, limits = (table(one) for one in (entities_text, sensors_text, limits_text))
    ports = labels(platform, table(if_text), table(names_text))
    slots: dict[str, Oid] = {}
    for at in entities.get(SERIAL, {}):
        description = words(entities, DESCRIPTION, at)
        slot = None if SENSOR.fullmatch(description) else SLOT.fullmatch(description)
        if slot and slot[2] in ports:
            slots[ports[slot[2]]] = at
    known = agents_of(platform)
    places = _Places(ports, is_lane_a_port=known is not None and known.snmp.is_lane_a_port)
    readings: dict[str, list[SensorValue]] = {}
    for port, reading in _readings(entities, sensors, limits, places):
        readings.setdefault(port, []).append(reading)
    names = dict.fromkeys((*slots, *readings))
    if known is not None and known.snmp.own_lanes is not None:
        readings = {port: known.snmp.own_lanes(port, values, ports.values()) for port, values in readings.items()}
    found = {port: _module(entities, slots.get(port), readings.get(port, [])) for port in names}
    return Facts(modules=found or Absent("entPhysicalTable names no modules of ports"))


class _Places:
    """Maps the place that a sensor's description names to port and lane."""

    def __init__(self, ports: Mapping[str, str], *, is_lane_a_port: bool) -> None:
        self._ports = ports
        self._firsts: dict[str, list[tuple[int, str]]] = {}
        for name in sorted(set(ports.values())) if is_lane_a_port else ():
            cage, _, lane = name.rpartition("/")
            if lane.isdecimal():
                self._firsts.setdefault(cage, []).append((int(lane), name))

    def find(self, place: str, *, is_whole: bool) -> tuple[str, int] | None:
        """Return port and lane: `Ethernet1/2` is lane 2 of Ethernet1, or the port that begins at lane 2 of its cage."""
        if is_whole:
            return (self._ports[place], WHOLE) if place in self._ports else None
        head, _, tail = place.rpartition("/")
        lane = int(tail) if tail.isascii() and tail.isdecimal() and len(tail) <= 2 else 0
        if lane and head in self._firsts:
            # the port of a cage that has the lane is the last one that begins at or before it
            first, name = max((one for one in self._firsts[head] if one[0] <= lane), default=(0, ""))
            return (name, lane - first + 1) if name else None
        if lane and head in self._ports:
            return self._ports[head], lane
        return (self._ports[place], 1) if place in self._ports else None


def _readings(entities: Table, sensors: Table, limits: Table, places: _Places) -> Iterator[tuple[str, SensorValue]]:
    for at in sensors.get(VALUE, {}):
        found = SENSOR.fullmatch(words(entities, DESCRIPTION, at))
        if found is None:
            continue
        quantity = KINDS[found[1].lower()]
        place = places.find(found[2], is_whole=quantity in PER_MODULE)
        if place is not None:
            value = _measured(sensors, at, quantity, number(sensors, VALUE, at))
            is_ok = number(sensors, STATUS, at) in {OK, None}
            own = _limits(sensors, limits, at, quantity)
            yield place[0], SensorValue(quantity, place[1], value if is_ok else None, own)


def _measured(sensors: Table, at: Oid, quantity: Quantity, raw: int | None) -> float | None:
    """Convert an integer with scale and precision to netkit's unit; None if it is out of range."""
    scale, precision = number(sensors, SCALE, at), number(sensors, PRECISION, at) or 0
    if raw is None or scale is None or not 1 <= scale <= 17 or abs(precision) > MOST_DIGITS or abs(raw) > NO_LIMIT:
        return None
    power = 3 * (scale - UNITS) - precision
    kind = number(sensors, TYPE, at)
    if quantity in {"rx_dbm", "tx_dbm"} and kind != DBM:
        if kind != WATTS:
            return None
        milliwatts = raw * 10.0 ** (power + 3)
        return max(DARK_DBM, round(10 * math.log10(milliwatts), 2)) if milliwatts > 0 else DARK_DBM
    return round(raw * 10.0 ** (power + PREFIXES.get(quantity, 0)), DIGITS)


def _limits(sensors: Table, limits: Table, at: Oid, quantity: Quantity) -> Limits:
    """Return the module's own limits, if the agent has them; a power limit at no light at all is not a limit."""
    read = [number(limits, column, at) for column in (2, 1, 3, 4)]
    found = [None if raw is None or abs(raw) >= NO_LIMIT else _measured(sensors, at, quantity, raw) for raw in read]
    return Limits(*(None if value is not None and value <= DARK_DBM else value for value in found))


def _module(entities: Table, at: Oid | None, readings: list[SensorValue]) -> Module:
    lanes = _lanes(readings)
    identity = {column: words(entities, column, at) if at else "" for column in (FIRMWARE, SERIAL, VENDOR, PART)}
    once = {reading.quantity: reading.value for reading in readings if reading.lane == WHOLE}
    form = SLOT.fullmatch(words(entities, DESCRIPTION, at)) if at else None
    return Module(
        kind="optic" if any(lane.rx_dbm is not None for lane in lanes.values()) else "unknown",
        identifier=form[1] if form and form[1] != NO_FORM else "",
        vendor=identity[VENDOR],
        part=identity[PART],
        serial=identity[SERIAL],
        firmware=identity[FIRMWARE],
        temperature_c=once.get("temperature_c"),
        voltage_v=once.get("voltage_v"),
        lanes=lanes,
        limits={reading.quantity: reading.limits for reading in readings if reading.limits.is_range},
    )


def _lanes(readings: list[SensorValue]) -> dict[int, Lane]:
    """Count the lanes of a port from 1; the agent numbers them by module, which may serve two ports."""
    values = {(reading.quantity, reading.lane): reading.value for reading in readings if reading.lane != WHOLE}
    numbers = sorted({lane for _, lane in values})
    return {
        lane - numbers[0] + 1: Lane(
            values.get(("rx_dbm", lane)), values.get(("tx_dbm", lane)), values.get(("bias_ma", lane))
        )
        for lane in numbers
    }

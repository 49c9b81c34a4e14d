"""What netkit reads by SNMP: standard MIBs, and the vendor's counter tables of the platform."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.device import Interface, Neighbor, System
from netkit.facts.optic import Lane, Limits, Module, Quantity
from netkit.platforms.agents import SensorValue, agents_of
from netkit.platforms.snmp.transport import Oid, SnmpQuery, Table, mac, number, octets, table, words
from netkit.platforms.view import View, ViewSubject

MTU, ADDRESS, ADMIN, OPERATION = 4, 6, 7, 8
SPEED_MBPS, ALIAS = 15, 18
UP = 1
UNKNOWN = {None, 4}
"""States without information."""
PORT_ID = 3
REMOTE_KIND, REMOTE_PORT, REMOTE_TEXT, REMOTE_SYSTEM = 6, 7, 8, 9
IS_MAC = 3
MBPS_PER_GBPS = 1000


def interfaces(if_text: str, names_text: str, platform: str) -> Facts:
    if_table, if_names = table(if_text), table(names_text)
    named = ports(platform, if_table, if_names)
    found = {name: _interface(if_table, if_names, (index,), name) for index, name in named.items()}
    return Facts(interfaces=found or Absent("ifTable and ifXTable show no ports"))


def _interface(if_table: Table, if_names: Table, at: Oid, name: str) -> Interface:
    speed = number(if_names, SPEED_MBPS, at)
    label = words(if_names, IF_NAME, at)
    return Interface(
        is_up=_is(number(if_table, OPERATION, at)),
        is_enabled=_is(number(if_table, ADMIN, at)),
        speed_gbps=speed / MBPS_PER_GBPS if speed else None,
        mtu_bytes=number(if_table, MTU, at) or None,
        mac=mac(octets(if_table, ADDRESS, at)),
        description=words(if_names, ALIAS, at),
        alias=label if label != name else "",
    )


def _is(state: int | None) -> bool | None:
    return None if state in UNKNOWN else state == UP


def neighbors(if_text: str, names_text: str, local_text: str, remote_text: str, platform: str) -> Facts:
    """Parse LLDP-MIB. If it lists local ports, having no neighbours is a valid result."""
    if_table, if_names, local, remote = (table(one) for one in (if_text, names_text, local_text, remote_text))
    if not local and not remote:
        return Facts(neighbors=Absent("the agent has no LLDP-MIB"))
    # lldpLocPortNum is the ifIndex, unless the port ID that the port announces names another port
    by_number = dict(ports(platform, if_table, if_names))
    by_label = labels(platform, if_table, if_names)
    for at in local.get(PORT_ID, {}):
        name = by_label.get(words(local, PORT_ID, at), "")
        if name and len(at) == 1:
            by_number[at[0]] = name
    found: dict[str, list[tuple[int, Neighbor]]] = {}
    for at in sorted({at for column in remote.values() for at in column if len(at) == 3}):
        port = by_number.get(at[1])
        if port is not None:
            found.setdefault(port, []).append((at[0], _neighbor(remote, at)))
    return Facts(
        neighbors={
            port: tuple(neighbor for _, neighbor in sorted(ends, key=lambda end: end[0], reverse=True))  # newest first
            for port, ends in found.items()
        }
    )


def _neighbor(remote: Table, at: Oid) -> Neighbor:
    address = mac(octets(remote, REMOTE_PORT, at)) if number(remote, REMOTE_KIND, at) == IS_MAC else ""
    return Neighbor(
        system=words(remote, REMOTE_SYSTEM, at),
        port=address or words(remote, REMOTE_PORT, at),
        description=words(remote, REMOTE_TEXT, at),
    )


IF_NAME, IF_DESCR = 1, 2


def ports(platform: str, if_table: Table, if_names: Table) -> Mapping[int, str]:
    """Map ifIndex to port, from ifName, ifDescr, or the number itself."""
    known = agents_of(platform)
    if known is None:
        return {}
    columns = (if_names.get(IF_NAME, {}), if_table.get(IF_DESCR, {}))
    found = {}
    for index in sorted({at[0] for column in columns for at in column if len(at) == 1}):
        labels = [words(if_names, IF_NAME, (index,)), words(if_table, IF_DESCR, (index,))]
        name = next(filter(known.port.fullmatch, labels), "")
        if not name and known.snmp.port_at is not None and any(labels):
            name = known.snmp.port_at(index)
        if name:
            found[index] = name
    return found


def labels(platform: str, if_table: Table, if_names: Table) -> Mapping[str, str]:
    """Map every name the agent uses for a port, and its own, to the port."""
    found = {}
    for index, name in ports(platform, if_table, if_names).items():
        known = {words(if_names, IF_NAME, (index,)), words(if_table, IF_DESCR, (index,)), name}
        found.update(dict.fromkeys(known - {""}, name))
    return found


Found = Iterable[tuple[str, str, int | None]]
"""Counter, place and count; None where the agent has no count."""
Named = Mapping[int, str]
IF_COLUMNS: Mapping[str, int] = {"rx_drops": 13, "rx_errors": 14, "tx_drops": 19, "tx_errors": 20}
WIDE_COLUMNS: Mapping[str, int] = {"rx_bytes": 6, "tx_bytes": 10}
PACKET_COLUMNS: Mapping[str, tuple[int, int, int]] = {"rx_packets": (7, 8, 9), "tx_packets": (11, 12, 13)}
"""Unicast, multicast and broadcast."""
LAST_PRIORITY = 7


def named(platform: str, if_text: str, names_text: str, wanted: tuple[str, ...]) -> Named:
    """Map ifIndex to port, for the wanted ports; for all of them if none is given."""
    found = ports(platform, table(if_text), table(names_text))
    return {index: name for index, name in found.items() if not wanted or name in wanted}


def interface_counters(if_text: str, names_text: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Parse IF-MIB. Only 64-bit byte and packet counters are used: 32 bits wrap within a second at 40G."""
    if_table, if_names = table(if_text), table(names_text)
    return counters(_of_ports(if_table, if_names, named(platform, if_text, names_text, wanted)), "ifXTable")


def _of_ports(if_table: Table, if_names: Table, ports_by_index: Named) -> Found:
    for index, port in ports_by_index.items():
        for name, column in IF_COLUMNS.items():
            yield name, port, number(if_table, column, (index,))
        for name, column in WIDE_COLUMNS.items():
            yield name, port, number(if_names, column, (index,))
        for name, columns in PACKET_COLUMNS.items():
            offered = [column for column in columns if column == columns[0] or if_names.get(column)]
            counts = [number(if_names, column, (index,)) for column in offered]
            known = [count for count in counts if count is not None]
            # a sum that misses one of its terms this time would be less than before
            yield name, port, sum(known) if len(known) == len(counts) else None


def pauses_of_ports(if_text: str, names_text: str, text: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Parse IEEE8021-PFC-MIB, which counts pauses of all priorities together."""
    rows, by_index = table(text), named(platform, if_text, names_text, wanted)
    found = (
        (name, port, number(rows, column, (index,)))
        for name, column in (("port_tx_pause", 2), ("port_rx_pause", 3))
        for index, port in by_index.items()
    )
    return counters(found, "ieee8021PfcTable")


def numbered(rows: Table, by_index: Named, columns: Mapping[str, int]) -> Iterator[tuple[str, str, int | None]]:
    """Yield the counts of a table that is indexed by port, and priority or queue."""
    for name, column in columns.items():
        for at in rows.get(column, {}):
            port = by_index.get(at[0]) if len(at) == 2 and at[1] <= LAST_PRIORITY else None
            if port is not None:
                yield name, place(port, at[1]), number(rows, column, at)


def counters(found: Found, source: str) -> Facts:
    """Group counts by counter; a negative count is dropped."""
    counted: dict[str, dict[str, int]] = {}
    for name, at, count in found:
        if count is not None and count >= 0:
            counted.setdefault(name, {})[at] = count
    absent = Absent(f"the agent has no counters in {source}")
    return Facts(counters=counted or absent)


PART_DESCRIPTION, FIRMWARE, SERIAL, VENDOR, PART = 2, 9, 11, 12, 13
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
        description = words(entities, PART_DESCRIPTION, at)
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
        """Port and lane: `Ethernet1/2` is lane 2 of Ethernet1, or the port that begins at lane 2 of its cage."""
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
        found = SENSOR.fullmatch(words(entities, PART_DESCRIPTION, at))
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
    """The own limits of the module, if the agent has them; a power limit at the level without signal does not count."""
    read = [number(limits, column, at) for column in (2, 1, 3, 4)]
    found = [None if raw is None or abs(raw) >= NO_LIMIT else _measured(sensors, at, quantity, raw) for raw in read]
    return Limits(*(None if value is not None and value <= DARK_DBM else value for value in found))


def _module(entities: Table, at: Oid | None, readings: list[SensorValue]) -> Module:
    lanes = _lanes(readings)
    identity = {column: words(entities, column, at) if at else "" for column in (FIRMWARE, SERIAL, VENDOR, PART)}
    once = {reading.quantity: reading.value for reading in readings if reading.lane == WHOLE}
    form = SLOT.fullmatch(words(entities, PART_DESCRIPTION, at)) if at else None
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


MIB_2: Oid = (1, 3, 6, 1, 2, 1)


def _walk(name: str, root: Oid, *columns: int) -> str:
    return SnmpQuery(name, root, columns).command


SYSTEM = _walk("system", (*MIB_2, 1), 1, 5)
"""sysDescr and sysName; not sysUpTime, which on Linux is the uptime of the agent, not of the device."""
HOST_UPTIME = _walk("hrSystemUptime", (*MIB_2, 25, 1), 1)
IF_TABLE = _walk("ifTable", (*MIB_2, 2, 2, 1), 2, 4, 6, 7, 8, 13, 14, 19, 20)
IF_NAMES = _walk("ifXTable", (*MIB_2, 31, 1, 1, 1), 1, 6, 7, 8, 9, 10, 11, 12, 13, 15, 18)
LLDP_PORTS = _walk("lldpLocPortTable", (1, 0, 8802, 1, 1, 2, 1, 3, 7, 1), 2, 3)
LLDP_REMOTE = _walk("lldpRemTable", (1, 0, 8802, 1, 1, 2, 1, 4, 1, 1), 6, 7, 8, 9)
ENTITIES = _walk("entPhysicalTable", (*MIB_2, 47, 1, 1, 1, 1), 2, 9, 11, 12, 13)
SENSORS = _walk("entPhySensorTable", (*MIB_2, 99, 1, 1, 1), 1, 2, 3, 4, 5)
PFC = _walk("ieee8021PfcTable", (1, 3, 111, 2, 802, 1, 1, 21, 1, 1, 1), 2, 3)


PORTS = (IF_TABLE, IF_NAMES)


def views(subject: ViewSubject) -> tuple[View, ...]:
    platform, ports = subject.platform, subject.ports
    known = agents_of(platform)
    limits = known.snmp.sensor_limits if known else ()
    vendor: tuple[View, ...] = ()
    if known is not None and known.snmp.counters is not None:
        vendor = (_view(partial(known.snmp.counters, wanted=ports), "counters", *PORTS, *known.snmp.tables),)
    return (
        _view(partial(interface_counters, platform=platform, wanted=ports), "counters", *PORTS),
        *vendor,
        _view(partial(pauses_of_ports, platform=platform, wanted=ports), "counters", *PORTS, PFC),
        View((SYSTEM, HOST_UPTIME), frozenset({"system", *UNAVAILABLE}), partial(system, platform=platform)),
        _view(partial(interfaces, platform=platform), "interfaces", *PORTS),
        _view(partial(neighbors, platform=platform), "neighbors", *PORTS, LLDP_PORTS, LLDP_REMOTE),
        View(
            (*PORTS, ENTITIES, SENSORS, *limits),
            frozenset({"modules"}),
            partial(modules, platform=platform),
            is_costly=True,
        ),
    )


def _view(parse: Callable[..., Facts], kind: str, *commands: str) -> View:
    return View(commands, frozenset({kind}), parse)


DESCRIPTION, NAME, UPTIME = 1, 5, 1
SCALAR = (0,)
TICKS_PER_S = 100
UNAVAILABLE = {
    "sessions": Absent("BGP4-MIB lists sessions by address, and those of a fabric run by interface"),
    "routes": Absent("SNMP does not expose routes by interface"),
    "qos": Absent("no MIB exposes the QoS configuration"),
    "lines": Absent("no MIB exposes FEC or bit errors"),
    "watchdogs": Absent("no MIB exposes the PFC watchdog"),
    "buffers": Absent("no MIB exposes the fill level of queues"),
    "adaptive_routing": Absent("no MIB exposes adaptive routing"),
    "file_systems": Absent("SNMP is not used to read file systems"),
}
"""Facts that SNMP has no source for, with the reason."""


def system(system_text: str, uptime_text: str, platform: str) -> Facts:
    """Parse sysDescr and sysName, and report what SNMP cannot answer as absent."""
    rows = table(system_text)
    known = agents_of(platform)
    own = known.snmp if known else None
    description = words(rows, DESCRIPTION, SCALAR)
    ticks = number(table(uptime_text), UPTIME, SCALAR)
    found = System(
        hostname=words(rows, NAME, SCALAR),
        version=_first(own.release, description) if own else "",
        model=_first(own.model, description) if own else "",
        uptime_s=None if ticks is None or ticks < 0 else ticks / TICKS_PER_S,
    )
    absent = Absent("the agent has neither sysDescr nor sysName")
    return Facts(system=absent if found == System() else found, **UNAVAILABLE)


def _first(pattern: re.Pattern[str] | None, text: str) -> str:
    found = pattern.search(text) if pattern is not None else None
    return found[1] if found else ""

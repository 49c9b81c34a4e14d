"""The SNMP agent and the gNMI server of SONiC.

The server exposes COUNTERS_DB: a port is at COUNTERS/Ethernet*, its queues are below …/Queues. It names ports by their
aliases if they have any.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from netkit.facts import Absent, Facts, counter
from netkit.facts.device import Interface
from netkit.platforms.agents import Agents, GnmiDatabase, GnmiDialect, SensorValue, SnmpDialect, Sums
from netkit.platforms.gnmi import facts as gnmi
from netkit.platforms.gnmi.message import ONCE, Update, read
from netkit.platforms.json_access import Shown, named, number, text, whole
from netkit.platforms.snmp import facts as snmp
from netkit.platforms.snmp.transport import Oid, SnmpQuery, table
from netkit.platforms.sonic.facts.port import BINS, OF_BIN, OF_PORT, OF_PRIORITY, OF_QUEUE, PRIORITIES
from netkit.platforms.view import View

PORT = re.compile(r"Ethernet\d{1,4}", re.ASCII)
FIRST_BUNDLE = 1000
"""ifIndex is the number of a port plus 1; larger ones are port channels, VLANs and management."""
CISCO: Oid = (1, 3, 6, 1, 4, 1, 9, 9)
"""The agent exposes SONiC's own counters in two MIBs of Cisco."""
PFC = SnmpQuery("cpfcIfPriorityTable", (*CISCO, 813, 1, 2, 1), (2, 3)).command
QUEUES = SnmpQuery("csqIfQosGroupStatsTable", (*CISCO, 580, 1, 5, 5, 1), (4,)).command
EGRESS = 2
STATISTICS = {1: "queue_tx_packets", 2: "queue_tx_bytes", 5: "queue_drops"}
MODULE_LANES = (1, 2, 4, 8, 16)
COUNTERS_OF_PORTS, COUNTERS_OF_QUEUES = "COUNTERS_DB:/COUNTERS/Ethernet*", "COUNTERS_DB:/COUNTERS/Ethernet*/Queues"
PORT_TABLE = "APPL_DB:/PORT_TABLE"

OF_PRIORITY_FIELD = {form.format(one): (name, one) for name, form in OF_PRIORITY.items() for one in PRIORITIES}
OF_BIN_FIELD = {OF_BIN.format(one): ("fec_bin", one) for one in BINS}
NUMBERED = {**OF_PRIORITY_FIELD, **OF_BIN_FIELD}
"""Field of a port → (counter, priority or FEC bin)."""
SWITCHED = {"up": True, "down": False}
MBPS_PER_GBPS = 1000


def _sums(fields: Mapping[str, Sequence[str]]) -> Mapping[str, Sums]:
    """Convert groups of fields to sums; of two fields either may be missing."""
    return {name: (tuple(each), *((one,) for one in each)) for name, each in fields.items()}


COUNTERS: Mapping[str, Sums] = {
    **_sums(OF_PORT),
    **_sums(OF_QUEUE),
    **{name: ((name,),) for name, _ in NUMBERED.values()},
}
PORT_FIELDS = frozenset(field for each in OF_PORT.values() for field in each)
QUEUE_FIELDS = frozenset(field for each in OF_QUEUE.values() for field in each)
DEEPEST = 3
"""A database, a table, a row."""


def counts(update: Update, names: Mapping[str, str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the counters in an update, by field and place."""
    for label, row in _rows_below(update.path[-1].name if update.path else "", update.value, DEEPEST):
        name, _, queue = label.partition(":")
        port = names.get(name, name)
        if not queue:
            yield from _of_port(row, port)
        elif (number := whole(queue)) in PRIORITIES:
            for field in QUEUE_FIELDS & row.keys():
                if (count := whole(row[field])) is not None:
                    yield (field, f"{port}/{number}"), count


def _rows_below(name: str, value: object, depth: int) -> Iterator[tuple[str, Shown]]:
    """Yield the rows of a tree by name: objects that hold fields instead of rows."""
    rows = dict(named(value))
    if rows and depth:
        for below, row in rows.items():
            yield from _rows_below(below, row, depth - 1)
    elif isinstance(value, dict):
        yield name, value


def _of_port(row: Shown, port: str) -> Iterator[tuple[tuple[str, str], int]]:
    for field in PORT_FIELDS & row.keys():
        if (count := whole(row[field])) is not None:
            yield (field, port), count
    for field in NUMBERED.keys() & row.keys():
        name, index = NUMBERED[field]
        if (count := whole(row[field])) is not None:
            yield (name, counter.place(port, index)), count


def aliases(updates: Iterable[Update]) -> Mapping[str, str]:
    """Map the server's names of ports to the ports, from APPL_DB's PORT_TABLE."""
    return {alias: name for name, row in _rows(updates) if (alias := text(row.get("alias")))}


def changes(updates: Iterable[Update], wanted: tuple[str, ...]) -> Mapping[str, int]:
    """How often each port went up or down."""
    found = ((name, whole(row.get("flap_count"))) for name, row in _rows(updates) if not wanted or name in wanted)
    return {name: count for name, count in found if count is not None}


def interfaces(updates: Iterable[Update]) -> Mapping[str, Interface] | Absent:
    found = {name: _interface(row) for name, row in _rows(updates)}
    return found or Absent("the gNMI server shows no PORT_TABLE in APPL_DB")


def _rows(updates: Iterable[Update]) -> Iterator[tuple[str, Shown]]:
    for update in updates:
        yield from ((name, row) for name, row in named(update.value) if PORT.fullmatch(name))


def _interface(row: Shown) -> Interface:
    speed = number(whole(row.get("speed")))
    return Interface(
        is_up=SWITCHED.get(text(row.get("oper_status"))),
        is_enabled=SWITCHED.get(text(row.get("admin_status"))),
        speed_gbps=speed / MBPS_PER_GBPS if speed else None,
        mtu_bytes=whole(row.get("mtu")),
        fec=text(row.get("fec")),
        description=text(row.get("description")),
        alias=text(row.get("alias")),
    )


def gnmi_views(ports: tuple[str, ...]) -> tuple[View, ...]:
    commands = tuple(f"{ONCE}{place}" for place in (PORT_TABLE, COUNTERS_OF_PORTS, COUNTERS_OF_QUEUES))
    return (
        View(commands, frozenset({"counters"}), partial(gnmi_counters, wanted=ports)),
        View(commands[:1], frozenset({"interfaces"}), lambda text: Facts(interfaces=interfaces(read(text)))),
    )


def gnmi_counters(ports: str, *texts: str, wanted: tuple[str, ...]) -> Facts:
    """Parse COUNTERS_DB, with ports as APPL_DB names them."""
    updates = (update for text in texts for update in read(text))
    counting = gnmi.Counting("sonic", aliases(read(ports)), wanted)
    found = gnmi.counters_of("sonic", dict(counting.counts(updates)))
    flaps = changes(read(ports), wanted)
    return gnmi.as_facts({**found, "carrier_changes": flaps} if flaps and found else found)


def snmp_counters(if_text: str, names_text: str, pfc: str, queues: str, wanted: tuple[str, ...]) -> Facts:
    by_index = snmp.named("sonic", if_text, names_text, wanted)
    found = list(snmp.numbered(table(pfc), by_index, {"tx_pause": 2, "rx_pause": 3}))
    for at, count in table(queues).get(4, {}).items():
        if len(at) != 4:
            continue
        index, direction, queue, statistic = at
        is_known = index in by_index and direction == EGRESS and statistic in STATISTICS
        if is_known and 1 <= queue <= len(PRIORITIES) and isinstance(count, int):
            found.append((STATISTICS[statistic], counter.place(by_index[index], queue - 1), count))
    return snmp.counters(found, "the MIBs of Cisco that SONiC has")


def own_lanes(port: str, values: list[SensorValue], ports: Iterable[str]) -> list[SensorValue]:
    """Select a port's own readings: each port of a module shows all of its lanes, and is named by its first one."""
    first = _number_of(port)
    last = max(value.lane for value in values)
    size = next((size for size in MODULE_LANES if size >= last), last)
    end = min((other for other in map(_number_of, ports) if other > first), default=first + size)
    own = range(first % size + 1, first % size + end - first + 1)
    if not any(value.lane in own for value in values):
        return values
    return [value for value in values if value.lane == 0 or value.lane in own]


def _number_of(port: str) -> int:
    digits = port.removeprefix("Ethernet")
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


AGENTS = Agents(
    port=PORT,
    snmp=SnmpDialect(
        release=re.compile(r"SONiC Software Version: SONiC\.(\S{1,39})"),
        model=re.compile(r"HwSku: (\S{1,60})"),
        tables=(PFC, QUEUES),
        counters=snmp_counters,
        port_at=lambda index: f"Ethernet{index - 1}" if index < FIRST_BUNDLE else "",
        own_lanes=own_lanes,
    ),
    gnmi=GnmiDialect(
        streamed=(COUNTERS_OF_PORTS, COUNTERS_OF_QUEUES),
        database=GnmiDatabase(PORT_TABLE, aliases, counts, COUNTERS, gnmi_views),
    ),
)

"""The SNMP agent and the gNMI server of SONiC.

The server shows COUNTERS_DB: below COUNTERS/Ethernet* a port, below …/Queues a queue. It calls ports by their aliases
where they have any.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from netkit.facts import Absent, Facts, counter
from netkit.facts.device import Interface
from netkit.platforms.agents import Agents, GnmiDatabase, GnmiDialect, SensorValue, SnmpDialect, Sums
from netkit.platforms.gnmi.facts import count
from netkit.platforms.gnmi.message import ONCE, Update, read
from netkit.platforms.json_access import Shown, named, number, text, whole
from netkit.platforms.snmp.facts import counter as snmp
from netkit.platforms.snmp.transport import Oid, SnmpQuery, table
from netkit.platforms.sonic.facts.counter import BINS, OF_BIN, OF_PORT, OF_PRIORITY, OF_QUEUE, PRIORITIES
from netkit.platforms.view import View

PORT = re.compile(r"Ethernet\d{1,4}", re.ASCII)
FIRST_BUNDLE = 1000
"""ifIndex is the number of a port plus 1; from here on there are port channels, then VLANs and management."""
CISCO: Oid = (1, 3, 6, 1, 4, 1, 9, 9)
"""The agent shows SONiC's own counters in two MIBs of Cisco."""
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
"""Field of a port → the counter of a priority or a bin that it is."""
SWITCHED = {"up": True, "down": False}
MBPS_PER_GBPS = 1000


def _sums(fields: Mapping[str, Sequence[str]]) -> Mapping[str, Sums]:
    """Return what a counter is the sum of; of two fields either may be missing."""
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
    """Yield what the rows of an update count, by field and place."""
    for called, row in _counted(update.path[-1].name if update.path else "", update.value, DEEPEST):
        name, _, queue = called.partition(":")
        port = names.get(name, name)
        if queue:
            yield from _of_queue(row, port, whole(queue))
        else:
            yield from _of_port(row, port)


def _counted(name: str, value: object, deeper: int) -> Iterator[tuple[str, Shown]]:
    """Yield the rows of a tree by their names: what has fields and no rows in it."""
    rows = dict(named(value))
    if rows and deeper:
        for below, row in rows.items():
            yield from _counted(below, row, deeper - 1)
    elif isinstance(value, dict):
        yield name, value


def _of_port(row: Shown, port: str) -> Iterator[tuple[tuple[str, str], int]]:
    for field in PORT_FIELDS & row.keys():
        if (count := whole(row[field])) is not None:
            yield (field, port), count
    for field in NUMBERED.keys() & row.keys():
        name, number_of_it = NUMBERED[field]
        if (count := whole(row[field])) is not None:
            yield (name, counter.place(port, number_of_it)), count


def _of_queue(row: Shown, port: str, queue: int | None) -> Iterator[tuple[tuple[str, str], int]]:
    for field in QUEUE_FIELDS & row.keys() if queue in PRIORITIES else ():
        if (count := whole(row[field])) is not None:
            yield (field, f"{port}/{queue}"), count


def aliases(updates: Iterable[Update]) -> Mapping[str, str]:
    """Return what the server calls ports → the ports, from APPL_DB's PORT_TABLE."""
    return {alias: name for name, row in _rows(updates) if (alias := text(row.get("alias")))}


def changes(updates: Iterable[Update], wanted: tuple[str, ...]) -> Mapping[str, int]:
    """Return how often ports went up or down."""
    found = ((name, whole(row.get("flap_count"))) for name, row in _rows(updates) if not wanted or name in wanted)
    return {name: count for name, count in found if count is not None}


def interfaces(updates: Iterable[Update]) -> Mapping[str, Interface] | Absent:
    """Return the ports."""
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
    """Return how a switch is asked by gNMI."""
    commands = tuple(f"{ONCE}{place}" for place in (PORT_TABLE, COUNTERS_OF_PORTS, COUNTERS_OF_QUEUES))
    return (
        View(commands, frozenset({"counters"}), partial(gnmi_counters, wanted=ports)),
        View(commands[:1], frozenset({"interfaces"}), lambda text: Facts(interfaces=interfaces(read(text)))),
    )


def gnmi_counters(ports: str, *texts: str, wanted: tuple[str, ...]) -> Facts:
    """Return the counters of the server, of ports as APPL_DB names them."""
    updates = (update for text in texts for update in read(text))
    counting = count.Counting("sonic", aliases(read(ports)), wanted)
    found = count.counters("sonic", dict(counting.counts(updates)))
    flaps = changes(read(ports), wanted)
    return count.as_facts({**found, "carrier_changes": flaps} if flaps and found else found)


def snmp_counters(if_text: str, names_text: str, pfc: str, queues: str, wanted: tuple[str, ...]) -> Facts:
    """Return what the agent counts beside: pauses by priority, and queues, which SNMP counts from 1."""
    by_index = snmp.named("sonic", if_text, names_text, wanted)
    found = (
        *snmp.numbered(table(pfc), by_index, {"tx_pause": 2, "rx_pause": 3}),
        *_queues(table(queues).get(4, {}), by_index),
    )
    return snmp.counters(found, "the MIBs of Cisco that SONiC has")


def _queues(rows: Mapping[Oid, object], by_index: Mapping[int, str]) -> Iterator[tuple[str, str, int | None]]:
    """Yield counts of queues, whose index is port, direction, queue, and what is counted."""
    for at, found in rows.items():
        port = by_index.get(at[0])
        if len(at) != 4 or at[1] != EGRESS or port is None or at[3] not in STATISTICS:
            continue
        if 1 <= at[2] <= len(PRIORITIES) and isinstance(found, int):
            yield STATISTICS[at[3]], counter.place(port, at[2] - 1), found


def own_lanes(port: str, values: list[SensorValue], ports: Iterable[str]) -> list[SensorValue]:
    """Return what is a port's own: each port of a module shows all its lanes, and has the number of its first."""
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

"""SONiC's own counters, as COUNTERS_DB has them: below COUNTERS/Ethernet* a port, below …/Queues a queue.

Its server calls ports by their aliases where they have any.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from netkit.facts import Absent, counter
from netkit.facts.device import Interface
from netkit.platforms.gnmi.facts.openconfig import Sums
from netkit.platforms.gnmi.message import Update
from netkit.platforms.shown import Shown, named, number, text, whole
from netkit.platforms.snmp.facts.port import NAMES
from netkit.platforms.sonic.facts.counter import BINS, OF_BIN, OF_PORT, OF_PRIORITY, OF_QUEUE, PRIORITIES

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
        yield from ((name, row) for name, row in named(update.value) if NAMES["sonic"].fullmatch(name))


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

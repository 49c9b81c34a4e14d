"""Counters of ports, priorities and queues, each platform's own tables first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from netkit.facts import Absent, Counters, Facts
from netkit.facts.counter import place
from netkit.platforms.snmp.facts.port import ports
from netkit.platforms.snmp.transport import Oid, Table, number, table

Found = Iterable[tuple[str, str, int | None]]
"""Counter, place and count; no count where the agent has none."""
Named = Mapping[int, str]
IF_COLUMNS: Mapping[str, int] = {"rx_drops": 13, "rx_errors": 14, "tx_drops": 19, "tx_errors": 20}
WIDE_COLUMNS: Mapping[str, int] = {"rx_bytes": 6, "tx_bytes": 10}
PACKET_COLUMNS: Mapping[str, tuple[int, int, int]] = {"rx_packets": (7, 8, 9), "tx_packets": (11, 12, 13)}
"""Unicast, multicast and broadcast."""
EGRESS, UNICAST = 2, 0
LAST_PRIORITY = 7
FIRST_CUMULUS_PFC = 4


def named(platform: str, if_text: str, names_text: str, wanted: tuple[str, ...]) -> Named:
    """Return ifIndex → port, of ports in use."""
    found = ports(platform, table(if_text), table(names_text))
    return {index: name for index, name in found.items() if not wanted or name in wanted}


def interface_counters(if_text: str, names_text: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Return what IF-MIB counts. Bytes and packets come in 64 bits, or not at all: 32 last a second at 40G."""
    if_table, if_names = table(if_text), table(names_text)
    return _counters(_of_ports(if_table, if_names, named(platform, if_text, names_text, wanted)), "ifXTable")


def _of_ports(if_table: Table, if_names: Table, ports_by_index: Named) -> Found:
    for index, port in ports_by_index.items():
        for name, column in IF_COLUMNS.items():
            yield name, port, number(if_table, column, (index,))
        for name, column in WIDE_COLUMNS.items():
            yield name, port, number(if_names, column, (index,))
        for name, columns in PACKET_COLUMNS.items():
            offered = [column for column in columns if column == columns[0] or if_names.get(column)]
            yield name, port, _sum([number(if_names, column, (index,)) for column in offered])


def _sum(counts: Sequence[int | None]) -> int | None:
    """Return a sum; none where this time one is not told, for it would be less than before."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def pauses_of_ports(if_text: str, names_text: str, text: str, platform: str, wanted: tuple[str, ...]) -> Facts:
    """Return what IEEE8021-PFC-MIB counts: pauses of all priorities together."""
    rows, by_index = table(text), named(platform, if_text, names_text, wanted)
    found = (
        (name, port, number(rows, column, (index,)))
        for name, column in (("port_tx_pause", 2), ("port_rx_pause", 3))
        for index, port in by_index.items()
    )
    return _counters(found, "ieee8021PfcTable")


def cumulus(if_text: str, names_text: str, *texts: str, wanted: tuple[str, ...]) -> Facts:
    """Return what Cumulus counts beside: lost frames, pauses by priority, link changes, and classes."""
    discards, pauses, changes, classes = (table(text) for text in texts)
    by_index = named("nvue", if_text, names_text, wanted)
    found = (
        *_cumulus_ports(discards, changes, by_index),
        *_cumulus_pauses(pauses, by_index),
        *_numbered(
            classes, by_index, {"queue_tx_packets": 3, "queue_tx_bytes": 4, "queue_drops": 5, "queue_ecn_marked": 7}
        ),
    )
    return _counters(found, "CUMULUS-COUNTERS-MIB")


def _cumulus_ports(discards: Table, changes: Table, by_index: Named) -> Iterator[tuple[str, str, int | None]]:
    for index, port in by_index.items():
        yield "port_buffer_drops", port, number(discards, 3, (index,))
        yield "link_downs", port, number(changes, 3, (index,))
        yield "carrier_changes", port, number(changes, 4, (index,))


def _cumulus_pauses(pauses: Table, by_index: Named) -> Iterator[tuple[str, str, int | None]]:
    """Yield pauses, whose columns alternate: received and sent on priority 0, then on 1, and so on."""
    for index, port in by_index.items():
        for priority in range(LAST_PRIORITY + 1):
            column = FIRST_CUMULUS_PFC + 2 * priority
            yield "rx_pause", place(port, priority), number(pauses, column, (index,))
            yield "tx_pause", place(port, priority), number(pauses, column + 1, (index,))


def sonic(if_text: str, names_text: str, pfc: str, queues: str, wanted: tuple[str, ...]) -> Facts:
    """Return what SONiC counts beside: pauses by priority, and its queues, which SNMP counts from 1."""
    by_index = named("sonic", if_text, names_text, wanted)
    found = (
        *_numbered(table(pfc), by_index, {"tx_pause": 2, "rx_pause": 3}),
        *_sonic_queues(table(queues).get(4, {}), by_index),
    )
    return _counters(found, "the MIBs of Cisco that SONiC has")


def _sonic_queues(rows: Mapping[Oid, object], by_index: Named) -> Iterator[tuple[str, str, int | None]]:
    """Yield counts of queues, whose index is port, direction, queue, and what is counted."""
    statistics = {1: "queue_tx_packets", 2: "queue_tx_bytes", 5: "queue_drops"}
    for at, count in rows.items():
        port = by_index.get(at[0])
        if len(at) != 4 or at[1] != EGRESS or port is None or at[3] not in statistics:
            continue
        if 1 <= at[2] <= LAST_PRIORITY + 1 and isinstance(count, int):
            yield statistics[at[3]], place(port, at[2] - 1), count


def eos(if_text: str, names_text: str, *texts: str, wanted: tuple[str, ...]) -> Facts:
    """Return what EOS counts beside: queues, pauses by priority, storms the watchdog saw, and ECN marks."""
    queues, pauses, storms, marks = (table(text) for text in texts)
    by_index = named("eos", if_text, names_text, wanted)
    found = (
        *_numbered(_unicast(queues, 2), by_index, {"queue_tx_packets": 4, "queue_tx_bytes": 5, "queue_drops": 6}),
        *_numbered(pauses, by_index, {"tx_pause": 3, "rx_pause": 4}),
        *_numbered(_unicast(storms, 1), by_index, {"watchdog_detected": 4, "watchdog_restored": 5}),
        *_numbered(marks, by_index, {"queue_ecn_marked": 4}),
    )
    return _counters(found, "the MIBs of Arista")


def _unicast(rows: Table, at: int) -> Table:
    """Return a table by port and queue, of which a third part of the index, at some place, says unicast."""
    return {
        column: {index[:at] + index[at + 1 :]: value for index, value in values.items() if _is_unicast(index, at)}
        for column, values in rows.items()
    }


def _is_unicast(index: Oid, at: int) -> bool:
    return len(index) == 3 and index[at] == UNICAST


def _numbered(rows: Table, by_index: Named, columns: Mapping[str, int]) -> Iterator[tuple[str, str, int | None]]:
    """Yield counts of a table whose index is port, and priority or queue."""
    for name, column in columns.items():
        for at in rows.get(column, {}):
            port = by_index.get(at[0]) if len(at) == 2 and at[1] <= LAST_PRIORITY else None
            if port is not None:
                yield name, place(port, at[1]), number(rows, column, at)


def _counters(found: Found, source: str) -> Facts:
    """Return what was found as counters. A count below zero is none."""
    counters: dict[str, dict[str, int]] = {}
    for name, at, count in found:
        if count is not None and count >= 0:
            counters.setdefault(name, {})[at] = count
    told: Counters | Absent = counters or Absent(f"the agent has no counters in {source}")
    return Facts(counters=told)

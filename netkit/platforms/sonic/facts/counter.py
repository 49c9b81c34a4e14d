"""Counters under their SAI names, from COUNTERS_DB, which maps names to objects, and objects to counts."""

from collections.abc import Iterator, Mapping, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.platforms.sonic.facts.dump import Database, Row, database, unread, whole, without
from netkit.platforms.sonic.facts.port import flaps

PORTS, QUEUES, GROUPS = (f"COUNTERS_{kind}_NAME_MAP" for kind in ("PORT", "QUEUE", "PG"))
PRIORITIES = range(8)
BINS = range(16)
PORT, QUEUE, GROUP = "SAI_PORT_STAT_", "SAI_QUEUE_STAT_", "SAI_INGRESS_PRIORITY_GROUP_STAT_"
WATCHDOG = "PFC_WD_QUEUE_STATS_"
Sums = Mapping[str, Sequence[str]]
"""Counter → the fields to add up; missing ones are skipped."""
OF_PORT: Sums = {
    "rx_bytes": (f"{PORT}IF_IN_OCTETS",),
    "tx_bytes": (f"{PORT}IF_OUT_OCTETS",),
    "rx_packets": (f"{PORT}IF_IN_UCAST_PKTS", f"{PORT}IF_IN_NON_UCAST_PKTS"),
    "tx_packets": (f"{PORT}IF_OUT_UCAST_PKTS", f"{PORT}IF_OUT_NON_UCAST_PKTS"),
    "rx_errors": (f"{PORT}IF_IN_ERRORS",),
    "tx_errors": (f"{PORT}IF_OUT_ERRORS",),
    "rx_drops": (f"{PORT}IF_IN_DISCARDS",),
    "tx_drops": (f"{PORT}IF_OUT_DISCARDS",),
    "ecn_marked": (f"{PORT}ECN_MARKED_PACKETS",),
    "fec_corrected": (f"{PORT}IF_IN_FEC_CORRECTABLE_FRAMES",),
    "fec_uncorrectable": (f"{PORT}IF_IN_FEC_NOT_CORRECTABLE_FRAMES",),
    "fec_symbol_errors": (f"{PORT}IF_IN_FEC_SYMBOL_ERRORS",),
    "corrected_bits": (f"{PORT}IF_IN_FEC_CORRECTED_BITS",),
}
OF_PRIORITY: Mapping[str, str] = {
    "rx_pause": f"{PORT}PFC_{{}}_RX_PKTS",
    "tx_pause": f"{PORT}PFC_{{}}_TX_PKTS",
    "rx_pause_us": f"{PORT}PFC_{{}}_RX_PAUSE_DURATION_US",
    "tx_pause_us": f"{PORT}PFC_{{}}_TX_PAUSE_DURATION_US",
}
"""Durations only exist if the chip has them, and the watchdog or a poll reads them."""
OF_BIN = f"{PORT}IF_IN_FEC_CODEWORD_ERRORS_S{{}}"
OF_QUEUE: Sums = {
    "queue_tx_packets": (f"{QUEUE}PACKETS",),
    "queue_tx_bytes": (f"{QUEUE}BYTES",),
    "queue_drops": (f"{QUEUE}DROPPED_PACKETS",),
    "queue_ecn_marked": (f"{QUEUE}WRED_ECN_MARKED_PACKETS",),
    "watchdog_detected": (f"{WATCHDOG}DEADLOCK_DETECTED",),
    "watchdog_restored": (f"{WATCHDOG}DEADLOCK_RESTORED",),
    "watchdog_drops": (f"{WATCHDOG}TX_DROPPED_PACKETS", f"{WATCHDOG}RX_DROPPED_PACKETS"),
}
OF_GROUP: Sums = {"buffer_drops": (f"{GROUP}DROPPED_PACKETS",)}
Found = Iterator[tuple[str, str, int]]
"""Counter, place, count."""


def counters(counts: str, appl: str, wanted: Sequence[str]) -> Facts:
    """Parse the counters of the wanted ports, of all ports if none is given."""
    found = database(counts)
    if found is None:
        return Facts(counters=unread("COUNTERS_DB"))
    tables: dict[str, dict[str, int]] = {}
    for name, at, count in _counters(found, frozenset(wanted)):
        tables.setdefault(name, {})[at] = count
    if not tables:
        return Facts(counters=without("COUNTERS_DB", PORTS))
    changes = {port: count for port, count in flaps(database(appl) or Database({})).items() if _is_in(port, wanted)}
    return Facts(counters={**tables, "carrier_changes": changes} if changes else tables)


def objects(found: Database, kind: str, wanted: Sequence[str] | frozenset[str]) -> Iterator[tuple[str, int, str]]:
    """Yield port, number and object ID of each queue or priority group of the wanted ports."""
    for name, oid in found.row(kind).items():
        port, _, number = name.rpartition(":")
        index = whole(number)
        if index is not None and index in PRIORITIES and _is_in(port, wanted):
            yield port, index, oid


def ports(found: Database, wanted: Sequence[str] | frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield name and object ID of each wanted port."""
    yield from ((port, oid) for port, oid in found.row(PORTS).items() if _is_in(port, wanted))


def read(text: str) -> Database | Absent:
    found = database(text)
    if found is None:
        return unread("COUNTERS_DB")
    return found if found.row(PORTS) else without("COUNTERS_DB", PORTS)


def _is_in(port: str, wanted: Sequence[str] | frozenset[str]) -> bool:
    return not wanted or port in wanted


def _counters(found: Database, wanted: frozenset[str]) -> Found:
    for port, oid in ports(found, wanted):
        row = found.row(f"COUNTERS:{oid}")
        yield from _sums(row, OF_PORT, port)
        for name, field in OF_PRIORITY.items():
            yield from _indexed(name, port, ((index, row.get(field.format(index))) for index in PRIORITIES))
        yield from _indexed("fec_bin", port, ((index, row.get(OF_BIN.format(index))) for index in BINS))
    for kind, sums in ((QUEUES, OF_QUEUE), (GROUPS, OF_GROUP)):
        for port, number, oid in objects(found, kind, wanted):
            yield from _sums(found.row(f"COUNTERS:{oid}"), sums, place(port, number))


def _sums(row: Row, sums: Sums, at: str) -> Found:
    for name, fields in sums.items():
        counts = [count for field in fields if (count := whole(row.get(field))) is not None]
        if counts:
            yield name, at, sum(counts)


def _indexed(name: str, port: str, fields: Iterator[tuple[int, str | None]]) -> Found:
    for index, text in fields:
        count = whole(text)
        if count is not None:
            yield name, place(port, index), count

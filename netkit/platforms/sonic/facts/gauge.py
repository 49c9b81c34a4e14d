"""What COUNTERS_DB holds beside counts: bit error rates, watchdogs, and how full queues were."""

from collections.abc import Iterator, Mapping, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.optic import Line
from netkit.facts.qos import Buffer, Watchdog
from netkit.platforms.sonic.facts.counter import GROUP, GROUPS, QUEUE, QUEUES, objects, ports, read
from netkit.platforms.sonic.facts.dump import Database, Row, database, number, whole, without, word

US_PER_MS = 1000
STORMED = "stormed"


def lines(counts: str, state: str, wanted: Sequence[str]) -> Facts:
    """Return how well bits arrive; a release without rates still tells which FEC runs."""
    found, running = read(counts), database(state) or Database({})
    if isinstance(found, Absent):
        return Facts(lines=found)
    return Facts(lines={port: _line(found.row(f"RATES:{oid}"), running, port) for port, oid in ports(found, wanted)})


def _line(rates: Row, running: Database, port: str) -> Line:
    fec = word(running.row(f"PORT_TABLE|{port}").get("fec"))
    return Line(fec=fec, ber=_rate(rates.get("FEC_PRE_BER")), effective_ber=_rate(rates.get("FEC_POST_BER")))


def _rate(text: str | None) -> float | None:
    """Return a share of bits; before the first two polls it is no number from 0 to 1."""
    rate = number(text)
    return rate if rate is not None and 0 <= rate <= 1 else None


def watchdogs(counts: str, wanted: Sequence[str], lossless: Sequence[int]) -> Facts:
    """Return the watchdogs that run. Where one should and orchagent has none, there is one that is off."""
    found = read(counts)
    if isinstance(found, Absent):
        return Facts(watchdogs=found)
    known = {place(port, queue): found.row(f"COUNTERS:{oid}") for port, queue, oid in objects(found, QUEUES, wanted)}
    if not known:
        return Facts(watchdogs=without("COUNTERS_DB", QUEUES))
    running = {at: _watchdog(row) for at, row in known.items() if "PFC_WD_STATUS" in row}
    expected = [place(port, priority) for port in wanted for priority in lossless]
    return Facts(watchdogs={**{at: Watchdog(is_on=False) for at in expected if at in known}, **running})


def _watchdog(row: Row) -> Watchdog:
    return Watchdog(
        is_on=True,
        is_stormed=row["PFC_WD_STATUS"] == STORMED,
        detection_ms=_milliseconds(row.get("PFC_WD_DETECTION_TIME")),
        restoration_ms=_milliseconds(row.get("PFC_WD_RESTORATION_TIME")),
        action=word(row.get("PFC_WD_ACTION")),
    )


def _milliseconds(text: str | None) -> int | None:
    time_us = whole(text)
    return None if time_us is None else time_us // US_PER_MS


def buffers(counts: str, wanted: Sequence[str]) -> Facts:
    """Return how full queues are and were since somebody cleared the watermarks, and the headroom before them."""
    found = read(counts)
    if isinstance(found, Absent):
        return Facts(buffers=found)
    told = dict(_buffers(found, wanted))
    return Facts(buffers=told or without("COUNTERS_DB", "USER_WATERMARKS"))


def _buffers(found: Database, wanted: Sequence[str]) -> Iterator[tuple[str, Buffer]]:
    groups = {place(port, group): oid for port, group, oid in objects(found, GROUPS, wanted)}
    for port, queue, oid in objects(found, QUEUES, wanted):
        at = place(port, queue)
        peaks, headroom = found.row(f"USER_WATERMARKS:{oid}"), found.row(f"USER_WATERMARKS:{groups.get(at, '')}")
        buffer = Buffer(
            used_bytes=_bytes(found.row(f"COUNTERS:{oid}"), f"{QUEUE}CURR_OCCUPANCY_BYTES"),
            peak_bytes=_bytes(peaks, f"{QUEUE}SHARED_WATERMARK_BYTES"),
            headroom_peak_bytes=_bytes(headroom, f"{GROUP}XOFF_ROOM_WATERMARK_BYTES"),
        )
        if buffer != Buffer():
            yield at, buffer


def _bytes(row: Mapping[str, str], field: str) -> int | None:
    return whole(row.get(field))

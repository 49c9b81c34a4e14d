"""QoS as orchagent was told it, and the buffers that were made of it: CONFIG_DB, and APPL_DB for what is computed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.optic import Line
from netkit.facts.qos import Buffer, Ecn, PortQos, Watchdog
from netkit.platforms.sonic.facts.counter import GROUP, GROUPS, QUEUE, QUEUES, objects, ports, read
from netkit.platforms.sonic.facts.dump import Database, Row, database, number, unread, whole, without, word
from netkit.platforms.sonic.facts.port import adaptive_routing

PRIORITIES = range(8)
SPAN = re.compile(r"(\d{1,2})(?:-(\d{1,2}))?", re.ASCII)
GREEN = frozenset({"ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all"})
"""Without policers all packets are green."""
WEIGHTED = frozenset({"DWRR", "WRR"})
EVERYWHERE = "PORT_QOS_MAP|global"


@dataclass(frozen=True, slots=True)
class SonicQosTables:
    """What was configured, and what buffers came of it."""

    config: Database
    made: Database

    def port(self, name: str) -> Row:
        """Return the maps a port is bound to."""
        return self.config.row(f"PORT_QOS_MAP|{name}")

    def map(self, table: str, name: str) -> Mapping[int, int] | None:
        """Return a map by name; nothing when there is none."""
        row = self.config.rows.get(f"{table}|{_plain(name)}")
        pairs = ((whole(key), whole(value)) for key, value in (row or {}).items())
        found = {key: value for key, value in pairs if key is not None and value is not None}
        return found or None


def qos(config: str, appl: str, wanted: Sequence[str]) -> Facts:
    """Return how each port treats traffic."""
    found = database(config)
    if found is None:
        return Facts(qos=unread("CONFIG_DB"), adaptive_routing=adaptive_routing())
    told = SonicQosTables(found, database(appl) or Database({}))
    names = [name for name in found.table("PORT|") if not wanted or name in wanted]
    return Facts(
        qos={name: _port(told, name) for name in names} or without("CONFIG_DB", "PORT"),
        adaptive_routing=adaptive_routing(),
    )


def _port(told: SonicQosTables, name: str) -> PortQos:
    row = told.port(name)
    dscp = row.get("dscp_to_tc_map") or told.config.row(EVERYWHERE).get("dscp_to_tc_map", "")
    paused = _paused(row)
    queues = dict(_queues(told, name))
    rooms = {priority: _headroom(told, name, row, priority) for priority in sorted(paused or ())}
    headroom = {priority: room for priority, room in rooms.items() if room is not None}
    return PortQos(
        trust="dscp" if dscp else "pcp" if row.get("dot1p_to_tc_map") else "none",
        dscp_to_priority=told.map("DSCP_TO_TC_MAP", dscp),
        pfc_rx=frozenset(PRIORITIES) if told.config.row(f"PORT|{name}").get("pfc_asym") == "on" else paused,
        pfc_tx=paused,
        weights=_weights(told, queues),
        strict=frozenset(queue for queue, row in queues.items() if _scheduler(told, row).get("type") == "STRICT"),
        priority_to_class=told.map("TC_TO_QUEUE_MAP", row.get("tc_to_queue_map", "")),
        ecn={queue: ecn for queue, row in queues.items() if (ecn := _ecn(told, row)) is not None},
        headroom_bytes=headroom or None,
        xoff_bytes=headroom or None,
        cable_m=_cable_m(told, name),
    )


def _paused(row: Row) -> frozenset[int]:
    """Return the priorities that are lossless; a port without any pauses none."""
    numbers = (whole(text) for text in row.get("pfc_enable", "").split(","))
    return frozenset(priority for priority in numbers if priority is not None and priority in PRIORITIES)


def _queues(told: SonicQosTables, port: str) -> Iterator[tuple[int, Row]]:
    """Yield the queues of a port that have a row; one row may stand for several of each."""
    for key, row in told.config.table("QUEUE|").items():
        names, _, span = key.partition("|")
        if port in names.split(","):
            yield from ((queue, row) for queue in _span(span))


def _span(text: str) -> Iterator[int]:
    found = SPAN.fullmatch(text)
    if found:
        yield from range(int(found[1]), int(found[2] or found[1]) + 1)


def _scheduler(told: SonicQosTables, queue: Row) -> Row:
    return told.config.row(f"SCHEDULER|{_plain(queue.get('scheduler', ''))}")


def _weights(told: SonicQosTables, queues: Mapping[int, Row]) -> Mapping[int, int]:
    """Return the part of each queue, of what the strict ones leave."""
    rows = {queue: _scheduler(told, row) for queue, row in queues.items()}
    weights = {queue: whole(row.get("weight", "1")) or 0 for queue, row in rows.items() if row.get("type") in WEIGHTED}
    total = sum(weights.values())
    return {queue: round(100 * weight / total) for queue, weight in weights.items()} if total else {}


def _ecn(told: SonicQosTables, queue: Row) -> Ecn | None:
    name = _plain(queue.get("wred_profile", ""))
    row = told.config.row(f"WRED_PROFILE|{name}")
    if not row:
        return None
    return Ecn(
        is_on=row.get("ecn") in GREEN,
        min_bytes=whole(row.get("green_min_threshold")),
        max_bytes=whole(row.get("green_max_threshold")),
        probability_percent=number(row.get("green_drop_probability")),
    )


def _headroom(told: SonicQosTables, port: str, bound: Row, priority: int) -> int | None:
    """Return the room behind the pause threshold: what runs, and where that is not told, what was configured."""
    groups = told.map("TC_TO_PRIORITY_GROUP_MAP", bound.get("tc_to_pg_map", "")) or {}
    group = groups.get(priority, priority)
    for found, kind, divider in ((told.made, "_TABLE:", ":"), (told.config, "|", "|")):
        profile = _profile(found.table(f"BUFFER_PG{kind}"), port, group, divider)
        room = whole(found.row(f"BUFFER_PROFILE{kind}{profile}").get("xoff"))
        if room is not None:
            return room
    return None


def _profile(groups: Mapping[str, Row], port: str, group: int, divider: str) -> str:
    for key, row in groups.items():
        names, _, span = key.rpartition(divider)
        if port in names.split(",") and group in _span(span):
            return _plain(row.get("profile", ""))
    return ""


def _plain(name: str) -> str:
    """Return a name; before 202012 a reference was written `[TABLE|name]`."""
    return re.split(r"[|:]", name.strip("[]"))[-1]


def _cable_m(told: SonicQosTables, port: str) -> float | None:
    for row in told.config.table("CABLE_LENGTH|").values():
        if port in row:
            return number(word(row[port]).removesuffix("m"))
    return None


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

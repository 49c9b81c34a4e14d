"""QoS from CONFIG_DB, computed buffers from APPL_DB, and error rates, watchdogs and watermarks from COUNTERS_DB."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.optic import Line
from netkit.facts.qos import Buffer, Ecn, PortQos, Watchdog
from netkit.platforms.sonic.facts.port import (
    GROUP,
    GROUPS,
    QUEUE,
    QUEUES,
    Database,
    Row,
    adaptive_routing,
    database,
    number,
    objects,
    ports,
    read,
    unread,
    whole,
    without,
    word,
)

PRIORITIES = range(8)
SPAN = re.compile(r"(\d{1,2})(?:-(\d{1,2}))?", re.ASCII)
GREEN = frozenset({"ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all"})
"""Without policers all packets are green."""
WEIGHTED = frozenset({"DWRR", "WRR"})
EVERYWHERE = "PORT_QOS_MAP|global"


@dataclass(frozen=True, slots=True)
class SonicQosTables:
    """The QoS configuration, and the buffers that SONiC made from it."""

    config: Database
    made: Database

    def port(self, name: str) -> Row:
        """The row that binds a port to its maps."""
        return self.config.row(f"PORT_QOS_MAP|{name}")

    def map(self, table: str, name: str) -> Mapping[int, int] | None:
        """Parse a map by name; None if it is missing."""
        row = self.config.rows.get(f"{table}|{_plain(name)}")
        pairs = ((whole(key), whole(value)) for key, value in (row or {}).items())
        found = {key: value for key, value in pairs if key is not None and value is not None}
        return found or None


def qos(config: str, appl: str, wanted: Sequence[str]) -> Facts:
    found = database(config)
    if found is None:
        return Facts(qos=unread("CONFIG_DB"), adaptive_routing=adaptive_routing())
    tables = SonicQosTables(found, database(appl) or Database({}))
    names = [name for name in found.table("PORT|") if not wanted or name in wanted]
    return Facts(
        qos={name: _port(tables, name) for name in names} or without("CONFIG_DB", "PORT"),
        adaptive_routing=adaptive_routing(),
    )


def _port(tables: SonicQosTables, name: str) -> PortQos:
    row = tables.port(name)
    dscp = row.get("dscp_to_tc_map") or tables.config.row(EVERYWHERE).get("dscp_to_tc_map", "")
    trust = "pcp" if row.get("dot1p_to_tc_map") else "none"
    enabled = (whole(text) for text in row.get("pfc_enable", "").split(","))
    paused = frozenset(priority for priority in enabled if priority is not None and priority in PRIORITIES)
    queues: dict[int, Row] = {}
    for key, queue_row in tables.config.table("QUEUE|").items():
        names, _, span = key.partition("|")  # a row may be for several ports and queues
        if name in names.split(","):
            queues.update(dict.fromkeys(_span(span), queue_row))
    cables = [cable[name] for cable in tables.config.table("CABLE_LENGTH|").values() if name in cable]
    headroom = {priority: _headroom(tables, name, row, priority) for priority in sorted(paused)}
    headroom_bytes = {priority: room for priority, room in headroom.items() if room is not None} or None
    return PortQos(
        trust="dscp" if dscp else trust,
        dscp_to_priority=tables.map("DSCP_TO_TC_MAP", dscp),
        pfc_rx=frozenset(PRIORITIES) if tables.config.row(f"PORT|{name}").get("pfc_asym") == "on" else paused,
        pfc_tx=paused,
        weights=_weights(tables, queues),
        strict=frozenset(queue for queue, row in queues.items() if _scheduler(tables, row).get("type") == "STRICT"),
        priority_to_class=tables.map("TC_TO_QUEUE_MAP", row.get("tc_to_queue_map", "")),
        ecn={queue: ecn for queue, row in queues.items() if (ecn := _ecn(tables, row)) is not None},
        headroom_bytes=headroom_bytes,
        xoff_bytes=headroom_bytes,
        cable_m=number(word(cables[0]).removesuffix("m")) if cables else None,
    )


def _span(text: str) -> Iterator[int]:
    found = SPAN.fullmatch(text)
    if found:
        yield from range(int(found[1]), int(found[2] or found[1]) + 1)


def _scheduler(tables: SonicQosTables, queue: Row) -> Row:
    return tables.config.row(f"SCHEDULER|{_plain(queue.get('scheduler', ''))}")


def _weights(tables: SonicQosTables, queues: Mapping[int, Row]) -> Mapping[int, int]:
    """The share of each weighted queue in percent, of what the strict ones leave."""
    rows = {queue: _scheduler(tables, row) for queue, row in queues.items()}
    weights = {queue: whole(row.get("weight", "1")) or 0 for queue, row in rows.items() if row.get("type") in WEIGHTED}
    total = sum(weights.values())
    return {queue: round(100 * weight / total) for queue, weight in weights.items()} if total else {}


def _ecn(tables: SonicQosTables, queue: Row) -> Ecn | None:
    name = _plain(queue.get("wred_profile", ""))
    row = tables.config.row(f"WRED_PROFILE|{name}")
    if not row:
        return None
    return Ecn(
        is_on=row.get("ecn") in GREEN,
        min_bytes=whole(row.get("green_min_threshold")),
        max_bytes=whole(row.get("green_max_threshold")),
        probability_percent=number(row.get("green_drop_probability")),
    )


def _headroom(tables: SonicQosTables, port: str, bound: Row, priority: int) -> int | None:
    """The bytes above the xoff threshold: the running value, else the configured one."""
    groups = tables.map("TC_TO_PRIORITY_GROUP_MAP", bound.get("tc_to_pg_map", "")) or {}
    group = groups.get(priority, priority)
    for found, prefix, divider in ((tables.made, "_TABLE:", ":"), (tables.config, "|", "|")):
        for key, row in found.table(f"BUFFER_PG{prefix}").items():
            names, _, span = key.rpartition(divider)
            if port in names.split(",") and group in _span(span):
                profile = found.row(f"BUFFER_PROFILE{prefix}{_plain(row.get('profile', ''))}")
                room = whole(profile.get("xoff"))
                if room is not None:
                    return room
                break
    return None


def _plain(name: str) -> str:
    """Strip a reference to its name: before 202012 it was written `[TABLE|name]`."""
    return re.split(r"[|:]", name.strip("[]"))[-1]


US_PER_MS = 1000
STORMED = "stormed"


def lines(counts: str, state: str, wanted: Sequence[str]) -> Facts:
    """Parse bit error rates and FEC; a release without rates still shows FEC."""
    found, running = read(counts), database(state) or Database({})
    if isinstance(found, Absent):
        return Facts(lines=found)
    shown = {}
    for port, oid in ports(found, wanted):
        fec, rates = word(running.row(f"PORT_TABLE|{port}").get("fec")), found.row(f"RATES:{oid}")
        shown[port] = Line(fec=fec, ber=_rate(rates.get("FEC_PRE_BER")), effective_ber=_rate(rates.get("FEC_POST_BER")))
    return Facts(lines=shown)


def _rate(text: str | None) -> float | None:
    """Parse a bit error rate; before the first two polls it is not a number from 0 to 1."""
    rate = number(text)
    return rate if rate is not None and 0 <= rate <= 1 else None


def watchdogs(counts: str, wanted: Sequence[str], lossless: Sequence[int]) -> Facts:
    """Parse the watchdogs; an expected one that orchagent does not run counts as off."""
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
    """Parse queue occupancy, and the watermarks of queues and headroom since they were last cleared."""
    found = read(counts)
    if isinstance(found, Absent):
        return Facts(buffers=found)
    return Facts(buffers=dict(_buffers(found, wanted)) or without("COUNTERS_DB", "USER_WATERMARKS"))


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

"""Ports, LLDP neighbours and counters, from `sonic-db-dump`: a database as JSON, key → {type, value}.

Values are texts, and may be `N/A`. APPL_DB has what is configured and the state, STATE_DB what the chip runs.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from netkit.facts import Absent, Facts
from netkit.facts.counter import place
from netkit.facts.device import Interface, Neighbor, System
from netkit.platforms import outage
from netkit.platforms.json_access import RECENT, parsed, printable
from netkit.platforms.outage import in_words
from netkit.platforms.sonic.reply import fields, version_in

Row = Mapping[str, str]
START = re.compile(r"^[ \t]*[{\[]", re.MULTILINE)
WHOLE = re.compile(r"\d{1,20}", re.ASCII)
NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?([eE][-+]?\d{1,3})?", re.ASCII)
NO_LIGHT_DBM = -40.0
MOST_TRIES = 20
"""Limit on lines that look like the start of JSON: warnings, and the lines of truncated JSON."""
DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Database:
    """Rows of a database, by key."""

    rows: Mapping[str, Row]

    def row(self, key: str) -> Row:
        """A row, empty if it is missing."""
        return self.rows.get(key, {})

    def table(self, prefix: str) -> dict[str, Row]:
        """The rows with a prefix, by the rest of their keys."""
        return {key[len(prefix) :]: row for key, row in self.rows.items() if key.startswith(prefix)}


@lru_cache(maxsize=RECENT)
def database(text: str) -> Database | None:
    """Parse a dump; None if it is incomplete."""
    found = value(text)
    if not isinstance(found, dict):
        return None
    rows: dict[str, Row] = {}
    for key, entry in found.items():
        if isinstance(entry, dict):
            fields = entry.get("value")
            fields = fields if isinstance(fields, dict) else {}
            rows[key] = {name: text for name, text in fields.items() if isinstance(text, str)}
    return Database(rows)


def value(text: str) -> object:
    """Find the first JSON document in a text, ignoring warnings around it; None if there is none."""
    whole_text = parsed(text) if text.startswith("{") else None
    return next(values(text), None) if whole_text is None else whole_text


def values(text: str) -> Iterator[object]:
    """Yield each JSON object or list that begins a line."""
    end, tries = 0, 0
    for start in START.finditer(text):
        if start.start() < end:
            continue
        try:
            found, end = DECODER.raw_decode(text, start.end() - 1)
        except (ValueError, RecursionError):
            tries += 1
            if tries == MOST_TRIES:
                return
        else:
            yield printable(found, text)


def whole(text: str | None) -> int | None:
    return int(text) if text is not None and WHOLE.fullmatch(text.strip()) else None


def number(text: str | None) -> float | None:
    """Parse a reading, ignoring its unit."""
    found = NUMBER.match((text or "").strip())
    number = float(found[0]) if found else None
    return number if number is None or math.isfinite(number) else None


def dbm(text: str | None) -> float | None:
    """Parse optical power; -inf without a signal."""
    return NO_LIGHT_DBM if (text or "").strip().startswith("-inf") else number(text)


def word(text: str | None) -> str:
    """A text; empty for `N/A` and the like."""
    stripped = (text or "").strip()
    return "" if stripped in {"N/A", "None", "NULL"} else stripped


def flag(text: str | None) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get((text or "").strip().lower())


def unread(name: str) -> Absent:
    return Absent(f"{name} cannot be read: the output is not a dump of it")


def without(name: str, table: str) -> Absent:
    return Absent(f"{name} has no {table}")


IDENTITY = (
    "echo hostname: $(hostname); echo kernel: $(uname -r); echo boot: $(cat /proc/sys/kernel/random/boot_id); "
    "echo uptime: $(cat /proc/uptime); echo now: $(date -u '+%a %b %d %H:%M:%S %Y'); "
    "cat /etc/sonic/sonic_version.yml 2>/dev/null || show version"
)
LINE = re.compile(r"^(hostname|kernel|boot|uptime): (\S+)", re.MULTILINE)
NOW = re.compile(r"^now: (.+)", re.MULTILINE)


def now_s(identity: str) -> float | None:
    """Parse the clock of the switch, in UTC like the timestamps of its databases."""
    found = NOW.search(identity)
    return in_words(found[1]) if found else None


def system(identity: str, config: str, state: str) -> Facts:
    identity_lines = dict(LINE.findall(identity))
    shown = fields(identity)
    metadata = (database(config) or Database({})).row("DEVICE_METADATA|localhost")
    chassis = (database(state) or Database({})).row("CHASSIS_INFO|chassis 1")
    found = System(
        hostname=identity_lines.get("hostname") or word(metadata.get("hostname")),
        version=version_in(identity),
        model=word(chassis.get("model")) or shown.get("Model Number", "") or word(metadata.get("hwsku")),
        serial=word(chassis.get("serial")) or shown.get("Serial Number", ""),
        uptime_s=number(identity_lines.get("uptime")),
        boot=identity_lines.get("boot", ""),
        kernel=identity_lines.get("kernel", ""),
    )
    return Facts(system=Absent("the switch shows neither a name nor a release") if found == System() else found)


PORTS, STATES, NEIGHBORS = "PORT_TABLE:", "PORT_TABLE|", "LLDP_ENTRY_TABLE:"
NOT_PORTS = ("PortInitDone", "PortConfigDone")
"""Rows about the progress of orchagent."""
SWITCHED = {"up": True, "down": False}
MBPS_PER_GBPS = 1000


def interfaces(appl: str, state: str, config: str, identity: str) -> Facts:
    """Parse the ports; APPL_DB alone is enough, the other sources add to it."""
    configured, running = database(appl), database(state) or Database({})
    if configured is None:
        return Facts(interfaces=unread("APPL_DB"))
    mac = word((database(config) or Database({})).row("DEVICE_METADATA|localhost").get("mac"))
    found = {
        name: _interface(row, running.row(f"{STATES}{name}"), mac)
        for name, row in configured.table(PORTS).items()
        if name not in NOT_PORTS
    }
    outages = dict(_outages(configured, now_s(identity)))
    return Facts(interfaces=outage.with_outages(found or without("APPL_DB", "PORT_TABLE"), outages))


def _outages(appl: Database, now: float | None) -> Iterator[tuple[str, outage.LinkOutage]]:
    """Yield the last outage of each port, from portsorch's UTC timestamps of the last down and up."""
    for name, row in appl.table(PORTS).items():
        down, up = row.get("last_down_time", ""), row.get("last_up_time", "")
        found = outage.outage(outage.in_words(down), outage.in_words(up), now)
        if found is not None:
            yield name, found
        elif up and not down:
            yield name, outage.NEVER


def _interface(row: Row, state: Row, mac: str) -> Interface:
    speed = number(state.get("speed")) or number(row.get("speed"))
    return Interface(
        is_up=SWITCHED.get(row.get("oper_status", state.get("netdev_oper_status", ""))),
        is_enabled=SWITCHED.get(row.get("admin_status", "")),
        speed_gbps=speed / MBPS_PER_GBPS if speed else None,
        mtu_bytes=whole(row.get("mtu")),
        fec=word(state.get("fec")) or word(row.get("fec")),
        mac=mac.lower(),
        description=word(row.get("description")),
        alias=word(row.get("alias")),
    )


def neighbors(appl: str) -> Facts:
    """Parse LLDP neighbours. Having none is a valid result, although it looks the same if LLDP does not run."""
    found = database(appl)
    if found is None:
        return Facts(neighbors=unread("APPL_DB"))
    fields = ("lldp_rem_sys_name", "lldp_rem_port_id", "lldp_rem_port_desc")
    neighbors = {}
    for name, row in found.table(NEIGHBORS).items():
        system, port, description = (word(row.get(field)) for field in fields)
        neighbors[name] = (Neighbor(system, port, description),)
    return Facts(neighbors=neighbors)


def flaps(appl: Database) -> dict[str, int]:
    """How often each port went up or down; SONiC counts both, and has no field before the first."""
    counts = {name: whole(row.get("flap_count")) for name, row in appl.table(PORTS).items()}
    return {name: count for name, count in counts.items() if count is not None}


def adaptive_routing() -> Absent:
    return Absent("community SONiC has no adaptive routing")


COUNTER_PORTS, QUEUES, GROUPS = (f"COUNTERS_{kind}_NAME_MAP" for kind in ("PORT", "QUEUE", "PG"))
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
        return Facts(counters=without("COUNTERS_DB", COUNTER_PORTS))
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
    yield from ((port, oid) for port, oid in found.row(COUNTER_PORTS).items() if _is_in(port, wanted))


def read(text: str) -> Database | Absent:
    found = database(text)
    if found is None:
        return unread("COUNTERS_DB")
    return found if found.row(COUNTER_PORTS) else without("COUNTERS_DB", COUNTER_PORTS)


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
        for port, index, oid in objects(found, kind, wanted):
            yield from _sums(found.row(f"COUNTERS:{oid}"), sums, place(port, index))


def _sums(row: Row, sums: Sums, at: str) -> Found:
    for name, parts in sums.items():
        counts = [count for part in parts if (count := whole(row.get(part))) is not None]
        if counts:
            yield name, at, sum(counts)


def _indexed(name: str, port: str, fields: Iterator[tuple[int, str | None]]) -> Found:
    for index, text in fields:
        count = whole(text)
        if count is not None:
            yield name, place(port, index), count

"""Retention, and the partitions by time on PostgreSQL; filters by place."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Table, delete, exists, func, select, text
from sqlalchemy.exc import DBAPIError

from netkit.judge import Verdict
from netkit.store import row, schema
from netkit.store.database import put, rows
from netkit.store.record import DAY_S, Retention, Source

LOCK = 0x6E65746B7074
"""The advisory lock of whoever makes partitions."""
WAIT = "500ms"
"""How long a drop waits for readers: less than PostgreSQL takes to look for a deadlock."""
BOUND = re.compile(r"FROM \('?(?P<low>[-\d.e+]+)'?\) TO \('?(?P<high>[-\d.e+]+)'?\)")
LOCK_NOT_AVAILABLE = "55P03"


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How a table is cut by time."""

    column: str
    unit_s: float
    """The unit of the column."""
    width: int
    """The length of a partition in this unit."""

    def bounds(self, at_s: float) -> tuple[int, int]:
        """The first value of the partition that holds a time, and the first after it."""
        low = int(at_s / self.unit_s // self.width) * self.width
        return low, low + self.width


WEEKLY = Partitioning("taken_s", 1.0, int(7 * DAY_S))
PARTITIONED: Mapping[str, Partitioning] = {
    "netkit_runs": WEEKLY,
    "netkit_judgements": WEEKLY,
    "netkit_findings": WEEKLY,
    "netkit_readings": Partitioning("day", DAY_S, 7),
    "netkit_readings_hourly": Partitioning("hour", 3600.0, 24),
}


def make(engine: Engine, taken_s: float) -> None:
    """Make the partitions for a time, for now, and for what comes next, where they are missing."""
    with engine.connect() as connection:
        wanted = _named(taken_s)
        missing = wanted.keys() - _existing(connection, wanted)
    if missing:
        with engine.begin() as connection:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
            for name in sorted(missing - _existing(connection, wanted)):
                attach(connection, *wanted[name])


def _named(taken_s: float) -> dict[str, tuple[str, float]]:
    """The partitions to make by name: the table and a time within."""
    found = {}
    for table, how in PARTITIONED.items():
        for at_s in (taken_s, time.time(), time.time() + how.width * how.unit_s):
            found[_name(table, at_s)] = (table, at_s)
    return found


def _name(table: str, at_s: float) -> str:
    how = PARTITIONED[table]
    return f"{table}_{time.strftime('%Y%m%d', time.gmtime(how.bounds(at_s)[0] * how.unit_s))}"


def _existing(connection: Connection, names: Iterable[str]) -> set[str]:
    query = text("SELECT relname FROM pg_class WHERE relispartition AND relname = ANY(:names)")
    return set(connection.scalars(query, {"names": list(names)}))


def attach(connection: Connection, table: str, at_s: float) -> None:
    """Make the partition of a table for a time; attaching it blocks neither readers nor writers."""
    name, (low, high) = _name(table, at_s), PARTITIONED[table].bounds(at_s)
    connection.execute(text(f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS)"))
    connection.execute(text(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({low}) TO ({high})"))


def drop(engine: Engine) -> tuple[str, ...]:
    """Drop the partitions that no fabric keeps; return their names. If the store is in use, a later run drops them."""
    with engine.connect() as connection:
        old = sorted(_expired(connection))
    if not old:
        return ()
    try:
        with engine.begin() as connection:
            connection.execute(text(f"SET LOCAL lock_timeout = '{WAIT}'"))
            if not connection.scalar(text(f"SELECT pg_try_advisory_xact_lock({schema.LOCK})")):
                return ()
            found = sorted(set(old) & set(_expired(connection)))
            for name in found:
                connection.execute(text(f"DROP TABLE {name}"))
            return tuple(found)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == LOCK_NOT_AVAILABLE:
            return ()
        raise


def _expired(connection: Connection) -> Iterator[str]:
    """Yield the partitions that end before the retention of every fabric that was checked within it."""
    table = schema.sources
    columns = [func.min(column).label(column.name) for column in table.c if column.name.endswith("_from_s")]
    is_live = table.c.held_until_s > time.time()
    kept = connection.execute(select(*columns).where(is_live)).mappings().one()
    query = text(
        "SELECT parent.relname, part.relname, pg_get_expr(part.relpartbound, part.oid) FROM pg_inherits"
        " JOIN pg_class parent ON parent.oid = inhparent JOIN pg_class part ON part.oid = inhrelid"
        " WHERE parent.relname = ANY(:tables) AND parent.relkind = 'p'"
    )
    for parent, name, bound in connection.execute(query, {"tables": list(PARTITIONED)}):
        from_s, found = kept[schema.KEPT[parent]], BOUND.search(bound)
        if from_s is not None and found and float(found["high"]) * PARTITIONED[parent].unit_s <= from_s:
            yield str(name)


@dataclass(frozen=True, slots=True)
class KeptFrom:
    """From when on the rows of a source are kept; earlier ones may still be stored, and count as dropped."""

    runs_s: float = 0.0
    findings_s: float = 0.0
    readings_s: float = 0.0
    hourly_s: float = 0.0


def kept_from(connection: Connection, source: Source) -> KeptFrom:
    """The time from which the rows of a source are kept."""
    found = rows(connection, select(schema.sources).where(schema.is_of(schema.sources, source)))
    return (
        KeptFrom(*(found[0][f"{one.name.removesuffix('_s')}_from_s"] for one in fields(KeptFrom)))
        if found
        else KeptFrom()
    )


def expire(connection: Connection, source: Source, keep: Retention, now_s: float) -> None:
    """Note what a source keeps from now on, and drop the rest; PostgreSQL drops whole partitions later."""
    kept = KeptFrom(
        now_s - keep.runs_s, now_s - min(keep.findings_s, keep.runs_s), now_s - keep.readings_s, now_s - DAY_S
    )
    times = {f"{one.name.removesuffix('_s')}_from_s": getattr(kept, one.name) for one in fields(kept)}
    saved_s = time.time()
    held = {"saved_s": saved_s, "held_until_s": saved_s + keep.longest_s}
    put(connection, schema.sources, [{**row.of_source(source), **held, **times}])
    if connection.dialect.name == "sqlite":
        _prune(connection, source, kept)
    _forget(connection, source, kept.runs_s)


def _prune(connection: Connection, source: Source, kept: KeptFrom) -> None:
    runs = schema.runs
    for table in (schema.findings, schema.judgements):
        old = select(runs.c.id).where(schema.is_of(runs, source), runs.c.taken_s < kept.findings_s)
        connection.execute(delete(table).where(table.c.run.in_(old)))
    connection.execute(delete(runs).where(schema.is_of(runs, source), runs.c.taken_s < kept.runs_s))
    for table, from_s in ((schema.readings, kept.readings_s), (schema.hourly, kept.hourly_s)):
        connection.execute(delete(table).where(schema.is_of(table, source), table.c.at_s < from_s))


def _forget(connection: Connection, source: Source, before_s: float) -> None:
    """Drop counters and states that were not seen for long, and states that passed long ago."""
    counters, states, notified = schema.counters, schema.states, schema.notified
    connection.execute(delete(counters).where(schema.is_of(counters, source), counters.c.at_s < before_s))
    passed_long_ago = (states.c.verdict == int(Verdict.PASS)) & (states.c.since_s < before_s)
    is_old = (states.c.seen_s < before_s) | passed_long_ago
    connection.execute(delete(states).where(schema.is_of(states, source), is_old))
    names = ("fabric", "lab", "site", "check_name", "device", "place")
    has_state = exists().where(*(notified.c[name] == states.c[name] for name in names))
    connection.execute(delete(notified).where(schema.is_of(notified, source), ~has_state))


T = TypeVar("T")
COLUMNS = {"device": "device", "check": "check_name", "place": "place"}
LIKE = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_", "*": "%", "?": "_"})


@dataclass(frozen=True, slots=True)
class PlaceFilter:
    """A name or a glob for each of three, empty for any; and a verdict, None for warnings and worse."""

    device: str = ""
    check: str = ""
    place: str = ""
    verdict: Verdict | None = None

    def conditions(self, connection: Connection, table: Table) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions on the names."""
        for name, column in COLUMNS.items():
            if pattern := getattr(self, name):
                if connection.dialect.name == "sqlite":  # its LIKE ignores case
                    yield table.c[column].op("GLOB")(pattern.replace("[", "[[]"))
                else:
                    yield table.c[column].like(pattern.translate(LIKE), escape="\\")


@dataclass(frozen=True, slots=True)
class StoredPage(Generic[T]):
    """A part of a list, and how long the list is."""

    items: tuple[T, ...]
    total: int

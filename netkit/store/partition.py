"""Partitions by time of the tables that grow, on PostgreSQL: made ahead, and dropped whole by retention."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from netkit.store import schema

DAY_S = 86_400.0
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
        """Return the first value of the partition that holds a time, and the first after it."""
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
    """Return the partitions to make by name: the table and a time within."""
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
    """Yield the partitions that end before what any fabric keeps; one not checked for so long keeps nothing."""
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

"""Drop what a source does not keep any longer."""

import time
from dataclasses import dataclass, fields

from sqlalchemy import Connection, delete, exists, select

from netkit.judge import Verdict
from netkit.store import row, schema
from netkit.store.database import put, rows
from netkit.store.record import DAY_S, Retention, Source


@dataclass(frozen=True, slots=True)
class KeptFrom:
    """From when on the rows of a source are kept; earlier ones may still be stored, and count as dropped."""

    runs_s: float = 0.0
    findings_s: float = 0.0
    readings_s: float = 0.0
    hourly_s: float = 0.0


def kept_from(connection: Connection, source: Source) -> KeptFrom:
    """Return from when on the rows of a source are kept."""
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

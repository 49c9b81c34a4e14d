"""The store: runs of checks are saved atomically, read while others write, and dropped when they are old."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine, Table, and_, delete, exists, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from netkit.errors import Problem, StoreError
from netkit.facts import Snapshot
from netkit.judge import Verdict
from netkit.judge.delta import Earlier
from netkit.judge.run import Judgement
from netkit.private import keep_private, open_file
from netkit.store import outbox, row, schema, state
from netkit.store.database import (
    connectable,
    file_of,
    plain_errors,
    reading,
    revision_of,
    rows,
    upgrade,
    url_of,
    writing,
)
from netkit.store.measurement import Measured
from netkit.store.open_cause import OpenNow, open_now
from netkit.store.record import CheckRun, Source, judgement_of
from netkit.store.silence import KnownSilence, SavedRun, SilenceEnd, SilenceMemory, silence_data, silence_of

DAY_S = 86_400
DAY_HOURS = 24
KEEP_S = 90.0 * DAY_S


def prune(connection: Connection, source: Source, before_s: float, now_s: float) -> None:
    """Drop what is older than a time; of measurements older than a day, keep one per day."""
    runs, findings, readings = schema.runs, schema.findings, schema.readings
    too_old = schema.is_of(runs, source) & (runs.c.taken_s < before_s)
    connection.execute(delete(findings).where(findings.c.run.in_(select(runs.c.id).where(too_old))))
    connection.execute(delete(runs).where(too_old))
    mine = schema.is_of(readings, source)
    connection.execute(delete(readings).where(mine, readings.c.at_s < before_s))
    # Keep the first reading of each day that is over.
    other = schema.readings.alias()
    is_same = and_(*(readings.c[name] == other.c[name] for name in ("fabric", "lab", "site", "device")))
    is_earlier = and_(other.c.hour >= readings.c.hour - readings.c.hour % DAY_HOURS, other.c.hour < readings.c.hour)
    has_earlier = exists().where(is_same, is_earlier)
    connection.execute(delete(readings).where(mine, readings.c.at_s < now_s - DAY_S, has_earlier))
    _forget(connection, source, before_s)


def _forget(connection: Connection, source: Source, before_s: float) -> None:
    """Drop counters and states that were not seen for long, and states that passed long ago."""
    counters, states = schema.counters, schema.states
    mine = schema.is_of(counters, source)
    connection.execute(delete(counters).where(mine, counters.c.at_s < before_s))
    of_source = schema.is_of(states, source)
    passed_long_ago = and_(states.c.verdict == int(Verdict.PASS), states.c.since_s < before_s)
    connection.execute(delete(states).where(of_source, (states.c.seen_s < before_s) | passed_long_ago))
    notified = schema.notified
    names = ("fabric", "lab", "site", "check_name", "device", "place")
    is_same = and_(*(notified.c[name] == states.c[name] for name in names))
    connection.execute(delete(notified).where(schema.is_of(notified, source), ~exists().where(is_same)))


ALL = 1_000_000
MOST_JOINED = 20
"""Judgements are large: states last seen before this many runs are shown without a remedy."""
AHEAD_S = 60.0
"""Tolerance for times ahead of now: a run beyond it was stored under a wrong clock, and precedes nothing."""

Remember = Callable[[Mapping[str, KnownSilence], state.States], SilenceMemory]
"""Updates the memory of silences within the transaction of a run, from that before and the states it judged."""


class Store:
    """An open store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._engine.dispose()

    def save(
        self,
        run: CheckRun,
        judgement: Judgement,
        snapshot: Snapshot,
        *,
        keep_s: float = KEEP_S,
        decide: outbox.Decide | None = None,
        extent: state.Extent | None = None,
        silences: Remember | None = None,
    ) -> SavedRun:
        """Save a run and its data, drop what is too old, and return what changed since the run before.

        A run older than the newest one is saved, but changes neither states nor counters, and queues nothing. A run
        from the future is not the newest, and expires nothing.
        """
        with writing(self._engine) as connection:
            is_right = schema.runs.c.taken_s <= time.time() + AHEAD_S
            query = select(func.max(schema.runs.c.taken_s)).where(schema.is_of(schema.runs, run.source), is_right)
            before_s = connection.scalar(query) or 0.0
            newest_s = max(before_s, run.taken_s)
            now_s = min(newest_s, time.time())
            prune(connection, run.source, now_s - keep_s, now_s)
            self._add(connection, run, judgement)
            self._put(connection, schema.readings, row.reading_rows(run.source, snapshot), has_precedence=False)
            self._put(connection, schema.counters, row.counter_rows(run.source, snapshot))
            if newest_s > run.taken_s:
                return SavedRun()
            judged, changed = self._stand(connection, run, judgement, snapshot, extent)
            ends = self._remember(connection, run.source, judged, silences) if silences is not None else ()
            if decide is not None:
                outbox.queue(connection, run.source, judged, decide, ends)
            return SavedRun(changed, ends)

    def runs(self, source: Source, most: int = ALL) -> tuple[CheckRun, ...]:
        """Return the stored runs, newest first; those from the future come last."""
        columns = [column for column in schema.runs.c if column.name != "judgement"]
        order = (schema.runs.c.taken_s.desc(), schema.runs.c.id.desc())
        query = select(*columns).where(schema.is_of(schema.runs, source)).order_by(*order)
        is_ahead = schema.runs.c.taken_s > time.time() + AHEAD_S
        found: list[CheckRun] = []
        with reading(self._engine) as connection:
            for which in (~is_ahead, is_ahead):  # two queries, since one could not use the index
                found += map(row.run_of_row, rows(connection, query.where(which).limit(most - len(found))))
        return tuple(found)

    def judgement(self, run: CheckRun) -> Judgement:
        query = select(schema.runs.c.judgement).where(schema.runs.c.name == run.name)
        with reading(self._engine) as connection:
            found = rows(connection, query)
            if found:
                return judgement_of(found[0]["judgement"], f"run {run.name}")
        raise StoreError(Problem(f"the run {run.name} is no longer stored", "netkit history --checks lists them"))

    def readings(self, source: Source, device: str, before_s: float) -> Sequence[Measured]:
        """Return the measurements of a device's modules before a time, earliest first."""
        table = schema.readings
        wanted = schema.is_of(table, source) & (table.c.device == device) & (table.c.at_s < before_s)
        with reading(self._engine) as connection:
            return [
                row.measured_of_row(one) for one in rows(connection, select(table).where(wanted).order_by(table.c.at_s))
            ]

    def counters(self, source: Source) -> Mapping[str, Earlier]:
        """Return the last counters of each device."""
        table = schema.counters
        with reading(self._engine) as connection:
            found = rows(connection, select(table).where(schema.is_of(table, source)))
            return {one["device"]: row.earlier_of_row(one) for one in found}

    def latest_states(self, source: Source) -> tuple[state.CheckState, ...]:
        """Return the state of each check at each place where it ever found something, by name."""
        with reading(self._engine) as connection:
            found = self._states(connection, source)
        return tuple(found[key] for key in sorted(found))

    def open_now(self, source: Source) -> OpenNow:
        """Return everything that is not healthy, by cause."""
        table = schema.runs
        with reading(self._engine) as connection:
            states = self._states(connection, source)
            seen_s = {one.seen_s for one in states.values() if one.verdict is not Verdict.PASS}
            latest = sorted(seen_s, reverse=True)[:MOST_JOINED]
            query = select(table).where(schema.is_of(table, source), table.c.taken_s.in_(latest))
            found = rows(connection, query.order_by(table.c.taken_s.desc(), table.c.id.desc()))
            runs = ((row.run_of_row(one), judgement_of(one["judgement"], f"run {one['name']}")) for one in found)
            return open_now(states.values(), runs)

    def silences(self, source: Source) -> Mapping[str, KnownSilence]:
        """Return the silences and acknowledgements of the last run, by name."""
        with reading(self._engine) as connection:
            return self._silences(connection, source)

    def outbox_of(self, source: Source) -> outbox.Outbox:
        """Return the queued notifications of a fabric, or of a lab of it."""
        return outbox.Outbox(self._engine, source)

    def _add(self, connection: Connection, run: CheckRun, judgement: Judgement) -> None:
        added = connection.execute(insert(schema.runs).returning(schema.runs.c.id), row.run_row(run, judgement))
        found = list(row.finding_rows(added.scalar_one(), judgement))
        if found:
            connection.execute(insert(schema.findings), found)

    def _stand(
        self,
        connection: Connection,
        run: CheckRun,
        judgement: Judgement,
        snapshot: Snapshot,
        extent: state.Extent | None,
    ) -> tuple[state.States, tuple[state.CheckState, ...]]:
        """Save the states; return them, and those that changed."""
        before = self._states(connection, run.source)
        gone = state.over(before, extent, run.taken_s) if extent is not None else {}
        after = {**gone, **state.after(before, judgement, snapshot.devices, run.taken_s)}
        self._put(connection, schema.states, (row.state_row(run.source, one) for one in after.values()))
        changed = (key for key, one in after.items() if key not in before or before[key].verdict is not one.verdict)
        return after, tuple(after[key] for key in sorted(changed))

    def _states(self, connection: Connection, source: Source) -> dict[state.Key, state.CheckState]:
        table = schema.states
        found = map(row.state_of_row, rows(connection, select(table).where(schema.is_of(table, source))))
        return {one.key: one for one in found}

    def _silences(self, connection: Connection, source: Source) -> dict[str, KnownSilence]:
        table = schema.silences
        found = rows(connection, select(table).where(schema.is_of(table, source)))
        return {one["id"]: silence_of(one["data"], one["ended_s"]) for one in found}

    def _remember(
        self, connection: Connection, source: Source, judged: state.States, silences: Remember
    ) -> tuple[SilenceEnd, ...]:
        """Replace the memory of silences, and return those that ended."""
        table = schema.silences
        memory = silences(self._silences(connection, source), judged)
        connection.execute(delete(table).where(schema.is_of(table, source)))
        found = [
            {**row.of_source(source), "id": name, "ended_s": one.ended_s, "data": silence_data(one)}
            for name, one in memory.known.items()
        ]
        if found:
            connection.execute(insert(table), found)
        return memory.ends

    def _put(
        self, connection: Connection, table: Table, given: Iterable[row.Row], *, has_precedence: bool = True
    ) -> None:
        """Upsert rows; on a conflict the later one in time wins, or without precedence the existing one."""
        found = list(given)
        if not found:
            return
        writes = sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
        keys = [column.name for column in table.c if column.primary_key]
        new: Any = writes.excluded
        if has_precedence:
            is_later = (
                (new.at_s >= table.c.at_s) | (table.c.at_s > time.time() + AHEAD_S) if "at_s" in table.c else None
            )
            values = {column.name: new[column.name] for column in table.c if not column.primary_key}
            connection.execute(writes.on_conflict_do_update(index_elements=keys, set_=values, where=is_later), found)
        else:
            connection.execute(writes.on_conflict_do_nothing(index_elements=keys), found)


def open_store(where: str, *, is_new_allowed: bool = True) -> Store:
    """Open the store in a file or at a URL; create or upgrade its tables where that is allowed."""
    url = url_of(where)
    file = file_of(url)
    if file is not None and not file.exists() and not is_new_allowed:
        raise StoreError(Problem("there is no store", "netkit check --store creates one", file=str(file)))
    engine = connectable(url)
    with plain_errors(engine):
        if file is not None:
            # The files that SQLite creates beside it get the same permissions.
            with contextlib.suppress(OSError):  # missing, or of another account: the database reports that
                os.close(open_file(file, os.O_RDWR))
                for suffix in ("-wal", "-shm"):
                    keep_private(file.with_name(f"{file.name}{suffix}"))
        _ready(engine, is_new_allowed=is_new_allowed)
    return Store(engine)


def _ready(engine: Engine, *, is_new_allowed: bool) -> None:
    """Upgrade the tables if needed: that takes a lock, reading does not."""
    with reading(engine) as connection:
        found = revision_of(connection)
    if found == schema.HEAD:
        return
    if not found and not is_new_allowed:
        raise StoreError(Problem("nothing is stored there yet", "netkit check --store saves a run"))
    with writing(engine) as connection:
        upgrade(connection)

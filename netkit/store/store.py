"""The store: runs of checks are saved atomically, read while others write, and dropped when they are old."""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Engine, Select, Table, and_, case, delete, func, insert, select

from netkit.errors import Problem, StoreError
from netkit.facts import Snapshot
from netkit.judge import Finding, Verdict
from netkit.judge.delta import Earlier
from netkit.judge.run import Judgement
from netkit.judge.silence import REACHED
from netkit.private import keep_private, open_file
from netkit.store import outbox, partition, row, schema, state
from netkit.store.database import (
    AHEAD_S,
    BATCH,
    add,
    connectable,
    file_of,
    plain_errors,
    put,
    reading,
    repeated,
    revision_of,
    rows,
    upgrade,
    url_of,
    writing,
    written,
)
from netkit.store.open_cause import FoundByRun, OpenNow, open_now
from netkit.store.partition import PlaceFilter, StoredPage, expire, kept_from
from netkit.store.record import USUAL_RETENTION, CheckRun, Measured, Retention, Source, batched, joined, judgement_of
from netkit.store.state import KnownSilence, SavedRun, SilenceEnd, SilenceMemory, silence_data, silence_of

ALL = 1_000_000
MOST_JOINED = 20
"""States last seen before this many runs are shown without a remedy."""
LAST_NUMBER = 2**31 - 1
Remember = Callable[[Mapping[str, KnownSilence], state.States], SilenceMemory]
"""Updates the memory of silences within the transaction of a run, from that before and the states it judged."""


@dataclass(frozen=True, slots=True)
class RunPart:
    """A part of a run: some results, and the devices that were observed for them."""

    judgement: Judgement
    devices: row.Devices


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
        keep: Retention = USUAL_RETENTION,
        decide: outbox.Decide | None = None,
        extent: state.Extent | None = None,
        silences: Remember | None = None,
    ) -> SavedRun:
        """Save a run and its data, drop what is too old, and return what changed since the run before.

        A run older than the newest one is saved, but changes neither states nor counters, and queues nothing. A run
        from the future is not the newest, and expires nothing.
        """
        parts = [RunPart(judgement, snapshot.devices)]
        return self.save_parts(run, parts, keep=keep, decide=decide, extent=extent, silences=silences)

    def save_parts(
        self,
        run: CheckRun,
        parts: Collection[RunPart],
        *,
        keep: Retention = USUAL_RETENTION,
        decide: outbox.Decide | None = None,
        extent: state.Extent | None = None,
        silences: Remember | None = None,
    ) -> SavedRun:
        """Save a run as `save` does, from parts of which only one is in memory at a time.

        If the server breaks off the transaction, the parts are read again. A run that is stored already is left alone.
        """

        def save(connection: Connection) -> SavedRun:
            if _row_of(connection, run, schema.runs.c.id) is not None:
                return SavedRun()  # the server stored it, and its answer was lost
            newest_s = max(self._newest_s(connection, run.source), run.taken_s)
            expire(connection, run.source, keep, min(newest_s, time.time()))
            states = state.NextStates(self._states(connection, run.source))
            self._add(connection, run, parts, states)
            if newest_s > run.taken_s:
                return SavedRun()
            judged, changed = self._stand(connection, run, states, extent)
            ends = self._remember(connection, run.source, judged, silences) if silences is not None else ()
            if decide is not None:
                outbox.queue(connection, run.source, judged, decide, ends)
            return SavedRun(changed, ends)

        is_partitioned = self._engine.dialect.name != "sqlite"
        if is_partitioned:
            repeated(self._engine, lambda: partition.make(self._engine, run.taken_s))
        saved = written(self._engine, run.source, save)
        if is_partitioned:
            repeated(self._engine, lambda: partition.drop(self._engine))
        return saved

    def sources(self) -> tuple[Source, ...]:
        """The fabrics of which runs were stored, by name."""
        columns = (schema.sources.c.fabric, schema.sources.c.lab, schema.sources.c.site)
        with reading(self._engine) as connection:
            return tuple(Source(*one.values()) for one in rows(connection, select(*columns).order_by(*columns)))

    def runs(self, source: Source, most: int = ALL, *, after: CheckRun | None = None) -> tuple[CheckRun, ...]:
        """Stored runs, newest first, those from the future last; with `after`, those that follow it."""
        taken_s, ahead_s = schema.runs.c.taken_s, time.time() + AHEAD_S
        found: list[CheckRun] = []
        with reading(self._engine) as connection:
            query = self._runs(connection, source)
            # Two queries, since one could not use the index.
            queries = [query.where(taken_s <= ahead_s), query.where(taken_s > ahead_s)]
            if after is not None:
                queries = queries[after.taken_s > ahead_s :]
                queries[0] = queries[0].where(_follows(connection, after))
            for one in queries:
                found += map(row.run_of_row, rows(connection, one.limit(most - len(found))))
        return tuple(found)

    def run(self, source: Source, name: str) -> CheckRun | None:
        """A stored run by its name."""
        table = schema.runs
        with reading(self._engine) as connection:
            query = self._runs(connection, source).where(table.c.name == name)
            return next(map(row.run_of_row, rows(connection, query)), None)

    def number_of_runs(self, source: Source) -> int:
        with reading(self._engine) as connection:
            is_kept = self._is_kept(connection, source)
            return connection.scalar(select(func.count()).select_from(schema.runs).where(is_kept)) or 0

    def judgement(self, run: CheckRun) -> Judgement:
        with reading(self._engine) as connection:
            key = _row_of(connection, run, schema.runs.c.id)
            kept = kept_from(connection, run.source)
            if key is not None and run.taken_s >= kept.findings_s and (found := _judgement(connection, run, key)):
                return found
        raise _expired(run)

    def findings(self, run: CheckRun, wanted: PlaceFilter, most: int = ALL, offset: int = 0) -> StoredPage[Finding]:
        """Findings of a run that are worse than skipped, the worst first."""
        table = schema.findings
        with reading(self._engine) as connection:
            key = _row_of(connection, run, schema.runs.c.id)
            if key is None or run.taken_s < kept_from(connection, run.source).findings_s:
                raise _expired(run)
            query = _findings_of(run, key).where(*wanted.conditions(connection, table))
            if wanted.verdict is not None:
                query = query.where(table.c.verdict == wanted.verdict.word)
            found = rows(connection, query.limit(most).offset(offset))
            return StoredPage(tuple(map(row.finding_of_row, found)), _number_of(connection, query))

    def skipped(self, run: CheckRun) -> Iterator[Finding]:
        """Yield the findings of a run about what could not be judged; a part of the judgement is read at a time."""
        with reading(self._engine) as connection:
            key = _row_of(connection, run, schema.runs.c.id)
            for part in _parts(connection, run, key) if key is not None else ():
                yield from (one for one in part.findings if one.verdict is Verdict.SKIPPED)

    def silenced(self, run: CheckRun) -> Mapping[str, int]:
        """How many findings of a run each silence silences, by its ID."""
        table = schema.findings
        with reading(self._engine) as connection:
            key = _row_of(connection, run, schema.runs.c.id)
            is_of_run = and_(table.c.run == key, table.c.taken_s == run.taken_s, table.c.silenced != "")
            query = select(table.c.silenced, func.count().label("number")).where(is_of_run)
            found = rows(connection, query.group_by(table.c.silenced))
            return {one["silenced"]: one["number"] for one in found}

    def readings(self, source: Source, device: str, before_s: float) -> Sequence[Measured]:
        """The measurements of a device's modules before a time, earliest first."""
        found: dict[float, Measured] = {}
        with reading(self._engine) as connection:
            kept = kept_from(connection, source)
            hourly_s = max(kept.hourly_s, kept.readings_s)
            for table, unit, from_s in ((schema.readings, "day", kept.readings_s), (schema.hourly, "hour", hourly_s)):
                first, last = (max(min(int(at_s // row.UNITS_S[unit]), LAST_NUMBER), 0) for at_s in (from_s, before_s))
                is_then = and_(table.c[unit].between(first, last), table.c.at_s >= from_s, table.c.at_s < before_s)
                query = select(table).where(schema.is_of(table, source), table.c.device == device, is_then)
                found |= {one["at_s"]: row.measured_of_row(one) for one in rows(connection, query)}
        return [found[at_s] for at_s in sorted(found)]

    def counters(self, source: Source) -> Mapping[str, Earlier]:
        """The last counters of each device."""
        table = schema.counters
        with reading(self._engine) as connection:
            found = rows(connection, select(table).where(schema.is_of(table, source)))
            return {one["device"]: row.earlier_of_row(one) for one in found}

    def counted_s(self, source: Source) -> Mapping[str, float]:
        """When the last counters of each device were read."""
        table = schema.counters
        with reading(self._engine) as connection:
            found = rows(connection, select(table.c.device, table.c.at_s).where(schema.is_of(table, source)))
            return {one["device"]: one["at_s"] for one in found}

    def states(
        self,
        source: Source,
        wanted: PlaceFilter | None = None,
        *,
        since_s: float | None = None,
        most: int = ALL,
        offset: int = 0,
    ) -> StoredPage[state.CheckState]:
        """The states of checks at places, the worst first; without a filter, of all that ever found something.

        With `since_s`, only those that began then.
        """
        table = schema.states
        with reading(self._engine) as connection:
            query = select(table).where(schema.is_of(table, source))
            if wanted is not None:
                is_asked = table.c.verdict != int(Verdict.PASS)
                if wanted.verdict is not None:
                    is_asked = table.c.verdict == int(wanted.verdict)
                query = query.where(is_asked, *wanted.conditions(connection, table))
            if since_s is not None:
                query = query.where(table.c.since_s == since_s)
            found = rows(connection, query.order_by(*_worst_first(table)).limit(most).offset(offset))
            return StoredPage(tuple(map(row.state_of_row, found)), _number_of(connection, query))

    def open_now(self, source: Source, most: int = ALL) -> OpenNow:
        """What is not healthy, by cause: the worst places and as many unreached devices."""
        table = schema.runs
        with reading(self._engine) as connection:
            states, left_out = self._bad_states(connection, source, most)
            seen_s = {one.seen_s for one in states}
            latest = sorted(seen_s, reverse=True)[:MOST_JOINED]
            query = self._runs(connection, source).where(table.c.taken_s.in_(latest))
            found = [(one["id"], row.run_of_row(one)) for one in rows(connection, query)]
            kept = kept_from(connection, source)
            runs = (_found_by(connection, run, key, most) for key, run in found if run.taken_s >= kept.findings_s)
            return open_now(states, runs, left_out)

    def _bad_states(self, connection: Connection, source: Source, most: int) -> tuple[list[state.CheckState], int]:
        """The worst states, apart from these the unreached devices, and how many more there are."""
        table = schema.states
        is_bad = schema.is_of(table, source) & (table.c.verdict > int(Verdict.SKIPPED))
        found, left_out = list[state.CheckState](), 0
        for is_asked in (table.c.check_name != REACHED, table.c.check_name == REACHED):
            query = select(table).where(is_bad, is_asked)
            read = rows(connection, query.order_by(*_worst_first(table)).limit(most))
            found += map(row.state_of_row, read)
            left_out += _number_of(connection, query) - len(read) if len(read) == most else 0
        return found, left_out

    def silences(self, source: Source) -> Mapping[str, KnownSilence]:
        """The silences and acknowledgements of the last run, by name."""
        with reading(self._engine) as connection:
            return self._silences(connection, source)

    def outbox_of(self, source: Source) -> outbox.Outbox:
        """The queued notifications of a fabric, or of a lab of it."""
        return outbox.Outbox(self._engine, source)

    def _add(self, connection: Connection, run: CheckRun, parts: Collection[RunPart], states: state.NextStates) -> None:
        """Add the rows of a run, part by part."""
        added = connection.execute(insert(schema.runs).returning(schema.runs.c.id), row.run_row(run))
        key = row.RunKey(added.scalar_one(), run.taken_s)
        numbers, findings = count(), count()
        for part in parts:
            add(connection, schema.judgements, row.judgement_rows(key, part.judgement, numbers))
            add(connection, schema.findings, row.finding_rows(key, part.judgement, findings))
            for batch in batched(row.reading_rows(run.source, run.taken_s, part.devices), BATCH):
                for table, unit in ((schema.readings, "day"), (schema.hourly, "hour")):
                    number = int(run.taken_s // row.UNITS_S[unit])
                    put(connection, table, ({**one, unit: number} for one in batch), wins="earlier")
            put(connection, schema.counters, row.counter_rows(run.source, part.devices))
            states.add(part.judgement, part.devices)

    def _stand(
        self, connection: Connection, run: CheckRun, states: state.NextStates, extent: state.Extent | None
    ) -> tuple[state.States, tuple[state.CheckState, ...]]:
        """Save the states; return them, and those that changed."""
        before = states.before
        gone = state.over(before, extent, run.taken_s) if extent is not None else {}
        after = {**gone, **states.at(run.taken_s)}
        put(connection, schema.states, (row.state_row(run.source, one) for one in after.values()))
        changed = (key for key, one in after.items() if key not in before or before[key].verdict is not one.verdict)
        return after, tuple(after[key] for key in sorted(changed))

    def _newest_s(self, connection: Connection, source: Source) -> float:
        """When the newest run was taken that is not from the future."""
        taken_s = schema.runs.c.taken_s
        query = select(taken_s).where(self._is_kept(connection, source), taken_s <= time.time() + AHEAD_S)
        return connection.scalar(query.order_by(taken_s.desc()).limit(1)) or 0.0

    def _runs(self, connection: Connection, source: Source) -> Select[Any]:
        """The query for the runs of a source, newest first."""
        order = (schema.runs.c.taken_s.desc(), schema.runs.c.id.desc())
        return select(schema.runs).where(self._is_kept(connection, source)).order_by(*order)

    def _is_kept(self, connection: Connection, source: Source) -> ColumnElement[bool]:
        from_s = kept_from(connection, source).runs_s
        return schema.is_of(schema.runs, source) & (schema.runs.c.taken_s >= from_s)

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
        owner = row.of_source(source)
        found = (
            {**owner, "id": name, "ended_s": one.ended_s, "data": silence_data(one)}
            for name, one in memory.known.items()
        )
        add(connection, table, found)
        return memory.ends


def _row_of(connection: Connection, run: CheckRun, column: ColumnElement[Any]) -> Any:
    """A column of a stored run; None if it is not stored."""
    table = schema.runs
    is_it = and_(table.c.name == run.name, table.c.taken_s == run.taken_s, schema.is_of(table, run.source))
    return connection.scalar(select(column).where(is_it))


def _follows(connection: Connection, run: CheckRun) -> ColumnElement[bool]:
    """Select the runs after one, in the order of `Store.runs`; of those taken at the same time by their number."""
    table = schema.runs
    number = _row_of(connection, run, table.c.id) or 0
    return (table.c.taken_s <= run.taken_s) & ((table.c.taken_s < run.taken_s) | (table.c.id < number))


def _expired(run: CheckRun) -> StoreError:
    return StoreError(
        Problem(f"the findings of run {run.name} are no longer stored", "netkit history --checks lists the runs")
    )


def _judgement(connection: Connection, run: CheckRun, key: int) -> Judgement | None:
    found = tuple(_parts(connection, run, key))
    return joined(found) if found else None


def _parts(connection: Connection, run: CheckRun, key: int, *, is_bad_only: bool = False) -> Iterator[Judgement]:
    """Yield the parts of a judgement, or those with bad findings; one is in memory at a time."""
    table = schema.judgements
    is_of_run = and_(table.c.run == key, table.c.taken_s == run.taken_s)
    numbers = select(table.c.part).where(is_of_run).order_by(table.c.part)
    for one in rows(connection, numbers.where(table.c.bad > 0) if is_bad_only else numbers):
        (found,) = rows(connection, select(table.c.data).where(is_of_run, table.c.part == one["part"]))
        yield judgement_of(found["data"], f"run {run.name}")


def _findings_of(run: CheckRun, key: int) -> Select[Any]:
    """The query for the findings of a run, the worst first."""
    table = schema.findings
    severity = case({one.word: int(one) for one in Verdict}, value=table.c.verdict)
    is_of_run = and_(table.c.run == key, table.c.taken_s == run.taken_s)
    return select(table).where(is_of_run).order_by(severity.desc(), table.c.number)


def _found_by(connection: Connection, run: CheckRun, key: int, most: int) -> FoundByRun:
    """The worst findings of a run, and the unreached devices for which that is silenced."""
    found = rows(connection, _findings_of(run, key).limit(most))
    if any(one["data"] is None for one in found):  # stored by an earlier netkit
        parts = tuple(_parts(connection, run, key, is_bad_only=True))
        findings = [one for part in parts for one in part.findings if one.verdict > Verdict.SKIPPED]
        return FoundByRun(run, findings[:most], [one for part in parts for one in part.excused])
    parts_read = _parts(connection, run, key, is_bad_only=True) if run.counts.silenced else ()
    excused = [one for part in parts_read for one in part.excused]
    return FoundByRun(run, [row.finding_of_row(one) for one in found], excused)


def _worst_first(table: Table) -> tuple[ColumnElement[Any], ...]:
    return table.c.verdict.desc(), table.c.check_name, table.c.device, table.c.place


def _number_of(connection: Connection, query: Select[Any]) -> int:
    """How many rows a query has."""
    counted = select(func.count()).select_from(query.order_by(None).limit(None).offset(None).subquery())
    return connection.scalar(counted) or 0


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

"""Several processes write to one PostgreSQL: nothing is lost or doubled, and failed transactions are repeated."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from netkit.judge import Verdict, fail
from netkit.store import Source
from netkit.store.database import connectable, reading, url_of, writing
from netkit.store.store import RunPart, Store, open_store
from tests.lab.running import until
from tests.store.postgres import Server
from tests.store.runs import BEGAN_S, SOURCE, counted, judgement, lit, result, run, save, snapshot
from tests.store.test_crash import PATIENCE_S, check_whole, lines, writer
from tests.store.writer import PORTS

DOWN = result("leaf01", fail("swp1", "down"))
RUNS = 12
TABLES = ("runs", "judgements", "findings", "readings", "readings_hourly", "counters", "states")


@pytest.fixture
def engine(server: Server) -> Iterator[Engine]:
    found = connectable(url_of(server.database()))
    yield found
    found.dispose()


def place(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def rows(store: Store) -> dict[str, int]:
    with reading(store._engine) as connection:  # noqa: SLF001 (what is in the tables)
        found = {name: connection.execute(text(f"SELECT count(*) FROM netkit_{name}")).scalar() for name in TABLES}  # noqa: S608
    return {name: number or 0 for name, number in found.items()}


def test_a_run_that_is_stored_already_is_not_stored_again(store: Store) -> None:
    one, found = run(), judgement(DOWN)
    seen = snapshot(leaf01=lit("leaf01", -1.0), leaf02=counted("leaf02", BEGAN_S, 1))
    assert len(store.save(one, found, seen).changes) == 1
    before = rows(store)
    assert before == {**dict.fromkeys(TABLES, 1)}
    assert store.save(one, found, seen).changes == ()
    assert rows(store) == before


def well(part: RunPart) -> RunPart:
    """Return a part in which everything passes that was judged."""
    return replace(part, judgement=judgement(*(result(one.device) for one in part.judgement.results)))


def test_a_run_in_parts_is_the_run_as_a_whole(store: Store) -> None:
    devices = {f"leaf{number:02}": replace(lit(f"leaf{number:02}", -1.0)) for number in range(9)}
    bad = [result(name, fail("swp1", "down")) if number % 2 else result(name) for number, name in enumerate(devices)]
    other = Source("whole")
    missed = (("gpu01", "no answer"),)
    parts = [
        RunPart(judgement(*bad[begin : begin + 4], unreached=missed if begin == 4 else ()), dict(part))
        for begin in range(0, 9, 4)
        for part in [list(devices.items())[begin : begin + 4]]
    ]
    for number in range(2):
        taken_s = BEGAN_S + 60 * number
        now = [well(one) for one in parts] if number else parts
        whole = judgement(
            *(each for one in now for each in one.judgement.results),
            unreached=[each for one in now for each in one.judgement.unreached],
        )
        one, two = run(taken_s), replace(run(taken_s), source=other)
        in_parts = store.save_parts(one, now).changes
        assert in_parts == store.save(two, whole, snapshot(taken_s, **devices)).changes
        assert in_parts
        assert store.judgement(one) == store.judgement(two) == whole
    assert store.states(SOURCE).items == store.states(other).items
    assert store.open_now(SOURCE).counts == store.open_now(other).counts
    assert {one.verdict for one in store.states(SOURCE).items} == {Verdict.FAIL, Verdict.PASS}
    assert store.readings(SOURCE, "leaf08", 1e12) == store.readings(other, "leaf08", 1e12) != []


@pytest.mark.daemon
def test_a_deadlock_is_repeated(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text(f"ALTER DATABASE {engine.url.database} SET deadlock_timeout = '4s'"))
    engine.dispose()
    with open_store(place(engine)) as store:
        save(store, BEGAN_S, DOWN)
        with engine.begin() as other:
            other.execute(text("SET LOCAL deadlock_timeout = '1h'"))  # so that the run is the one that is broken off
            other.execute(text("SELECT * FROM netkit_states FOR UPDATE")).all()
            saving = threading.Thread(target=save, args=(store, BEGAN_S + 60, DOWN))
            saving.start()
            until(lambda: _waiting(engine) == 1, "the run waits for the row")
            other.execute(text(f"SELECT pg_advisory_xact_lock({SOURCE.number('write')})"))
            broken = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            assert saving.is_alive()
        saving.join(PATIENCE_S)
        until(lambda: _number(engine, broken) == 1, "there was a deadlock")
        assert len(store.runs(SOURCE)) == 2
        assert rows(store)["findings"] == 2


def _waiting(engine: Engine) -> int:
    return _number(engine, text("SELECT count(*) FROM pg_locks WHERE NOT granted"))


def _number(engine: Engine, query: object) -> int:
    with reading(engine) as connection:
        return int(connection.scalar(query) or 0)  # type: ignore[call-overload]


@pytest.mark.daemon
def test_a_fabric_does_not_wait_for_another(engine: Engine) -> None:
    other = Source("other", site="tokyo")
    with open_store(place(engine)) as store:
        save(store, BEGAN_S)
        with writing(engine, SOURCE):
            store.save(replace(run(), source=other), judgement(DOWN), snapshot())
            saving = threading.Thread(target=save, args=(store, BEGAN_S + 60))
            saving.start()
            until(lambda: _waiting(engine) == 1, "the same fabric waits")
            assert len(store.runs(SOURCE)) == 1
        saving.join(PATIENCE_S)
        assert (len(store.runs(SOURCE)), len(store.runs(other))) == (2, 1)


@pytest.mark.daemon
def test_many_writers_whose_connections_are_cut_lose_and_double_nothing(engine: Engine, tmp_path: Path) -> None:
    with open_store(place(engine)):
        pass
    names = ["a", "a", "b", "c"]
    logs = [tmp_path / f"log{number}" for number in range(len(names))]
    processes = [writer(place(engine), log, name, RUNS) for log, name in zip(logs, names, strict=True)]
    broken, before = 0, [-1] * len(names)
    killed = text(
        "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE 'INSERT INTO netkit%' ORDER BY random() LIMIT 1) AS found"
    )
    while any(process.poll() is None for process in processes):
        # However slow the machine: a run is cut off less often than it is repeated.
        now = [
            RUNS if process.poll() == 0 else len(lines(log, "stored"))
            for process, log in zip(processes, logs, strict=True)
        ]
        if any(count == earlier != RUNS for count, earlier in zip(now, before, strict=True)):
            time.sleep(0.02)
        elif found := _number(engine, killed):
            broken, before = broken + found, now
    assert [process.wait(PATIENCE_S) for process in processes] == [0] * 4
    assert broken
    with open_store(place(engine)) as store:
        for name in set(names):
            stored = [
                one for log, each in zip(logs, names, strict=True) if each == name for one in lines(log, "stored")
            ]
            assert sorted(one.name for one in store.runs(Source(name))) == sorted(stored)
            assert len(stored) == RUNS * names.count(name)
            assert len(store.states(Source(name)).items) == PORTS
        assert rows(store)["findings"] == RUNS * len(names) * PORTS
    for name, log in list(zip(names, logs, strict=True))[2:]:
        check_whole(place(engine), name, log)

"""Partitions on PostgreSQL: made ahead, dropped whole, and never while a fabric keeps something in them."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Engine, text

from netkit.judge import fail
from netkit.store import Source, partition
from netkit.store.database import connectable, reading, url_of
from netkit.store.record import Retention
from netkit.store.store import Store, open_store
from tests.store.postgres import Server
from tests.store.runs import DAY_S, SOURCE, judgement, lit, result, run, snapshot

WEEK_S = 7 * DAY_S


@pytest.fixture
def engine(server: Server) -> Iterator[Engine]:
    found = connectable(url_of(server.database()))
    with open_store(str(found.url.render_as_string(hide_password=False))):
        pass
    yield found
    found.dispose()


@pytest.fixture
def kept(engine: Engine) -> Iterator[Store]:
    with open_store(engine.url.render_as_string(hide_password=False)) as store:
        yield store


def partitions(engine: Engine, table: str) -> list[str]:
    with reading(engine) as connection:
        query = text(
            "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = to_regclass(:t)"
        )
        return sorted(connection.scalars(query, {"t": table}))


def save(store: Store, at_s: float, source: Source = SOURCE, keep_s: float = 21 * DAY_S) -> None:
    one = replace(run(at_s), source=source)
    bad = judgement(result("leaf01", fail("swp1", "down")))
    store.save(one, bad, snapshot(at_s, leaf01=lit("leaf01", -1.0)), keep=Retention.of_all(keep_s))


def test_the_present_and_the_next_partitions_exist(engine: Engine, kept: Store) -> None:
    now_s = time.time()
    save(kept, now_s)
    for table, how in partition.PARTITIONED.items():
        span_s = how.width * how.unit_s
        named = [
            f"{table}_{time.strftime('%Y%m%d', time.gmtime(at_s // span_s * span_s))}"
            for at_s in (now_s, now_s + span_s)
        ]
        assert partitions(engine, table) == named


def test_old_partitions_are_dropped_whole_when_no_fabric_keeps_them(engine: Engine, kept: Store) -> None:
    now_s = time.time()
    other = Source("other", site="tokyo")
    for weeks in range(8, 0, -1):
        save(kept, now_s - weeks * WEEK_S)
        save(kept, now_s - weeks * WEEK_S, other, 90 * DAY_S)
    assert len(partitions(engine, "netkit_runs")) == 10
    save(kept, now_s)
    assert len(partitions(engine, "netkit_runs")) == 10, "the other fabric keeps its runs for longer"
    assert len(kept.runs(SOURCE)) == 4
    assert len(kept.runs(other)) == 8
    hours = partitions(engine, "netkit_readings_hourly")
    save(kept, now_s, other)
    assert len(partitions(engine, "netkit_runs")) in {5, 6}
    assert len(partitions(engine, "netkit_judgements")) in {5, 6}
    assert len(partitions(engine, "netkit_findings")) in {5, 6}
    assert len(partitions(engine, "netkit_readings")) in {5, 6}
    assert len(partitions(engine, "netkit_readings_hourly")) < len(hours)
    assert len(kept.runs(SOURCE)) == 4
    assert len(kept.runs(other)) == 4
    assert [len(kept.judgement(one).findings) for one in kept.runs(other)] == [1] * 4
    assert len(kept.readings(SOURCE, "leaf01", 1e12)) == 4


def test_an_unchecked_fabric_does_not_keep_partitions_forever(engine: Engine, kept: Store) -> None:
    now_s = time.time()
    gone = Source("gone")
    for weeks in (8, 0):
        save(kept, now_s - weeks * WEEK_S, gone if weeks else SOURCE)
    before = partitions(engine, "netkit_runs")
    with engine.begin() as connection:
        connection.execute(text("UPDATE netkit_sources SET held_until_s = :t WHERE fabric = 'gone'"), {"t": now_s - 1})
    save(kept, now_s + 1)
    assert partitions(engine, "netkit_runs") == before[1:]


def test_during_a_read_nothing_is_dropped_and_saving_continues(engine: Engine, kept: Store) -> None:
    now_s = time.time()
    save(kept, now_s - 8 * WEEK_S)
    before = partitions(engine, "netkit_runs")
    with reading(engine) as connection:
        connection.execute(text("SELECT count(*) FROM netkit_runs")).all()
        save(kept, now_s)
        assert partitions(engine, "netkit_runs") == before
        assert len(kept.runs(SOURCE)) == 1
    save(kept, now_s + 1)
    assert partitions(engine, "netkit_runs") == before[1:]

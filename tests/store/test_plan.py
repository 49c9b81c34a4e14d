"""No page of serve reads a whole table of PostgreSQL, and no query looks at partitions of other times."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from netkit.serve import api, page
from netkit.serve.fabrics import Fabrics
from netkit.serve.metrics import metrics_text
from netkit.serve.now import ServedFabric
from netkit.serve.record import Records, StoreReader
from netkit.store.store import open_store
from tests.store.filled import DAYS, FABRICS, RUNS_A_DAY, fill
from tests.store.postgres import Server
from tests.store.runs import DAY_S

pytestmark = pytest.mark.daemon
MOST_SMALL = 500
"""Rows of a table that a scan may read: it is a few pages."""


@dataclass
class Watched:
    """A filled store, and the queries that others send to it."""

    where: str
    engine: Engine
    now_s: float
    sent: list[tuple[str, Any]] = field(default_factory=list)

    def plans(self, act: Callable[[], object]) -> list[Any]:
        """Return the plans of the queries that something sends."""
        self.sent.clear()
        act()
        found = [one for one in self.sent if one[0].startswith("SELECT") and " netkit_" in one[0]]
        assert found
        with self.engine.connect() as connection:
            explained = [connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {sql}", given) for sql, given in found]
            return [json.loads(json.dumps(one.scalar()))[0]["Plan"] for one in explained]

    def relations(self, act: Callable[[], object], table: str) -> set[str]:
        """Return the partitions of a table that the queries of something look at."""
        nodes = [one for plan in self.plans(act) for one in walked(plan)]
        names = {one["Relation Name"] for one in nodes if "Relation Name" in one}
        return {one for one in names if one.rpartition("_")[0] == table}


def walked(plan: Any) -> Iterator[Any]:
    yield plan
    for one in plan.get("Plans", ()):
        yield from walked(one)


@pytest.fixture(scope="module")
def watched(server: Server) -> Iterator[Watched]:
    where, now_s = server.database(), time.time() - 60
    engine = fill(where, now_s)
    found = Watched(where, engine, now_s)

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        found.sent.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)
    engine.dispose()


@pytest.fixture
def served(watched: Watched) -> ServedFabric:
    return ServedFabric(Records(StoreReader(watched.where), FABRICS[3], Path("/nonexistent")))


def test_no_page_and_no_answer_scans_a_table(watched: Watched, served: ServedFabric) -> None:
    fabrics = Fabrics([served], served.records.store)
    middle = served.records.runs(1000)[-1].name

    def everything() -> None:
        fresh = ServedFabric(Records(StoreReader(watched.where), FABRICS[3], Path("/nonexistent")))
        page.overview(fresh)
        page.overview(fresh, middle)
        page.fabrics(fabrics)
        metrics_text(fabrics.every())
        for answer in (api.now, api.causes, api.runs, api.findings, api.states):
            answer(fresh, [])
        api.runs(fresh, [("before", middle), ("limit", "500")])
        api.findings(fresh, [("run", middle)])
        fresh.records.silences()
        with open_store(watched.where) as store:
            store.readings(FABRICS[3], "leaf007", watched.now_s)
            store.counters(FABRICS[3])
            store.outbox_of(FABRICS[3]).waiting()

    plans = watched.plans(everything)
    assert len(fabrics.every()) == len(FABRICS)
    with watched.engine.connect() as connection:
        rows = connection.execute(text("SELECT relname, reltuples FROM pg_class WHERE relkind = 'r'"))
        sizes: dict[str, float] = {one.relname: one.reltuples for one in rows}
    assert sum(size for name, size in sizes.items() if name.startswith("netkit_runs")) == 12 * DAYS * RUNS_A_DAY
    scanned = {
        (one["Relation Name"], sizes[one["Relation Name"]])
        for plan in plans
        for one in walked(plan)
        if one["Node Type"] == "Seq Scan" and sizes[one["Relation Name"]] > MOST_SMALL
    }
    assert scanned == set()
    read = {name.rpartition("_")[0] for plan in plans for one in walked(plan) if (name := one.get("Relation Name", ""))}
    assert {"netkit_runs", "netkit_findings", "netkit_readings", "netkit_readings_hourly"} <= read
    assert "netkit_judgements" not in read, "a page needs no whole judgement"


def test_only_partitions_of_the_asked_time_are_looked_at(watched: Watched) -> None:
    with open_store(watched.where) as store:
        middle = store.runs(FABRICS[3], 1000)[-1]
        all_weeks = watched.relations(lambda: store.runs(FABRICS[3]), "netkit_runs")
        assert len(all_weeks) in {18, 19, 20}
        month = watched.relations(lambda: store.runs(FABRICS[0]), "netkit_runs")
        assert len(month) in {5, 6, 7}, "this fabric keeps its runs for a month"
        assert month < all_weeks
        assert len(watched.relations(lambda: store.judgement(middle), "netkit_judgements")) == 1
        assert len(watched.relations(lambda: store.judgement(middle), "netkit_runs")) == 1
        assert len(watched.relations(lambda: store.open_now(FABRICS[3]), "netkit_findings")) == 1
        before = watched.relations(lambda: store.readings(FABRICS[3], "leaf007", middle.taken_s), "netkit_readings")
        every = watched.relations(lambda: store.readings(FABRICS[3], "leaf007", watched.now_s), "netkit_readings")
        assert before < every
        assert len(every) - len(before) == round((watched.now_s - middle.taken_s) / DAY_S / 7)
        later = watched.relations(lambda: store.runs(FABRICS[3], 5, after=middle), "netkit_runs")
        assert later < all_weeks


def test_pages_of_a_filled_store_are_correct(watched: Watched, served: ServedFabric) -> None:
    with open_store(watched.where) as store:
        found = store.runs(FABRICS[3])
        assert len(found) == store.number_of_runs(FABRICS[3]) == DAYS * RUNS_A_DAY
        assert [one.taken_s for one in found] == sorted((one.taken_s for one in found), reverse=True)
        paged = list(found[:1])
        while part := store.runs(FABRICS[3], 500, after=paged[-1]):
            paged += part
        assert paged == list(found)
        assert len(store.runs(FABRICS[0])) in {30 * RUNS_A_DAY, 30 * RUNS_A_DAY + 1}
        assert len(store.judgement(found[1000]).findings) == 40
        assert store.run(FABRICS[3], found[1000].name) == found[1000]
        assert store.run(FABRICS[4], found[1000].name) is None
        days = {int(one.at_s // DAY_S) for one in store.readings(FABRICS[3], "leaf007", watched.now_s + 1)}
        assert len(days) in {DAYS, DAYS + 1}
    assert api.now(served, [])["counts"]["fail"] == 1

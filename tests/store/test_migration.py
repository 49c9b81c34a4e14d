"""From every earlier revision to this one, with data in the tables."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, MetaData, Table, insert, inspect, text

from netkit.errors import StoreError
from netkit.facts import Sample
from netkit.judge import Verdict, fail
from netkit.judge.delta import Earlier
from netkit.store import CheckRun, Counts, row, schema
from netkit.store.database import MIGRATIONS, connectable, reading, revision_of, upgrade, url_of, writing
from netkit.store.outbox import Memory, NotifyDecision
from netkit.store.partition import PARTITIONED, PlaceFilter, StoredPage, attach
from netkit.store.record import judgement_data, packed
from netkit.store.state import Key, KnownSilence, silence_data
from netkit.store.store import open_store
from tests.command import Forked
from tests.lab.running import until
from tests.store.postgres import Server
from tests.store.runs import BEGAN_S, DAY_S, SOURCE, judgement, lit, measured, result, run, save, snapshot

REVISIONS = [one.revision for one in reversed(list(ScriptDirectory(str(MIGRATIONS)).walk_revisions()))]
SAID = judgement(result("leaf01", fail("swp1", "down", "plug it in")))
SEEN = snapshot(leaf01=lit("leaf01", -1.0))


@pytest.fixture
def engine(where: str) -> Iterator[Engine]:
    found = connectable(url_of(where))
    yield found
    found.dispose()


OWN = {"fabric": SOURCE.fabric, "lab": SOURCE.lab}
AT = {"check_name": "links.up", "device": "leaf01", "place": "swp1"}
DOWN = KnownSilence("silence", ("links.up",), ("leaf01",), "ann")
BAD = Counts(examined=3, failures=1)
ROWS: dict[str, dict[str, Any]] = {
    "netkit_runs": {
        **{
            name: value
            for name, value in row.run_row(replace(run(), counts=BAD)).items()
            if name not in {"name", "site"}
        },
        "judgement": judgement_data(SAID),
    },
    "netkit_findings": {**AT, "run": 1, "number": 0, "taken_s": BEGAN_S, "verdict": "fail", "text": "down"},
    "netkit_readings": {
        **OWN,
        "device": "leaf01",
        "hour": int(BEGAN_S // 3600),
        "day": int(BEGAN_S // 86_400),
        "at_s": BEGAN_S,
        "data": packed({"values": {"swp1/1": {"rx_dbm": -1.0}}, "serials": {"swp1": "S1"}}),
    },
    "netkit_judgements": {"run": 1, "part": 0, "taken_s": BEGAN_S, "bad": 1, "data": judgement_data(SAID)},
    "netkit_counters": {**OWN, "device": "leaf01", "at_s": 1.0, "boot": "b", "uptime_s": None, "data": packed({})},
    "netkit_states": {**OWN, **AT, "verdict": 3, "since_s": BEGAN_S, "seen_s": BEGAN_S, "text": "down"},
    "netkit_told": {**OWN, **AT, "data": "reported"},
    "netkit_silences": {**OWN, "id": "s1", "ended_s": None, "data": silence_data(DOWN)},
    "netkit_outbox": {
        **OWN,
        **dict.fromkeys(("due_s", "claimed_until_s"), 0.0),
        "receiver": "noc",
        "queued_s": BEGAN_S,
        "message": "",
        "attempts": 0,
        "data": packed("a"),
    },
}
"""What an earlier netkit wrote into each table, without the site."""


def filled(connection: Connection, saved: CheckRun) -> None:
    """Insert a row into each existing table, with its existing columns."""
    found = MetaData()
    found.reflect(connection, only=lambda name, _: name in ROWS)
    if connection.dialect.name == "postgresql" and revision_of(connection) >= "0006":
        for name in PARTITIONED:
            attach(connection, name, BEGAN_S)
    for table in found.sorted_tables:
        given = {**ROWS[table.name], "site": "", **({"name": saved.name} if "name" in table.c else {})}
        connection.execute(insert(table).values({name: value for name, value in given.items() if name in table.c}))


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_a_store_of_an_earlier_netkit_is_upgraded_with_what_is_in_it(where: str, engine: Engine, revision: str) -> None:
    saved = replace(run(), counts=BAD)
    with writing(engine) as connection:
        upgrade(connection, revision)
        assert revision_of(connection) == revision
        filled(connection, saved)
    with open_store(where) as store:
        assert store.runs(SOURCE) == (saved,)
        assert store.judgement(saved) == SAID
        plain = fail("swp1", "down", device="leaf01")._replace(check="links.up")
        assert store.findings(saved, PlaceFilter()) == StoredPage((plain,), 1), "without what had no column"
        if revision >= "0004":
            (cause,) = store.open_now(SOURCE).causes
            assert (cause.group.head.remedy, cause.run) == ("plug it in", saved.name), "from the judgement"
        assert store.readings(SOURCE, "leaf01", 1e12) == [measured(BEGAN_S, -1.0)]
        assert store.runs(replace(SOURCE, site="tokyo")) == ()
        if revision >= "0004":
            assert store.counters(SOURCE) == {"leaf01": Earlier(Sample(1.0, {}), "b")}
            assert [(one.key.id, one.verdict, one.text) for one in store.states(SOURCE).items] == [
                ("links.up[leaf01] swp1", Verdict.FAIL, "down")
            ]
            assert store.silences(SOURCE) == {"s1": DOWN}
            assert [one.receiver for one in store.outbox_of(SOURCE).waiting()] == ["noc"]
            reported: list[Memory] = []
            outbox = store.outbox_of(SOURCE)
            claimed = outbox.claim("noc", BEGAN_S, 60)
            assert claimed is not None
            assert claimed.bodies == ("a",)

            def decide(memory: Memory, *_: object) -> NotifyDecision:
                reported.append(memory)
                return NotifyDecision({}, ())

            store.save(run(BEGAN_S + 30), SAID, SEEN, decide=decide)
            assert reported == [{Key("links.up", "leaf01", "swp1"): "reported"}]
        later = save(store, BEGAN_S + 60, result("leaf01"))
        assert store.runs(SOURCE)[0] == later
    with reading(engine) as connection:
        assert revision_of(connection) == schema.HEAD == REVISIONS[-1]
        assert compare_metadata(MigrationContext.configure(connection, opts=OPTIONS), schema.metadata) == []


def test_readings_of_a_day_and_of_the_last_hours_are_those_that_were_kept(where: str, engine: Engine) -> None:
    hours = {day: (9, 3, 5) if day % 2 else (7,) for day in range(4)}
    first = int(BEGAN_S // 3600)
    with writing(engine) as connection:
        upgrade(connection, "0005")
        table = Table("netkit_readings", MetaData(), autoload_with=connection)
        for device in ("leaf01", "leaf02"):
            for number in (day * 24 + hour for day, some in hours.items() for hour in some):
                taken = {"hour": first + number, "at_s": BEGAN_S + number * 3600}
                own = {**OWN, "site": "", "device": device, "data": ROWS["netkit_readings"]["data"]}
                connection.execute(insert(table).values({**own, **taken}))
    with open_store(where) as store:
        save(store, BEGAN_S + 4 * DAY_S)
        for device in ("leaf01", "leaf02"):
            found = [round((one.at_s - BEGAN_S) / 3600) for one in store.readings(SOURCE, device, 1e12)]
            assert found == [7, 24 + 3, 48 + 7, 72 + 3, 72 + 5, 72 + 9]


OPTIONS = {
    "version_table": schema.VERSION_TABLE,
    "include_name": lambda name, kind, _: kind != "table" or re.fullmatch(r"netkit_[a-z_]+", str(name)),
}


def contents(connection: Connection) -> list[object]:
    return [connection.execute(table.select()).all() for table in schema.metadata.sorted_tables]


def test_opening_again_changes_nothing(where: str, engine: Engine) -> None:
    with open_store(where) as store:
        save(store, BEGAN_S, result("leaf01", fail("swp1", "down")), leaf01=lit("leaf01", -1.0))
    with reading(engine) as connection:
        before = contents(connection)
    with open_store(where):
        pass
    with writing(engine) as connection:
        upgrade(connection)
    with reading(engine) as connection:
        assert contents(connection) == before


def test_a_failed_upgrade_leaves_the_store_as_it_was(where: str, engine: Engine) -> None:
    with writing(engine) as connection:
        upgrade(connection, REVISIONS[0])
        filled(connection, run())
        # It conflicts with what the next revision creates last.
        connection.execute(text("CREATE TABLE netkit_states (x INTEGER)"))
    with pytest.raises(StoreError, match=r"netkit_states.* already exists"):
        open_store(where)
    with reading(engine) as connection:
        assert revision_of(connection) == REVISIONS[0]
        assert connection.execute(text("SELECT count(*) FROM netkit_runs")).scalar() == 1
    with writing(engine) as connection:
        connection.execute(text("DROP TABLE netkit_states"))
    with open_store(where) as store:
        assert len(store.runs(SOURCE)) == 1


MANY = 2000


def test_an_upgrade_that_is_killed_leaves_everything_and_the_next_one_completes_it(
    server: Server, tmp_path: Path
) -> None:
    where = server.database()
    engine = connectable(url_of(where))
    with writing(engine) as connection:
        upgrade(connection, "0005")
        filled(connection, run())
        names = ", ".join(column["name"] for column in inspect(connection).get_columns("netkit_runs"))
        copies = (
            names.replace("id,", "n + 1,")
            .replace(" name,", " name || n,")
            .replace("taken_s", f"taken_s + n * {DAY_S / 8}")
        )
        many = f"SELECT {copies} FROM netkit_runs, generate_series(1, {MANY}) n"  # noqa: S608 (of columns)
        connection.execute(text(f"INSERT INTO netkit_runs ({names}) {many}"))
        before = connection.execute(text("SELECT name, taken_s, judgement FROM netkit_runs ORDER BY id")).all()
    for blocked in ("netkit_runs", "netkit_readings", "netkit_version"):
        with engine.begin() as holding:  # an upgrade gets as far as this table; the last is written when all is copied
            holding.execute(text(f"LOCK TABLE {blocked} IN SHARE MODE"))
            with (tmp_path / "output").open("wb") as output:
                process = Forked(partial(open_store, where), output)
            until(partial(_is_waiting, engine), f"the upgrade waits for {blocked}")
            process.kill()
            process.wait(60)
            if blocked == "netkit_readings":
                holding.execute(text("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted"))
        with writing(engine) as connection:
            assert revision_of(connection) == "0005"
            found = connection.execute(text("SELECT name, taken_s, judgement FROM netkit_runs ORDER BY id")).all()
            assert found == before
    with open_store(where) as store:
        assert [(one.name, one.taken_s) for one in reversed(store.runs(SOURCE))] == [
            (name, at) for name, at, _ in before
        ]
        assert [store.judgement(one) for one in store.runs(SOURCE)[:3]] == [SAID] * 3
        with reading(engine) as connection:
            parts = connection.execute(text("SELECT count(*) FROM netkit_judgements")).scalar()
            assert (revision_of(connection), parts) == (schema.HEAD, MANY + 1)
        later = save(store, BEGAN_S + 300 * DAY_S)
        assert store.runs(SOURCE, 1) == (later,)
    engine.dispose()


def _is_waiting(engine: Engine) -> bool:
    with reading(engine) as connection:
        return bool(connection.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")))


def test_a_store_of_a_newer_netkit_is_left_alone(where: str, engine: Engine) -> None:
    with open_store(where) as store:
        save(store, BEGAN_S)
    with writing(engine) as connection:
        connection.execute(text("UPDATE netkit_version SET version_num = '9999'"))
    with reading(engine) as connection:
        before = contents(connection)
    for is_new_allowed in (True, False):
        with pytest.raises(StoreError) as refused:
            open_store(where, is_new_allowed=is_new_allowed)
        known = f"revision 9999; this one knows {schema.HEAD}"
        reported = f"the store was written by a newer netkit ({known}); use that netkit, or another store"
        assert str(refused.value) == reported
        assert refused.value.exit_code == 3
    with reading(engine) as connection:
        assert contents(connection) == before

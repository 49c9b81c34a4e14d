"""A PostgreSQL store with several fabrics and months of runs, filled by the server itself in seconds."""

from dataclasses import replace

from sqlalchemy import Engine, text

from netkit.facts import Snapshot
from netkit.judge import fail
from netkit.judge.check import Layer
from netkit.judge.run import Judgement
from netkit.store import CheckRun, Counts, Source
from netkit.store.database import connectable, url_of
from netkit.store.partition import PARTITIONED, WEEKLY, attach
from netkit.store.record import Retention
from netkit.store.store import open_store
from tests.store.runs import DAY_S, counted, judgement, lit, result, run, snapshot

FABRICS = tuple(Source(f"fabric{number:02}", site=f"site{number % 3}") for number in range(12))
DAYS, RUNS_A_DAY, DEVICES, BAD = 120, 24, 100, 40
SHORT = Retention(runs_s=30 * DAY_S, findings_s=14 * DAY_S, readings_s=30 * DAY_S)
LONG = Retention.of_all(DAYS * DAY_S)


def fill(where: str, now_s: float) -> Engine:
    """Save a run of each fabric as a check does, and copy it to earlier times."""
    engine = connectable(url_of(where))
    with open_store(where) as store:
        for source in FABRICS:
            store.save(newest(source, now_s), *seen(now_s), keep=SHORT if source == FABRICS[0] else LONG)
    with engine.begin() as connection:
        for table, how in PARTITIONED.items():
            span_s = how.width * how.unit_s
            for number in range(1, int(DAYS * DAY_S / span_s) + 2) if how is WEEKLY or how.column == "day" else ():
                attach(connection, table, now_s - number * span_s)
        given = {"now": now_s, "step": DAY_S / RUNS_A_DAY, "runs": DAYS * RUNS_A_DAY - 1, "days": DAYS}
        for statement in (RUNS, JUDGEMENTS, FINDINGS, READINGS):
            connection.execute(text(statement), given)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    return engine


def newest(source: Source, now_s: float) -> CheckRun:
    layers: dict[str, Layer] = {f"topic{number}.check": "link" for number in range(40)}
    return replace(run(now_s), source=source, layers=layers, counts=Counts(examined=9, failures=BAD), devices=DEVICES)


def seen(now_s: float) -> tuple[Judgement, Snapshot]:
    """Return a judgement and its snapshot."""
    names = [f"leaf{number:03}" for number in range(DEVICES)]
    bad = {name: [fail(f"swp{port}", "down") for port in range(BAD // 20)] for name in names[:20]}
    devices = {name: replace(counted(name, now_s, 1), facts=lit(name, -1.0).facts) for name in names}
    return judgement(*(result(name, *bad.get(name, ())) for name in names)), snapshot(now_s, **devices)


RUNS = """
INSERT INTO netkit_runs (name, taken_s, fabric, lab, site, window_s, devices, layers, verdict, exit_code, examined,
  skipped, absent, unreached, warnings, failures, errors, silenced, intent, version)
SELECT name || '-' || n, :now - n * :step, fabric, lab, site, window_s, devices, layers, verdict, exit_code, examined,
  skipped, absent, unreached, warnings, failures, errors, silenced, intent, version
FROM netkit_runs, generate_series(1, :runs) n WHERE taken_s = :now"""
JUDGEMENTS = """
INSERT INTO netkit_judgements (run, part, taken_s, bad, data)
SELECT r.id, j.part, r.taken_s, j.bad, j.data FROM netkit_runs r, netkit_judgements j
WHERE j.run = (SELECT min(id) FROM netkit_runs) AND r.taken_s < :now"""
FINDINGS = """
INSERT INTO netkit_findings (run, number, taken_s, check_name, device, place, verdict, text, silenced, data)
SELECT r.id, f.number, r.taken_s, f.check_name, f.device, f.place, f.verdict, f.text, f.silenced, f.data
FROM netkit_runs r, netkit_findings f
WHERE f.run = (SELECT min(id) FROM netkit_runs) AND r.taken_s < :now AND f.number < 10"""
READINGS = """
INSERT INTO netkit_readings (fabric, lab, site, device, day, at_s, data)
SELECT fabric, lab, site, device, day - n, at_s - n * 86400.0, data
FROM netkit_readings, generate_series(1, :days) n"""

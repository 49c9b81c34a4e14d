"""Tables that grow are partitioned by time on PostgreSQL; judgements in parts; readings by day and by hour.

Everything is copied by the database within the transaction of the upgrade: it is whole, or as it was.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from netkit.store.partition import PARTITIONED, attach

# ruff: noqa: S608 (names are constants)

revision = "0006"
down_revision = "0005"
OWNER = ("fabric", "lab", "site")
COUNTS = ("examined", "skipped", "absent", "unreached", "warnings", "failures", "errors", "silenced")
RUN = ("id", "name", *OWNER, "taken_s", "window_s", "devices", "layers", "verdict", "exit_code", *COUNTS)
FINDING = ("check_name", "device", "place", "verdict", "text")
BEFORE = ("netkit_findings", "netkit_runs", "netkit_readings")
KEEP_S, DAY_S = 90 * 86_400.0, 86_400.0
FLOAT, NAME = sa.Float(53), sa.String(255)


def upgrade() -> None:
    """Copy the tables into new ones."""
    is_server = op.get_bind().dialect.name == "postgresql"
    op.drop_index("netkit_runs_by_time", "netkit_runs")
    for table in BEFORE:
        op.rename_table(table, f"{table}_before")
        if is_server:
            op.execute(f"ALTER INDEX {table}_pkey RENAME TO {table}_before_pkey")
    _make_tables(is_server=is_server)
    columns = ", ".join((*RUN, "intent", "version"))
    _copy("netkit_runs", columns, f"SELECT {columns} FROM netkit_runs_before")
    bad = "warnings + failures + errors + unreached + silenced"
    judgements = f"SELECT id, 0, taken_s, {bad}, judgement FROM netkit_runs_before"
    _copy("netkit_judgements", "run, part, taken_s, bad, data", judgements)
    findings = ", ".join(f"f.{name}" for name in FINDING)
    joined = f"SELECT f.run, f.number, r.taken_s, {findings} FROM netkit_findings_before f JOIN netkit_runs_before r"
    _copy("netkit_findings", f"run, number, taken_s, {', '.join(FINDING)}", f"{joined} ON r.id = f.run")
    _copy_readings()
    whole = f"{', '.join(OWNER)}, saved_s, held_until_s, runs_from_s, findings_from_s, readings_from_s, hourly_from_s"
    held_s = time.time() + KEEP_S
    owners = f"SELECT {', '.join(OWNER)}, max(taken_s), {held_s!r}, 0, 0, 0, max(taken_s) - {DAY_S!r}"
    op.execute(f"INSERT INTO netkit_sources ({whole}) {owners} FROM netkit_runs_before GROUP BY {', '.join(OWNER)}")
    for table in BEFORE:
        op.drop_table(f"{table}_before")
    if is_server:
        sequence = "pg_get_serial_sequence('netkit_runs', 'id')"
        op.execute(f"SELECT setval({sequence}, (SELECT coalesce(max(id), 0) + 1 FROM netkit_runs), false)")


def _copy_readings() -> None:
    owner = ", ".join(OWNER)
    number = f"row_number() OVER (PARTITION BY {owner}, device, hour / 24 ORDER BY hour)"
    newest = f"max(at_s) OVER (PARTITION BY {owner})"
    read = f"(SELECT r.*, {number} AS number, {newest} AS newest_s FROM netkit_readings_before r) AS r"
    days = f"SELECT {owner}, device, hour / 24, at_s, data FROM {read} WHERE number = 1"
    _copy("netkit_readings", f"{owner}, device, day, at_s, data", days)
    hours = f"SELECT {owner}, device, hour, at_s, data FROM {read} WHERE at_s >= newest_s - {DAY_S!r}"
    _copy("netkit_readings_hourly", f"{owner}, device, hour, at_s, data", hours)


def _copy(table: str, columns: str, query: str) -> None:
    """Copy rows; on PostgreSQL, into partitions that are made for them."""
    connection, how = op.get_bind(), PARTITIONED[table]
    if connection.dialect.name == "postgresql":
        place = columns.split(", ").index(how.column)
        names = ", ".join(f"c{number}" for number in range(columns.count(",") + 1))
        slot = f"SELECT DISTINCT floor(c{place} / {how.width}.0) FROM ({query}) AS q ({names})"
        for found in connection.scalars(sa.text(slot)).all():
            attach(connection, table, float(found) * how.width * how.unit_s)
    op.execute(f"INSERT INTO {table} ({columns}) {query}")


def _make_tables(*, is_server: bool) -> None:
    owner = [*OWNER]
    ends = ("runs", "findings", "readings", "hourly")
    times = ["saved_s", "held_until_s", *(f"{name}_from_s" for name in ends)]
    _make("netkit_sources", owner, *_texts(owner), *(_required(name, FLOAT) for name in times))
    at = ["taken_s"] if is_server else []  # SQLite numbers rows only in a key of one column
    _make(
        "netkit_runs",
        ["id", *at],
        sa.Column("id", sa.Integer, autoincrement=True),
        _required("name", sa.String(64)),
        *_texts(owner),
        _required("taken_s", FLOAT),
        _required("window_s", FLOAT),
        _required("devices", sa.Integer()),
        _required("layers", sa.Text()),
        *(_required(name, sa.Integer()) for name in ("verdict", "exit_code", *COUNTS)),
        _required("intent", sa.String(64)),
        _required("version", sa.String(64)),
        sa.UniqueConstraint("name", "taken_s", name="netkit_runs_by_name"),
        by="taken_s",
    )
    op.create_index("netkit_runs_by_time", "netkit_runs", [*owner, "taken_s"])
    key = [_required(name, sa.Integer(), autoincrement=False) for name in ("run", "part", "bad")]
    data = ("data", sa.LargeBinary())
    taken, blob = _required("taken_s", FLOAT), _required(*data)
    _make("netkit_judgements", ["run", "part", *at], *key[:2], taken, key[2], blob, by="taken_s")
    names = (*_texts(("check_name", "device", "place")), _required("verdict", sa.String(16)))
    number = [_required(name, sa.Integer(), autoincrement=False) for name in ("run", "number")]
    text, taken = _required("text", sa.Text()), _required("taken_s", FLOAT)
    _make("netkit_findings", ["run", "number", *at], *number, taken, *names, text, by="taken_s")
    for table, unit in (("netkit_readings", "day"), ("netkit_readings_hourly", "hour")):
        columns = (*_texts((*owner, "device")), _required(unit, sa.Integer(), autoincrement=False))
        _make(table, [*owner, "device", unit], *columns, _required("at_s", FLOAT), _required(*data), by=unit)


def _make(table: str, key: Sequence[str], *columns: Any, by: str = "") -> None:
    options: dict[str, Any] = {"postgresql_partition_by": f"RANGE ({by})"} if by else {}
    op.create_table(table, *columns, sa.PrimaryKeyConstraint(*key, name=f"{table}_pkey"), **options)


def _texts(names: Iterable[str]) -> list[sa.Column[Any]]:
    return [_required(name, NAME) for name in names]


def _required(name: str, kind: Any, **options: Any) -> "sa.Column[Any]":
    return sa.Column(name, kind, nullable=False, **options)

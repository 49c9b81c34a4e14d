"""The tables in their newest revision. A change here needs a new file in `migrations/versions/`.

A judgement is stored whole, in parts, to be shown again; its findings are stored as rows, too, for pages of `serve` and
the user's own queries. On PostgreSQL, tables that grow with time are partitioned by it (`partition.py`), and their keys
end with it.
"""

from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
)

from netkit.store.record import Source

HEAD = "0007"
"""The revision of this version of netkit."""
VERSION_TABLE = "netkit_version"
LOCK = 0x6E65746B6974
"""The advisory lock on PostgreSQL that writers share, and that whoever changes tables has alone."""
metadata = MetaData()


def _of_source(*, is_key: bool) -> tuple[Column[str], ...]:
    return tuple(Column(name, String(255), nullable=False, primary_key=is_key) for name in ("fabric", "lab", "site"))


def is_of(table: Table, source: Source) -> ColumnElement[bool]:
    """Select the rows of a source."""
    return and_(table.c.fabric == source.fabric, table.c.lab == source.lab, table.c.site == source.site)


sources = Table(
    "netkit_sources",
    metadata,
    *_of_source(is_key=True),
    Column("saved_s", Float(53), nullable=False),
    Column("held_until_s", Float(53), nullable=False),
    Column("runs_from_s", Float(53), nullable=False),
    Column("findings_from_s", Float(53), nullable=False),
    Column("readings_from_s", Float(53), nullable=False),
    Column("hourly_from_s", Float(53), nullable=False),
)
"""What each source keeps: rows before these times are expired, even where they are still stored."""
KEPT = {
    "netkit_runs": "runs_from_s",
    "netkit_judgements": "findings_from_s",
    "netkit_findings": "findings_from_s",
    "netkit_readings": "readings_from_s",
    "netkit_readings_hourly": "hourly_from_s",
}
"""Table that grows → the column with the time from which its rows are kept."""
runs = Table(
    "netkit_runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False),
    *_of_source(is_key=False),
    Column("taken_s", Float(53), nullable=False),
    Column("window_s", Float(53), nullable=False),
    Column("devices", Integer, nullable=False),
    Column("layers", Text, nullable=False),
    Column("verdict", Integer, nullable=False),
    Column("exit_code", Integer, nullable=False),
    *(
        Column(name, Integer, nullable=False)
        for name in ("examined", "skipped", "absent", "unreached", "warnings", "failures", "errors", "silenced")
    ),
    Column("intent", String(64), nullable=False),
    Column("version", String(64), nullable=False),
    Index("netkit_runs_by_time", "fabric", "lab", "site", "taken_s"),
    UniqueConstraint("name", "taken_s", name="netkit_runs_by_name"),
)
judgements = Table(
    "netkit_judgements",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("taken_s", Float(53), nullable=False),
    Column("bad", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""`bad` is the number of findings worse than skipped, and of unreached devices, in a part."""
findings = Table(
    "netkit_findings",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("taken_s", Float(53), nullable=False),
    Column("check_name", String(255), nullable=False),
    Column("device", String(255), nullable=False),
    Column("place", String(255), nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("silenced", String(64), nullable=False, server_default=""),
    Column("data", LargeBinary),
)
"""`silenced` is the ID of what silences it, `data` the whole finding; runs of an earlier netkit have neither."""
readings = Table(
    "netkit_readings",
    metadata,
    *_of_source(is_key=True),
    Column("device", String(255), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("at_s", Float(53), nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""The first of each day."""
hourly = Table(
    "netkit_readings_hourly",
    metadata,
    *_of_source(is_key=True),
    Column("device", String(255), primary_key=True),
    Column("hour", Integer, primary_key=True),
    Column("at_s", Float(53), nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""The first of each hour of the last day."""
counters = Table(
    "netkit_counters",
    metadata,
    *_of_source(is_key=True),
    Column("device", String(255), primary_key=True),
    Column("at_s", Float(53), nullable=False),
    Column("boot", Text, nullable=False),
    Column("uptime_s", Float(53)),
    Column("data", LargeBinary, nullable=False),
)
states = Table(
    "netkit_states",
    metadata,
    *_of_source(is_key=True),
    Column("check_name", String(255), primary_key=True),
    Column("device", String(255), primary_key=True),
    Column("place", String(255), primary_key=True),
    Column("verdict", Integer, nullable=False),
    Column("since_s", Float(53), nullable=False),
    Column("seen_s", Float(53), nullable=False),
    Column("text", Text, nullable=False),
)
notified = Table(
    "netkit_told",
    metadata,
    *_of_source(is_key=True),
    Column("check_name", String(255), primary_key=True),
    Column("device", String(255), primary_key=True),
    Column("place", String(255), primary_key=True),
    Column("data", Text, nullable=False),
)
silences = Table(
    "netkit_silences",
    metadata,
    *_of_source(is_key=True),
    Column("id", String(64), primary_key=True),
    Column("ended_s", Float(53)),
    Column("data", Text, nullable=False),
)
outbox = Table(
    "netkit_outbox",
    metadata,
    Column("id", Integer, primary_key=True),
    *_of_source(is_key=False),
    Column("receiver", String(255), nullable=False),
    Column("queued_s", Float(53), nullable=False),
    Column("message", String(64), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_s", Float(53), nullable=False),
    Column("claimed_until_s", Float(53), nullable=False),
    Column("sent_s", Float(53)),
    Column("data", LargeBinary, nullable=False),
    Index("netkit_outbox_by_receiver", "fabric", "lab", "site", "receiver"),
)

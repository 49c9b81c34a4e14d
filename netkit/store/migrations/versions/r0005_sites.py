"""The site of everything a fabric owns; empty for what one machine stored."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
KEYED = {
    "netkit_readings": ("device", "hour"),
    "netkit_counters": ("device",),
    "netkit_states": ("check_name", "device", "place"),
    "netkit_told": ("check_name", "device", "place"),
    "netkit_silences": ("id",),
}
"""Tables whose key begins with the owner, and the rest of the key."""
INDEXED = {"netkit_runs": ("by_time", "taken_s"), "netkit_outbox": ("by_receiver", "receiver")}


def upgrade() -> None:
    """Add the column, to keys and indexes too."""
    for table, rest in KEYED.items():
        _add_to_key(table, ("fabric", "lab", "site", *rest))
    for table, (suffix, last) in INDEXED.items():
        op.add_column(table, _site())
        op.drop_index(f"{table}_{suffix}", table)
        op.create_index(f"{table}_{suffix}", table, ["fabric", "lab", "site", last])


def _site() -> "sa.Column[str]":
    return sa.Column("site", sa.String(255), nullable=False, server_default="")


def _add_to_key(table: str, key: tuple[str, ...]) -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.add_column(table, _site())
        op.drop_constraint(f"{table}_pkey", table)
        op.create_primary_key(f"{table}_pkey", table, list(key))
        return
    before = sa.Table(table, sa.MetaData(), autoload_with=connection)
    names = ", ".join(f'"{column.name}"' for column in before.columns)
    columns = [sa.Column(one.name, one.type, primary_key=one.name in key, nullable=one.nullable) for one in before.c]
    # SQLite cannot change a key in place.
    op.rename_table(table, f"{table}_before")
    op.create_table(table, *columns[:2], sa.Column("site", sa.String(255), primary_key=True), *columns[2:])
    op.execute(f"INSERT INTO {table} ({names}, site) SELECT {names}, '' FROM {table}_before")  # noqa: S608 (constants)
    op.drop_table(f"{table}_before")

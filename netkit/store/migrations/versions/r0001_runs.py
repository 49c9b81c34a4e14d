"""Runs with their judgement, findings, and what modules measured."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
COUNTS = ("examined", "skipped", "absent", "unreached", "warnings", "failures", "errors")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "netkit_runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False, unique=True),
        sa.Column("fabric", sa.String(255), nullable=False),
        sa.Column("lab", sa.String(255), nullable=False),
        sa.Column("taken_s", sa.Float(53), nullable=False),
        sa.Column("window_s", sa.Float(53), nullable=False),
        sa.Column("devices", sa.Integer, nullable=False),
        sa.Column("layers", sa.Text, nullable=False),
        sa.Column("verdict", sa.Integer, nullable=False),
        sa.Column("exit_code", sa.Integer, nullable=False),
        *(sa.Column(name, sa.Integer, nullable=False) for name in COUNTS),
        sa.Column("intent", sa.String(64), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("judgement", sa.LargeBinary, nullable=False),
    )
    op.create_index("netkit_runs_by_time", "netkit_runs", ["fabric", "lab", "taken_s"])
    op.create_table(
        "netkit_findings",
        sa.Column("run", sa.Integer, sa.ForeignKey("netkit_runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("check_name", sa.String(255), nullable=False),
        sa.Column("device", sa.String(255), nullable=False),
        sa.Column("place", sa.String(255), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_table(
        "netkit_readings",
        sa.Column("fabric", sa.String(255), primary_key=True),
        sa.Column("lab", sa.String(255), primary_key=True),
        sa.Column("device", sa.String(255), primary_key=True),
        sa.Column("hour", sa.Integer, primary_key=True),
        sa.Column("at_s", sa.Float(53), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )

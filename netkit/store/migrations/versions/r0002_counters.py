"""The last counters of each device, and the state of each check at each place."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "netkit_counters",
        sa.Column("fabric", sa.String(255), primary_key=True),
        sa.Column("lab", sa.String(255), primary_key=True),
        sa.Column("device", sa.String(255), primary_key=True),
        sa.Column("at_s", sa.Float(53), nullable=False),
        sa.Column("boot", sa.Text, nullable=False),
        sa.Column("uptime_s", sa.Float(53)),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "netkit_states",
        sa.Column("fabric", sa.String(255), primary_key=True),
        sa.Column("lab", sa.String(255), primary_key=True),
        sa.Column("check_name", sa.String(255), primary_key=True),
        sa.Column("device", sa.String(255), primary_key=True),
        sa.Column("place", sa.String(255), primary_key=True),
        sa.Column("verdict", sa.Integer, nullable=False),
        sa.Column("since_s", sa.Float(53), nullable=False),
        sa.Column("seen_s", sa.Float(53), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )

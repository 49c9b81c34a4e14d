"""Queued notifications, and the last notification of each state."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "netkit_told",
        sa.Column("fabric", sa.String(255), primary_key=True),
        sa.Column("lab", sa.String(255), primary_key=True),
        sa.Column("check_name", sa.String(255), primary_key=True),
        sa.Column("device", sa.String(255), primary_key=True),
        sa.Column("place", sa.String(255), primary_key=True),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.create_table(
        "netkit_outbox",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("fabric", sa.String(255), nullable=False),
        sa.Column("lab", sa.String(255), nullable=False),
        sa.Column("receiver", sa.String(255), nullable=False),
        sa.Column("queued_s", sa.Float(53), nullable=False),
        sa.Column("message", sa.String(64), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_s", sa.Float(53), nullable=False),
        sa.Column("claimed_until_s", sa.Float(53), nullable=False),
        sa.Column("sent_s", sa.Float(53)),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index("netkit_outbox_by_receiver", "netkit_outbox", ["fabric", "lab", "receiver"])

"""What silences and acknowledgements covered in the last run, and how many findings of each run are silenced."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table, and add the column."""
    op.create_table(
        "netkit_silences",
        sa.Column("fabric", sa.String(255), primary_key=True),
        sa.Column("lab", sa.String(255), primary_key=True),
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("ended_s", sa.Float(53)),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.add_column("netkit_runs", sa.Column("silenced", sa.Integer, nullable=False, server_default="0"))

"""The whole of each finding beside its columns, so that a page of them is read without the judgement they are in."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns; findings of earlier runs lack the remedy, the evidence and who silenced them."""
    op.add_column("netkit_findings", sa.Column("silenced", sa.String(64), nullable=False, server_default=""))
    op.add_column("netkit_findings", sa.Column("data", sa.LargeBinary()))

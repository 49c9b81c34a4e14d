"""Bringing a store to the tables this netkit works on. Whoever comes second finds it done."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from netkit.errors import Problem, StoreError
from netkit.store.record import DamagedError
from netkit.store.schema import HEAD, VERSION_TABLE

MIGRATIONS = Path(__file__).parent / "migrations"


def revision_of(connection: Connection) -> str:
    """Return the revision a store has; empty when nothing of netkit is in it yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return ""
    found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608 (a constant)
    return str(found or "")


def upgrade(connection: Connection, revision: str = HEAD) -> None:
    """Upgrade a store within the transaction of a connection, which must keep others from writing."""
    found = revision_of(connection)
    if found == HEAD:
        return
    # Here, because it takes longer than all the rest, and a store is upgraded once.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    known = {one.revision for one in ScriptDirectory.from_config(config).walk_revisions()}
    if found and found not in known:
        what = f"the store was written by a newer netkit (revision {found}; this one knows {HEAD})"
        raise StoreError(Problem(what, "use that netkit, or another store"))
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        raise DamagedError(f"what it says of its revision makes no sense: {error}") from None

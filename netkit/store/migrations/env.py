"""Alembic's entry point: it runs within the connection and transaction of `netkit.store.database`."""

from alembic import context

from netkit.store.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()

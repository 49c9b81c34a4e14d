"""Alembic's entry: the connection, and with it the transaction, is that of `netkit.store.database`."""

from alembic import context

from netkit.store.schema import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()

"""The database under the store: a SQLite file or PostgreSQL, its migrations, and its errors in plain words."""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Integer,
    LargeBinary,
    NullPool,
    RowMapping,
    Select,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from netkit.errors import Problem, StoreError
from netkit.store.record import DamagedError
from netkit.store.schema import HEAD, VERSION_TABLE

BUSY_S = 60
"""How long a writer waits for another one."""
CONNECT_S = 10
WRITES = "netkit_writes"
LOCK = 0x6E65746B6974
"""The number of the lock that writers hold on PostgreSQL."""
SCHEMES = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
LONGEST_COMPLAINT = 200
LAST_S = 253_402_300_800
"""No time and no length of time that is stored reaches the year 10,000."""
INSTALL = "install netkit with its extra postgresql: pip install '.[postgresql]' in its checkout"
REMEDIES = (
    ("disk is full", "make room; what was stored before is still there"),
    ("no space left", "make room; what was stored before is still there"),
    ("disk i/o error", "see whether its disk is full or broken; what was stored before is still there"),
    ("readonly database", "check permissions of the file and of its folder"),
    ("unable to open", "check the path and its permissions"),
    ("not a database", "name a file that does not exist yet, or a store"),
    ("malformed", "restore it from a backup"),
    ("locked", "another process has been writing for long: try again"),
    ("password", "see the user and password in the URL, in PGPASSWORD or in ~/.pgpass"),
)


def url_of(where: str) -> URL:
    """Return the database that a user named by a URL or a file."""
    if "://" not in where:
        return URL.create("sqlite", database=str(Path(where).expanduser().absolute()))
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        raise StoreError(Problem("the URL of the store cannot be read", "postgresql://USER@HOST/DATABASE")) from None
    url = url.set(drivername=SCHEMES.get(url.drivername, url.drivername))
    if url.drivername == "sqlite" and url.database in {None, "", ":memory:"}:
        raise StoreError(Problem("a store in memory is gone at once", "name a file"))
    if url.drivername not in {"sqlite", "postgresql+psycopg"}:
        raise StoreError(Problem(f"no store in {url.drivername}", "use a file, or postgresql://USER@HOST/DATABASE"))
    return url


def file_of(url: URL) -> Path | None:
    """Return the file a database is in; None when it is not in one."""
    return Path(url.database) if url.drivername == "sqlite" and url.database else None


def connectable(url: URL) -> Engine:
    """Return what connects to a database; nothing is connected yet."""
    if url.drivername == "sqlite":
        engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_S})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        return create_engine(url, connect_args={"connect_timeout": CONNECT_S})
    except ModuleNotFoundError:
        raise StoreError(Problem("PostgreSQL needs psycopg", INSTALL)) from None


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where they are said to, so that tables are made in one too
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    """BEGIN IMMEDIATE serialises writers; a transaction that has read already could not wait for another writer."""
    is_writing = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Give a connection that sees one state of the store."""
    with plain_errors(engine), engine.execution_options(**_steady(engine)).connect() as connection, connection.begin():
        yield connection


def _steady(engine: Engine) -> dict[str, str]:
    return {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}


@contextlib.contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Give a connection that nobody else writes beside; all of it is stored, or nothing."""
    with plain_errors(engine), engine.execution_options(**{WRITES: True}).begin() as connection:
        if engine.dialect.name != "sqlite":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
        yield connection


@contextlib.contextmanager
def plain_errors(engine: Engine) -> Iterator[None]:
    """Raise StoreError with one line for whatever the database reports."""
    try:
        yield
    except DamagedError as error:
        raise StoreError(Problem(f"the store {_shown(engine.url)}: {error}", "restore it from a backup")) from None
    except SQLAlchemyError as error:
        what = str(error.orig if isinstance(error, DBAPIError) else error)
        said = " ".join(what.split())[:LONGEST_COMPLAINT]
        raise StoreError(Problem(f"the store {_shown(engine.url)}: {said}", _remedy(said, engine.url))) from None


def rows(connection: Connection, query: Select[Any]) -> Sequence[RowMapping]:
    """Return what a query finds. DamagedError when a value is not of the type of its column: SQLite takes any."""
    result = connection.execute(query)
    try:
        found = result.mappings().all()
    except (TypeError, ValueError, OverflowError, MemoryError):  # of what makes values of a type
        raise DamagedError("a row holds a value of another type than its column") from None
    for column in query.selected_columns:
        for one in found:
            if not _is_sound(one[str(column.key)], column):
                where = f"{column.table.name}.{column.name}" if isinstance(column, Column) else str(column.key)
                raise DamagedError(f"a value of {where} is not of the type of that column")
    return found


def _is_sound(value: object, column: ColumnElement[Any]) -> bool:
    kind = column.type
    if value is None:
        return not isinstance(column, Column) or bool(column.nullable)
    if isinstance(kind, Integer):
        return type(value) is int
    if isinstance(kind, Float):
        return isinstance(value, int | float) and abs(value) < LAST_S  # and so it is a number
    return isinstance(value, bytes if isinstance(kind, LargeBinary) else str)


def _shown(url: URL) -> str:
    hidden = {name: "***" for name in url.query if "password" in name.lower()}
    return str(file_of(url) or url.update_query_dict(hidden).render_as_string(hide_password=True))


def _remedy(said: str, url: URL) -> str:
    usual = "see whether the server runs, and lets you in" if file_of(url) is None else "see whether it is a store"
    return next((remedy for sign, remedy in REMEDIES if sign in said.lower()), usual)


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

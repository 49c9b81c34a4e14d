"""The database under the store: a SQLite file or PostgreSQL, its migrations, and its errors in plain words."""

import contextlib
import fcntl
import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

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
    Table,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from netkit.errors import Problem, StoreError
from netkit.private import open_file
from netkit.store.record import DamagedError, Source, batched
from netkit.store.schema import HEAD, LOCK, VERSION_TABLE

T = TypeVar("T")
BUSY_S = 60
"""How long a writer waits for another one."""
CONNECT_S = 10
WRITES = "netkit_writes"
AHEAD_S = 60.0
"""Tolerance for times ahead of now: a run beyond it was stored under a wrong clock, and precedes nothing."""
BATCH = 500
"""Rows that are made and sent at a time."""
MOST_TRIES = 8
TRANSIENT = {"40001", "40P01", "55P03", "57P01", "57P02", "57P03", "08003", "08006", "23514"}
"""Errors after which PostgreSQL wants a transaction again: deadlocks, a server that restarts, and a partition that was
dropped meanwhile."""
SCHEMES = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}
LONGEST_COMPLAINT = 200
LAST_S = 253_402_300_800
"""The year 10000: above any stored time or duration."""
INSTALL = "install netkit with its extra postgresql: pip install '.[postgresql]' in its checkout"
REMEDIES = (
    ("disk is full", "make room; earlier data is intact"),
    ("no space left", "make room; earlier data is intact"),
    ("disk i/o error", "check whether its disk is full or broken; earlier data is intact"),
    ("readonly database", "check permissions of the file and of its folder"),
    ("unable to open", "check the path and its permissions"),
    ("not a database", "name a file that does not exist yet, or a store"),
    ("malformed", "restore it from a backup"),
    ("locked", "another process has been writing for a long time: try again"),
    ("password", "check the user and password in the URL, in PGPASSWORD or in ~/.pgpass"),
)


def url_of(where: str) -> URL:
    """Parse a URL or a file name."""
    if "://" not in where:
        return URL.create("sqlite", database=str(Path(where).expanduser().absolute()))
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        raise StoreError(Problem("the URL of the store cannot be read", "postgresql://USER@HOST/DATABASE")) from None
    url = url.set(drivername=SCHEMES.get(url.drivername, url.drivername))
    if url.drivername == "sqlite" and url.database in {None, "", ":memory:"}:
        raise StoreError(Problem("a store in memory would not persist", "name a file"))
    if url.drivername not in {"sqlite", "postgresql+psycopg"}:
        what = f"{url.drivername} is not supported as a store"
        raise StoreError(Problem(what, "use a file, or postgresql://USER@HOST/DATABASE"))
    return url


def file_of(url: URL) -> Path | None:
    """The file of a database; None for a server."""
    return Path(url.database) if url.drivername == "sqlite" and url.database else None


def connectable(url: URL) -> Engine:
    """The engine of a database, without connecting."""
    if url.drivername == "sqlite":
        engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_S})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # a lost connection is reported or repeated here
    try:
        return create_engine(url, connect_args={"connect_timeout": CONNECT_S}, pool_pre_ping=True)
    except ModuleNotFoundError:
        raise StoreError(Problem("PostgreSQL needs psycopg", INSTALL)) from None


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # begin transactions explicitly, so that creating tables is in one, too
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction; IMMEDIATE serialises writers, since one that has read could not wait for another."""
    is_writing = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a connection that sees one state of the store."""
    options = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    with plain_errors(engine), engine.execution_options(**options).connect() as connection, connection.begin():
        yield connection


@contextlib.contextmanager
def writing(engine: Engine, source: Source | None = None) -> Iterator[Connection]:
    """Open a connection for an atomic transaction: alone for a source, or for everything."""
    with plain_errors(engine), _writing(engine, source) as connection:
        yield connection


@contextlib.contextmanager
def _writing(engine: Engine, source: Source | None) -> Iterator[Connection]:
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        if engine.dialect.name != "sqlite":
            shared = "" if source is None else "_shared"
            connection.execute(text(f"SELECT pg_advisory_xact_lock{shared}({LOCK})"))
            if source is not None:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({source.number('write')})"))
        yield connection


def written(engine: Engine, source: Source, work: Callable[[Connection], T]) -> T:
    """Run a transaction of a source, and again while the server asks for that."""

    def transaction() -> T:
        with _writing(engine, source) as connection:
            return work(connection)

    return repeated(engine, transaction)


def repeated(engine: Engine, work: Callable[[], T]) -> T:
    """Do something, and again while the server breaks it off."""
    with plain_errors(engine):
        for attempt in range(1, MOST_TRIES):
            try:
                return work()
            except DBAPIError as error:
                if not error.connection_invalidated and getattr(error.orig, "sqlstate", None) not in TRANSIENT:
                    raise
            time.sleep(random.uniform(0.0, 0.05 * 2**attempt))  # noqa: S311 (no secret)
        return work()


@contextlib.contextmanager
def plain_errors(engine: Engine) -> Iterator[None]:
    """Raise a one-line StoreError for any error of the database."""
    try:
        yield
    except DamagedError as error:
        raise StoreError(Problem(f"the store {_shown(engine.url)}: {error}", "restore it from a backup")) from None
    except UnicodeDecodeError:  # SQLite quotes a damaged name in its complaint
        what = f"the store {_shown(engine.url)}: a name in it is not text"
        raise StoreError(Problem(what, "restore it from a backup")) from None
    except SQLAlchemyError as error:
        what = str(error.orig if isinstance(error, DBAPIError) else error)
        message = " ".join(what.split())[:LONGEST_COMPLAINT]
        usual = (
            "check that it is a store" if file_of(engine.url) else "check that the server runs and accepts the login"
        )
        remedy = next((remedy for sign, remedy in REMEDIES if sign in message.lower()), usual)
        raise StoreError(Problem(f"the store {_shown(engine.url)}: {message}", remedy)) from None


def rows(connection: Connection, query: Select[Any]) -> Sequence[RowMapping]:
    """Run a query; DamagedError if a value does not have the type of its column, which SQLite does not enforce."""
    result = connection.execute(query)
    try:
        found = result.mappings().all()
    except (TypeError, ValueError, OverflowError, MemoryError):  # raised by converters of column types
        raise DamagedError("a row contains a value of the wrong type for its column") from None
    for column in query.selected_columns:
        for one in found:
            if not _is_sound(one[str(column.key)], column):
                where = f"{column.table.name}.{column.name}" if isinstance(column, Column) else str(column.key)
                raise DamagedError(f"a value of {where} has the wrong type for that column")
    return found


def _is_sound(value: object, column: ColumnElement[Any]) -> bool:
    kind = column.type
    if value is None:
        return not isinstance(column, Column) or bool(column.nullable)
    if isinstance(kind, Integer):
        return type(value) is int
    if isinstance(kind, Float):
        return isinstance(value, int | float) and abs(value) < LAST_S  # which also excludes NaN
    return isinstance(value, bytes if isinstance(kind, LargeBinary) else str)


def put(
    connection: Connection,
    table: Table,
    given: Iterable[Mapping[str, Any]],
    *,
    wins: Literal["later", "earlier"] = "later",
) -> None:
    """Upsert rows in batches; on a conflict the later or the earlier one in time wins, without a time the new one."""
    writes = sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
    keys = [column.name for column in table.c if column.primary_key]
    new: Any = writes.excluded
    condition = None
    if "at_s" in table.c:
        is_later = (new.at_s >= table.c.at_s) | (table.c.at_s > time.time() + AHEAD_S)
        condition = is_later if wins == "later" else new.at_s < table.c.at_s
    values = {column.name: new[column.name] for column in table.c if not column.primary_key}
    upsert = writes.on_conflict_do_update(index_elements=keys, set_=values, where=condition)
    for batch in batched(given, BATCH):
        connection.execute(upsert, batch)


def add(connection: Connection, table: Table, given: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows in batches."""
    for batch in batched(given, BATCH):
        connection.execute(insert(table), batch)


def _shown(url: URL) -> str:
    hidden = {name: "***" for name in url.query if "password" in name.lower()}
    return str(file_of(url) or url.update_query_dict(hidden).render_as_string(hide_password=True))


MIGRATIONS = Path(__file__).parent / "migrations"


def revision_of(connection: Connection) -> str:
    """The schema revision of a store; empty for a new one."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return ""
    found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608 (a constant)
    return str(found or "")


def upgrade(connection: Connection, revision: str = HEAD) -> None:
    """Upgrade a store within the transaction of a connection, which must keep other writers out."""
    found = revision_of(connection)
    if found == HEAD:
        return
    # Imported here because it is slow, and a store is upgraded only once.
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
        raise DamagedError(f"its revision is invalid: {error}") from None


class BusyError(StoreError):
    """Another run holds the lock."""

    exit_code = 5


@contextmanager
def alone(where: str, source: Source) -> Iterator[None]:
    """Lock out other runs on the same fabric during a block; BusyError if one is in progress."""
    url = url_of(where)
    file = file_of(url)
    with _on_server(url, source) if file is None else _by_file(file, source):
        yield


@contextmanager
def _by_file(store: Path, source: Source) -> Iterator[None]:
    file = store.with_name(f"{store.name}.{source.digest('check').hex()[:12]}.lock")
    try:
        stream = os.fdopen(open_file(file, os.O_WRONLY | os.O_APPEND), "a", encoding="utf-8")
    except OSError as error:
        remedy = "check permissions of the folder of the store"
        raise StoreError(Problem(f"cannot be written: {error.strerror}", remedy, file=str(file))) from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(source) from None
        yield


@contextmanager
def _on_server(url: URL, source: Source) -> Iterator[None]:
    """Hold an advisory lock of the server, which ends with the connection."""
    number = source.number("check")
    engine = connectable(url)
    try:
        with plain_errors(engine):
            connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        with connection:
            with plain_errors(engine):
                is_mine = connection.scalar(text(f"SELECT pg_try_advisory_lock({number})"))
            if not is_mine:
                raise _busy(source)
            yield
    finally:
        engine.dispose()


def _busy(source: Source) -> BusyError:
    what = f"another check of {source.shown} that uses this store is running"
    return BusyError(Problem(what, "nothing was checked; wait for it to finish"))

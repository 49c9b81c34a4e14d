"""One run of checks at a time per fabric or lab in a store. Locks end with their process and are never stale."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, text

from netkit.errors import Problem, StoreError
from netkit.private import open_file
from netkit.store.database import connectable, file_of, plain_errors, url_of
from netkit.store.record import Source


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

"""Fixtures of the store's tests: every supported database."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from netkit.store.store import Store, open_store
from tests.store import postgres

LACKS = postgres.lacks()
if LACKS and os.environ.get("CI"):
    raise RuntimeError(f"the store must be tried on PostgreSQL too: {LACKS}")


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A running PostgreSQL server."""
    if LACKS:
        pytest.skip(LACKS)
    with postgres.server() as running:
        yield running


@pytest.fixture(scope="session")
def file_with_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty store."""
    file = tmp_path_factory.mktemp("tables") / "store.db"
    with open_store(str(file)):
        return file


@pytest.fixture(scope="session")
def database_with_tables(server: postgres.Server) -> str:
    """The name of a database with an empty store."""
    where = server.database()
    with open_store(where):
        return str(make_url(where).database)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.daemon)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new store: in a file, then on a server.

    Tests of the fixture `store` get a copy of one: tests/store/test_migration.py creates and upgrades the tables.
    """
    has_tables = "store" in request.fixturenames
    if request.param == "sqlite":
        file = tmp_path / "store.db"
        if has_tables:
            shutil.copy(request.getfixturevalue("file_with_tables"), file)
        return str(file)
    running: postgres.Server = request.getfixturevalue("server")
    return running.database(request.getfixturevalue("database_with_tables") if has_tables else "template1")


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store in a file, made once: its migrations take longer than most tests."""
    file = tmp_path_factory.mktemp("empty") / "store.db"
    open_store(str(file)).close()
    return file


@pytest.fixture
def store(where: str, empty: Path) -> Iterator[Store]:
    """An open, empty store."""
    if "://" not in where:
        shutil.copy(empty, where)
    with open_store(where) as opened:
        yield opened

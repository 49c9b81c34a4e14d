"""Fixtures of the store's tests: every kind of database there is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.store.store import Store, open_store
from tests.store import postgres

LACKS = postgres.lacks()
if LACKS and os.environ.get("CI"):
    raise RuntimeError(f"the store must be tried on PostgreSQL too: {LACKS}")


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """Return a PostgreSQL that runs."""
    if LACKS:
        pytest.skip(LACKS)
    with postgres.server() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.daemon)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where a store may be made: once in a file, once on a server."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    running: postgres.Server = request.getfixturevalue("server")
    return running.database()


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    """Return an open store with nothing in it."""
    with open_store(where) as opened:
        yield opened

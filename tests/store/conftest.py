"""Fixtures of the store's tests: every supported database."""

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
    """A running PostgreSQL server."""
    if LACKS:
        pytest.skip(LACKS)
    with postgres.server() as running:
        yield running


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.daemon)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new store: in a file, then on a server."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    running: postgres.Server = request.getfixturevalue("server")
    return running.database()


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    """An open, empty store."""
    with open_store(where) as opened:
        yield opened

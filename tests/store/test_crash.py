"""A store after a killed process, on a full disk, and with several writers."""

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import func, select

from netkit.errors import StoreError
from netkit.judge import fail
from netkit.store import CheckRun, Source, schema
from netkit.store.database import connectable, reading, url_of, writing
from netkit.store.store import Store, open_store
from tests.command import Forked
from tests.lab.running import until
from tests.store.runs import BEGAN_S, SOURCE, judgement, result, run, save, snapshot
from tests.store.writer import PORTS, store_runs

KILLS = 4
PATIENCE_S = 120


def writer(where: str, log: Path, source: str = "small", runs: int = 100_000) -> Forked:
    with log.with_suffix(".output").open("wb") as output:
        return Forked(partial(store_runs, where, log, source, runs), output)


def lines(log: Path, word: str) -> list[str]:
    said = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [line.removeprefix(f"{word} ") for line in said if line.startswith(f"{word} ")]


def test_a_process_that_is_killed_loses_at_most_the_run_it_was_storing(where: str, tmp_path: Path) -> None:
    chance = random.Random(5)  # noqa: S311 (moments of a test)
    for number in range(KILLS):
        log, source = tmp_path / f"log{number}", f"fabric{number}"
        process = writer(where, log, source)
        until(lambda log=log: len(lines(log, "stored")) > 1, "two runs stored")  # type: ignore[misc]
        time.sleep(chance.random() * 0.1)
        process.kill()
        process.wait(PATIENCE_S)
        check_whole(where, source, log)


def check_whole(where: str, source: str, log: Path) -> None:
    """Check that all runs reported as stored are complete, and that there is at most one more."""
    with open_store(where) as store:
        found = store.runs(Source(source))
        names = [one.name for one in reversed(found)]
        stored, begun = lines(log, "stored"), lines(log, "begins")
        assert names in (stored, begun)
        newest = str(len(names) - 1)
        states = store.states(Source(source)).items
        assert {state.text for state in states} == {newest}
        assert {finding.text for finding in store.judgement(found[0]).findings} == {newest}
    joined = schema.findings.join(schema.runs, schema.findings.c.run == schema.runs.c.id)
    rows = select(func.count()).select_from(joined).where(schema.runs.c.fabric == source)
    engine = connectable(url_of(where))
    with reading(engine) as connection:
        assert connection.scalar(rows) == PORTS * len(names)
    engine.dispose()


def test_several_write_and_one_reads_at_the_same_time(where: str, tmp_path: Path) -> None:
    processes = [writer(where, tmp_path / f"log{number}", runs=5) for number in range(3)]
    with open_store(where) as store:
        while any(process.poll() is None for process in processes):
            for one in store.runs(SOURCE, 1):
                assert len(store.judgement(one).findings) == PORTS
        assert [process.wait(PATIENCE_S) for process in processes] == [0, 0, 0]
        stored = [name for number in range(3) for name in lines(tmp_path / f"log{number}", "stored")]
        assert sorted(one.name for one in store.runs(SOURCE)) == sorted(stored)
        assert len(stored) == 15


def test_readers_see_nothing_of_a_run_that_is_being_stored(where: str) -> None:
    with open_store(where) as store:
        first = save(store, BEGAN_S)
        engine = connectable(url_of(where))
        with writing(engine) as connection:
            connection.execute(schema.runs.delete())
            assert store.runs(SOURCE) == (first,)
        engine.dispose()
        assert store.runs(SOURCE) == ()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Return a folder on a disk of 400 kB."""
    folder = Path(tempfile.mkdtemp(prefix="nkdisk"))
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)], check=False)
    if made.returncode != 0:
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def test_on_a_full_disk_nothing_that_was_stored_is_lost(small_disk: Path) -> None:
    stored: list[CheckRun] = []
    with open_store(str(small_disk / "store.db")) as store:
        with pytest.raises(StoreError) as refused:
            fill(store, stored)
        assert "database or disk is full; make room; earlier data is intact" in str(refused.value)
        assert refused.value.exit_code == 3
        assert len(stored) > 1
    with open_store(str(small_disk / "store.db"), is_new_allowed=False) as again:
        assert again.runs(SOURCE) == tuple(reversed(stored))
        assert len(again.judgement(stored[0]).findings) == 1


def fill(store: Store, stored: list[CheckRun]) -> None:
    """Store runs until the disk is full, and return those that were stored."""
    chance = random.Random(7)  # noqa: S311 (text that does not compress)
    for number in range(100):
        said = judgement(result("leaf01", fail("swp1", chance.randbytes(9000).hex())))
        saved = run(BEGAN_S + number)
        store.save(saved, said, snapshot(saved.taken_s))
        stored.append(saved)

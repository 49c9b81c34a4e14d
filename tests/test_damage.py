"""Damaged runs and stores: a good answer, or one line that names the file and exit code 3; never a defect."""

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from netkit import deploy
from netkit.deploy import Journal
from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.driver import Driver
from netkit.store import Source
from netkit.store.store import open_store
from tests.command import Done, run
from tests.deploy.scene import change, scene
from tests.store.runs import counted, judgement, lit, result, snapshot
from tests.store.runs import run as stored_run

ROUNDS = int(os.environ.get("NETKIT_FUZZ_ROUNDS", "30"))
VALUES: tuple[object, ...] = (None, True, -1, 10**30, 1.5, float("nan"), "x", "", [], {}, [[]], {"a": None})
RUN = "20260101T000000-aaaa"
COLUMN_VALUES: tuple[object, ...] = (None, "text", -1, 2**62, 1e300, b"\x00\xff", "", 0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder with a finished run, and a store with a run."""
    top = tmp_path_factory.mktemp("whole")
    runs = top / "reference" / "runs"
    with scene() as found:
        journal = Journal(runs / RUN)
        found.apply(journal, limit=("leaf01",))
    with open_store(str(top / "store.db")) as store:
        for number in range(2):
            one = stored_run(1_763_769_600.0 + number, source=Source("reference"))
            seen = snapshot(one.taken_s, leaf01=counted("leaf01", one.taken_s, 5), leaf02=lit("leaf02", -1.0))
            store.save(one, judgement(result("leaf01")), seen)
    return top


def is_good(done: Done, top: Path) -> None:
    assert "Traceback" not in done.stderr
    assert done.returncode in {0, 1, 3, 4}, (done.returncode, done.stdout, done.stderr)
    if done.returncode == 3:
        lines = done.stderr.splitlines()
        assert lines
        assert all(line.startswith("error: ") for line in lines), done.stderr
        assert str(top) in done.stderr or RUN in done.stderr or "run" in lines[-1] or "stor" in lines[-1], done.stderr


def swapped(value: object, chance: random.Random) -> object:
    """Return JSON in which one value is of another type."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(sorted(value))
        return {**value, key: swapped(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], swapped(value[place], chance), *value[place + 1 :]]
    return chance.choice(VALUES)


def harm_file(file: Path, chance: random.Random) -> str:
    data = bytearray(file.read_bytes())
    kind = chance.choice(("flip", "cut", "type", "type", "delete", "folder", "empty"))
    if kind == "flip" and data:
        for _ in range(chance.choice((1, 1, 8))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
    elif kind == "cut":
        file.write_bytes(data[: chance.randrange(len(data) + 1)])
    elif kind == "type" and file.suffix in {".json", ".jsonl"}:
        lines = data.decode().splitlines() if file.suffix == ".jsonl" else [data.decode()]
        place = chance.randrange(len(lines))
        lines[place] = json.dumps(swapped(json.loads(lines[place]), chance))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif kind == "delete":
        file.unlink()
    elif kind == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(b"")
    return f"{kind} of {file.name}"


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_damaged_run_ends_in_plain_lines(seed: int, whole: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311
    top = tmp_path / "state"
    shutil.copytree(whole, top)
    files = sorted(file for file in (top / "reference" / "runs" / RUN).rglob("*") if file.is_file())
    harm = harm_file(chance.choice(files), chance)
    for words in (("history",), ("history", RUN), ("history", RUN, "--format", "json")):
        done = run(*words, "--fabric", "inventory/reference", NETKIT_STATE_DIR=str(top))
        assert done.returncode != 70, (harm, words, done.stderr)
        is_good(done, top)
    journal = Journal(top / "reference" / "runs" / RUN)
    for read in (lambda: deploy.way_back(journal, change("words").fabric, nowhere), journal.orders, journal.entries):
        said = refused(read)
        assert not said or str(top) in said or RUN in said, (harm, said)


def nowhere(name: str) -> Driver:
    raise AccessError(Problem(f"{name}: no address"))


def refused(read: Callable[[], object]) -> str:
    """Return what a refusal says, if it is one of input."""
    try:
        read()
    except NetkitError as error:
        return str(error) if error.exit_code == 3 else f"exit code {error.exit_code}"
    return ""


def harm_store(file: Path, chance: random.Random) -> str:
    if chance.random() < 0.3:
        data = bytearray(file.read_bytes())
        for _ in range(chance.choice((1, 20, 400))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(data[: chance.choice((len(data), chance.randrange(len(data))))])
        return "bytes"
    with sqlite3.connect(file) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = chance.choice(sorted(tables))
        columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
        column, value = chance.choice(columns), chance.choice(COLUMN_VALUES)
        if chance.random() < 0.1:
            store.execute(f"DROP TABLE {table}")
            return f"no {table}"
        try:
            store.execute(f"UPDATE {table} SET {column} = ?", (value,))  # noqa: S608
        except sqlite3.IntegrityError:
            return "refused"
        return f"{table}.{column} = {value!r}"


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_damaged_store_ends_in_plain_lines(seed: int, whole: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311
    top = tmp_path / "state"
    shutil.copytree(whole, top)
    harm = harm_store(top / "store.db", chance)
    for words in (
        ("history", "--checks"),
        ("history", "--checks", "last"),
        ("history", "--checks", "--format", "json"),
        ("report", "last", "-o", tmp_path / "report.html"),
    ):
        done = run(*words, "--fabric", "inventory/reference", NETKIT_STATE_DIR=str(top))
        assert done.returncode != 70, (harm, words, done.stderr)
        is_good(done, top)

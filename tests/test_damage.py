"""Damaged files that netkit stores or reads: a good answer, or plain lines that name the file and exit code 3.

Never a traceback. The lane whole damages more files, NETKIT_FUZZ_ROUNDS=1000 even more.
"""

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit import deploy
from netkit.deploy import Journal, history
from netkit.errors import AccessError, NetkitError, Problem
from netkit.platforms.driver import Driver
from netkit.store import Source
from netkit.store.store import open_store
from tests import intents
from tests.command import Done, run
from tests.deploy.fake import Killed
from tests.deploy.scene import change, scene
from tests.deploy.test_promises import Cut
from tests.lab.running import write_fabric
from tests.plan.scenes import VERSIONS
from tests.plan.test_order import EDITS, TABLE, merged
from tests.store.runs import counted, judgement, lit, result, snapshot
from tests.store.runs import run as stored_run

ROUNDS, DAILY_ROUNDS = int(os.environ.get("NETKIT_FUZZ_ROUNDS", "30")), 10
VALUES: tuple[object, ...] = (None, True, -1, 10**30, 1.5, float("nan"), "x", "", [], {}, [[]], {"a": None})
RUN = "20260101T000000-aaaa"
COLUMN_VALUES: tuple[object, ...] = (None, "text", -1, 2**62, 1e300, b"\x00\xff", "", 0)


SITE, CUT = "small", "20260102T000000-bbbb"
NEWER = ((b'"schema": 2', b'"schema": 3'), (b"netkit-sealed:1:", b"netkit-sealed:2:"), (b'"format": 1', b'"format": 2'))


def seeds(count: int, daily: int) -> list[Any]:
    """Seeds, of which the default lane uses the first ones."""
    return [pytest.param(seed, marks=[pytest.mark.whole] if seed >= daily else []) for seed in range(count)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with a finished run and one that was killed, a store, and a fabric with all its files.

    Its devices refuse every connection.
    """
    top = tmp_path_factory.mktemp("whole")
    runs = top / "state" / SITE / "runs"
    values = intents.on_platform("eos", VERSIONS["eos"], merged(TABLE["small"], EDITS["higher ceilings"]))
    folder = write_fabric(top / "fabric", {**values, "name": SITE})
    with scene("summaries") as found:
        found.apply(Journal(runs / RUN))
    with scene("summaries") as found:
        journal = Cut(runs / CUT, found.time.clock)
        journal.left = 70
        with pytest.raises(Killed):
            found.apply(journal)
        journal.close()
        names = [*found.devices]
    with open_store(str(top / "state" / "store.db")) as store:
        for number in range(2):
            one = stored_run(1_763_769_600.0 + number, source=Source(SITE))
            seen = snapshot(one.taken_s, leaf01=counted("leaf01", one.taken_s, 5), leaf02=lit("leaf02", -1.0))
            store.save(one, judgement(result("leaf01")), seen)
    ports = {platform: {"port": 1} for platform in ("eos", "linux")}
    access = {"addresses": dict.fromkeys(names, "127.0.0.1"), "platforms": ports, "known_hosts": "known_hosts"}
    (folder / "access.yaml").write_text(yaml.safe_dump(access), encoding="utf-8")
    (folder / "known_hosts").write_text("127.0.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==\n", encoding="utf-8")
    (folder / "deploy.yaml").write_text("reason: optional\napproval: {required: never}\n", encoding="utf-8")
    (folder / "allowed_signers").write_text("ann@example.org ssh-ed25519 AAAA\n", encoding="utf-8")
    shutil.copy(runs / RUN / "plan.json", folder / "plan.json")
    return top


def is_good(done: Done) -> None:
    assert "Traceback" not in done.stderr
    assert done.returncode in {0, 1, 3, 4}, (done.returncode, done.stdout, done.stderr)
    if done.returncode == 3:
        assert any(line.startswith("error: ") for line in done.stderr.splitlines()), done.stderr


def swapped(value: object, chance: random.Random) -> object:
    """JSON in which one value has another type."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(sorted(value))
        return {**value, key: swapped(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], swapped(value[place], chance), *value[place + 1 :]]
    return chance.choice(VALUES)


def harm_file(file: Path, chance: random.Random) -> str:
    data = bytearray(file.read_bytes())
    kind = chance.choice(("flip", "cut", "type", "type", "delete", "folder", "pipe", "empty", "newer", "bytes"))
    if kind == "flip" and data:
        for _ in range(chance.choice((1, 1, 8))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
    elif kind == "cut":
        file.write_bytes(data[: chance.randrange(len(data) + 1)])
    elif kind == "type" and data[:1] == b"{":
        lines = data.decode().splitlines() if file.suffix == ".jsonl" else [data.decode()]
        place = chance.randrange(len(lines))
        lines[place] = json.dumps(swapped(json.loads(lines[place]), chance))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif kind == "newer" and any(old in data for old, _ in NEWER):
        for old, new in NEWER:
            data = data.replace(old, new)
        file.write_bytes(data)
    elif kind == "bytes":
        file.write_bytes(bytes(data[:9]) + b"\xff\xfe\x00" + bytes(data[9:]))
    elif kind == "delete":
        file.unlink()
    elif kind == "folder":
        file.unlink()
        file.mkdir()
    elif kind == "pipe":
        file.unlink()
        os.mkfifo(file)
    else:
        file.write_bytes(b"")
    return f"{kind} of {file.name}"


def commands(top: Path) -> dict[str, tuple[tuple[str | Path, ...], ...]]:
    """The commands that read each folder."""
    plan = top / "fabric" / "plan.json"
    return {
        "state": (
            ("history",),
            ("history", RUN),
            ("history", CUT, "--format", "json"),
            ("rollback", RUN, "--yes", "--disruptive"),
            ("rollback", CUT, "--yes", "--disruptive"),
            ("deploy", "--resume", CUT, "--yes"),
            ("deploy", "--resume", "--yes"),
            ("deploy", plan, "--yes", "--disruptive"),
        ),
        "fabric": (
            ("plan",),
            ("deploy", plan, "--yes", "--disruptive"),
            ("deploy", plan, "--yes", "--disruptive", "--approval", top / "fabric" / "allowed_signers"),
            ("approve", plan, "--yes", "--key", top / "fabric" / "known_hosts"),
            ("rollback", RUN, "--yes", "--disruptive"),
        ),
    }


@pytest.mark.parametrize("seed", seeds(ROUNDS // 2, DAILY_ROUNDS // 2))
@pytest.mark.parametrize("place", ["state", "fabric"])
def test_damaged_files_end_in_plain_lines(place: str, seed: int, whole: Path, tmp_path: Path) -> None:
    chance = random.Random(f"{place} {seed}")  # noqa: S311
    top = tmp_path / "top"
    shutil.copytree(whole, top)
    files = sorted(file for file in (top / place).rglob("*") if file.is_file() and file.suffix not in {".db", ".lock"})
    file = chance.choice([file for file in files if file.name != "fabric.yaml"])
    harm = harm_file(file, chance)
    for words in chance.sample(commands(top)[place], 3):
        done = run(*words, "--fabric", top / "fabric", NETKIT_STATE_DIR=str(top / "state"), XDG_CACHE_HOME=str(top))
        assert done.returncode != 70, (harm, words, done.stderr)
        is_good(done)


def test_the_tested_commands_change_no_file(whole: Path, tmp_path: Path) -> None:
    top = tmp_path / "top"
    shutil.copytree(whole, top)
    for words in (words for each in commands(top).values() for words in each[:5]):
        done = run(*words, "--fabric", top / "fabric", NETKIT_STATE_DIR=str(top / "state"), XDG_CACHE_HOME=str(top))
        assert done.returncode in ({0} if words[0] == "history" else {3, 4}), (words, done.stdout, done.stderr)


@pytest.mark.parametrize("seed", seeds(ROUNDS, DAILY_ROUNDS))
def test_a_damaged_run_is_refused_by_every_command_that_reads_it(seed: int, whole: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311
    runs = tmp_path / "runs"
    shutil.copytree(whole / "state" / SITE / "runs", runs)
    files = sorted(file for file in runs.rglob("*") if file.is_file())
    harm = harm_file(chance.choice(files), chance)
    for journal in (Journal(runs / RUN), Journal(runs / CUT)):
        for read in (
            lambda journal=journal: deploy.plan_rollback(journal, change("summaries").fabric, nowhere),
            journal.orders,
            journal.entries,
            journal.provenance,
            journal.outcome,
            journal.undoes,
            journal.is_to_be_undone,
            journal.gone_back,
            lambda: history(runs),
            lambda: deploy.refuse_unsettled(runs),
        ):
            said = refused(read)
            assert not said or str(runs) in said or RUN in said or CUT in said, (harm, said)


def nowhere(name: str) -> Driver:
    raise AccessError(Problem(f"{name}: no address"))


def refused(read: Callable[[], object]) -> str:
    """The text of a refusal, if it is about input."""
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


@pytest.mark.parametrize("seed", seeds(ROUNDS, DAILY_ROUNDS))
def test_a_damaged_store_ends_in_plain_lines(seed: int, whole: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311
    top = tmp_path / "state"
    shutil.copytree(whole, top)
    harm = harm_store(top / "state" / "store.db", chance)
    for words in (
        ("history", "--checks"),
        ("history", "--checks", "last"),
        ("history", "--checks", "--format", "json"),
        ("report", "last", "-o", tmp_path / "report.html"),
    ):
        done = run(*words, "--fabric", top / "fabric", NETKIT_STATE_DIR=str(top / "state"))
        assert done.returncode != 70, (harm, words, done.stderr)
        is_good(done)

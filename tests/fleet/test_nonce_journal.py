"""A worker's journal: a job is carried out once, whatever the broker delivers and whenever the worker dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.fleet import nonce_journal
from netkit.fleet.job import DeployWork, SiteJob
from netkit.fleet.nonce_journal import KEPT_S, MOST_ATTEMPTS, DeliveryState, NonceJournal
from netkit.fleet.settings import FleetError
from tests.fleet.jobs import a_job

JOB = a_job()
DEPLOY = a_job(work=DeployWork(plan="ab" * 16, asked_by="anna@mgmt01"))
NOW_S = float(JOB.issued_s)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "jobs.sqlite"


@pytest.fixture
def journal(file: Path) -> Iterator[NonceJournal]:
    with NonceJournal(file, NOW_S) as found:
        yield found


def reopened(file: Path, job: SiteJob, now_s: float = NOW_S) -> DeliveryState:
    with NonceJournal(file, now_s) as journal:
        return journal.begin(job, now_s)


def test_an_answered_job_is_not_begun_again(journal: NonceJournal, file: Path) -> None:
    assert journal.begin(JOB, NOW_S) is DeliveryState.BEGIN
    journal.answered(JOB.nonce)
    assert journal.begin(JOB, NOW_S) is DeliveryState.ANSWERED
    journal.__exit__()
    assert reopened(file, JOB) is DeliveryState.ANSWERED


@pytest.mark.parametrize("job", [JOB, DEPLOY], ids=["reads", "changes"])
def test_a_job_is_begun_again_a_few_times(file: Path, job: SiteJob) -> None:
    found = [reopened(file, job) for _ in range(MOST_ATTEMPTS + 2)]
    assert found == [DeliveryState.BEGIN] * MOST_ATTEMPTS + [DeliveryState.GIVEN_UP] * 2


def test_a_new_journal_refuses_older_jobs_that_change_devices(file: Path) -> None:
    with NonceJournal(file, NOW_S + 1) as journal:
        assert journal.begin(DEPLOY, NOW_S + 2) is DeliveryState.OLDER
        assert journal.begin(JOB, NOW_S + 2) is DeliveryState.BEGIN
    assert reopened(file, DEPLOY, NOW_S + 3) is DeliveryState.OLDER


def test_entries_outlast_a_clock_that_is_set_back(file: Path) -> None:
    with NonceJournal(file, NOW_S) as journal:
        journal.begin(JOB, NOW_S)
        journal.answered(JOB.nonce)
        journal.begin(a_job(), JOB.deadline_s + KEPT_S)
        assert journal.begin(JOB, NOW_S) is DeliveryState.ANSWERED


def test_old_entries_are_dropped(journal: NonceJournal) -> None:
    journal.begin(JOB, NOW_S)
    journal.answered(JOB.nonce)
    journal.begin(a_job(), JOB.deadline_s + KEPT_S + 1)
    assert journal.begin(JOB, NOW_S) is DeliveryState.BEGIN


def test_the_journal_is_bounded(journal: NonceJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonce_journal, "MOST_ENTRIES", 2)
    assert [journal.begin(job, NOW_S) for job in (JOB, a_job(), a_job(), JOB)] == [
        DeliveryState.BEGIN,
        DeliveryState.BEGIN,
        DeliveryState.FULL,
        DeliveryState.BEGIN,
    ]


def test_two_workers_do_not_share_a_journal(journal: NonceJournal, file: Path) -> None:
    assert journal.begin(JOB, NOW_S) is DeliveryState.BEGIN
    program = "import pathlib, sys, netkit.fleet.nonce_journal as n; n.NonceJournal(pathlib.Path(sys.argv[1]), 0)"
    done = subprocess.run(
        [sys.executable, "-c", program, file], capture_output=True, text=True, check=False, timeout=60
    )
    assert "another worker of this machine uses it; give each worker its own folder: --state" in done.stderr


def test_a_journal_survives_its_worker(file: Path) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        journal = NonceJournal(file, NOW_S)
        journal.begin(JOB, NOW_S)
        journal.answered(JOB.nonce)
        os.write(writer, b"x")
        signal.pause()
    assert os.read(reader, 1) == b"x"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert reopened(file, JOB) is DeliveryState.ANSWERED


def test_a_damaged_journal_is_named(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(FleetError, match=r"jobs\.sqlite: cannot be used: file is not a database; make room or check"):
        NonceJournal(file, NOW_S)


def test_a_journal_is_private(journal: NonceJournal, file: Path) -> None:
    journal.begin(JOB, NOW_S)
    assert [path.stat().st_mode & 0o777 for path in (file.parent, file)] == [0o700, 0o600]

"""The jobs of a worker and their state: a file that distinguishes a replayed job from one that is delivered again.

The broker delivers a job again if its worker died or lost the connection before it acknowledged. Such a
delivery looks like a replay, so the journal decides by what this worker did:

| state | a delivery with this nonce |
| --- | --- |
| none | the job is begun |
| begun | the job is begun again, at most five times in all: a replay gains nothing else |
| answered | dropped: the broker confirmed every answer before this was written |

A job that changes devices and is begun again continues its own run: see netkit/fleet/site_deploy.py.

Entries are kept for a day after the deadline of their job, so that a clock that is set back does not revive one.
"""

import sqlite3
from enum import Enum
from pathlib import Path
from typing import Self

from netkit import private
from netkit.errors import Problem
from netkit.fleet.job import SiteJob
from netkit.fleet.settings import FleetError

MOST_ENTRIES = 1_000_000
MOST_ATTEMPTS = 5
KEPT_S = 24 * 3600
SCHEMA = """
CREATE TABLE IF NOT EXISTS began (since_s INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS job (
  nonce TEXT PRIMARY KEY, deadline_s INTEGER NOT NULL, attempts INTEGER NOT NULL, is_answered INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS job_deadline ON job (deadline_s);
"""


class DeliveryState(Enum):
    """What a delivery of a job is, by the journal."""

    BEGIN = "begin"
    ANSWERED = "answered before"
    GIVEN_UP = f"it was begun {MOST_ATTEMPTS} times, and never finished on this worker"
    OLDER = (
        "it changes devices and is older than this worker's journal, which could not have noted it; "
        "if it has begun a run, `netkit deploy --resume --fleet DIR` continues that"
    )
    FULL = f"this worker's journal holds {MOST_ENTRIES:,} jobs"


class NonceJournal:
    """The journal of one worker; written through to the disk before a job begins."""

    def __init__(self, file: Path, now_s: float) -> None:
        self._file = file
        try:
            private.make_folder(file.parent)
            self._base = sqlite3.connect(file, isolation_level=None, timeout=0)
            private.keep_private(file)
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.executescript(SCHEMA)
            self._base.execute("INSERT INTO began SELECT ? WHERE NOT EXISTS (SELECT 1 FROM began)", (int(now_s),))
            # Takes the exclusive lock, which lasts as long as the connection.
            self._base.execute("UPDATE began SET since_s = since_s")
            (self._since_s,) = self._base.execute("SELECT since_s FROM began").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise self._unusable(error) from None
            what = "another worker of this machine uses it"
            raise FleetError(Problem(what, "give each worker its own folder: --state", file=str(file))) from None
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def begin(self, job: SiteJob, now_s: float) -> DeliveryState:
        """Note that a job begins, unless its delivery must not begin it."""
        try:
            return self._begin(job, now_s)
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _begin(self, job: SiteJob, now_s: float) -> DeliveryState:
        self._base.execute("DELETE FROM job WHERE deadline_s < ?", (int(now_s) - KEPT_S,))
        row = self._base.execute("SELECT attempts, is_answered FROM job WHERE nonce = ?", (job.nonce,)).fetchone()
        delivery = self._of_new(job) if row is None else _of_known(*row)
        if delivery is DeliveryState.BEGIN:
            change = "INSERT INTO job VALUES (?, ?, 1, 0) ON CONFLICT DO UPDATE SET attempts = attempts + 1"
            self._base.execute(change, (job.nonce, job.deadline_s))
        return delivery

    def _of_new(self, job: SiteJob) -> DeliveryState:
        if not job.is_read_only and job.issued_s < self._since_s:
            return DeliveryState.OLDER
        (count,) = self._base.execute("SELECT count(*) FROM job").fetchone()
        return DeliveryState.FULL if count >= MOST_ENTRIES else DeliveryState.BEGIN

    def answered(self, nonce: str) -> None:
        """Note that the broker has confirmed every answer to a job."""
        try:
            self._base.execute("UPDATE job SET is_answered = 1 WHERE nonce = ?", (nonce,))
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError | sqlite3.Error) -> FleetError:
        what = f"cannot be used: {error}"
        remedy = "make room or check permissions; if it is damaged, remove it while no job of this site waits"
        return FleetError(Problem(what, remedy, file=str(self._file)))


def _of_known(attempts: int, is_answered: int) -> DeliveryState:
    if is_answered:
        return DeliveryState.ANSWERED
    return DeliveryState.GIVEN_UP if attempts >= MOST_ATTEMPTS else DeliveryState.BEGIN

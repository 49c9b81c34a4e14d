"""`netkit deploy` on a running lab, killed at arbitrary moments, more than once, and resumed."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.deploy import Journal
from tests.cli.site import PATIENCE_S, Site
from tests.deploy.fleet import Fleet, built
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = needs_lab
SWITCHES = ("leaf01", "leaf02", "spine01", "spine02")
MOST_LINES = 60
"""About as many lines as the journal of a whole run has."""
CONFIRM_WITHIN_S = 30
ROUNDS, KILLS = 3, 2
FIRST_SEED = int(os.environ.get("NETKIT_FIRST_SEED", "0"))
"""Another number selects other moments."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot a small fabric with the intended configurations."""
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), intent()), name="m") as booted:
        yield booted


class Chance:
    """Pseudo-random moments that are the same in every run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 (moments, not secrets)

    def kill(self, site: Site, *words: str) -> int:
        """Start netkit, kill it some lines of its journal and a moment later, and return its exit code:
        it may have finished first."""
        lines, moment_s = self._random.randint(0, MOST_LINES // KILLS), self._random.uniform(0, 0.5)
        before = journal_lines(site)
        process = site.started(*words)
        until(
            lambda: process.poll() is not None or journal_lines(site) >= before + lines, "the run goes on", PATIENCE_S
        )
        time.sleep(moment_s)
        process.kill()
        said, complained = process.communicate(timeout=PATIENCE_S)
        assert process.returncode in {0, -signal.SIGKILL}, said + complained
        return process.returncode


def journal_lines(site: Site) -> int:
    return sum(
        (run / "journal.jsonl").read_bytes().count(b"\n") for run in site.runs() if (run / "journal.jsonl").exists()
    )


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
@pytest.mark.whole
def test_a_run_killed_at_any_moment_is_finished_by_resume(lab: RunningLab, tmp_path: Path, seed: int) -> None:
    site, chance = Site(lab, tmp_path), Chance(seed)
    before = {name: site.location(name) for name in SWITCHES}
    row = f"row {100 + seed}"
    site.move(row)
    ended = chance.kill(site, "deploy", "--yes", "--confirm-within", str(CONFIRM_WITHIN_S))
    for _ in range(KILLS - 1):
        if ended and site.runs():
            ended = chance.kill(site, "deploy", "--resume")
    if seed == FIRST_SEED:
        by_their_timers(site, before, row)
    if ended and site.runs():
        resumed = site.netkit("deploy", "--resume")
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    again = site.netkit("deploy", "--yes")
    assert again.returncode == 0, again.stdout + again.stderr
    assert {site.location(name) for name in SWITCHES} == {row}
    assert "not finished" not in site.netkit("history").stdout


def by_their_timers(site: Site, before: dict[str, str], row: str) -> None:
    """Compare abandoned switches with what they must run once every timer has expired."""
    fleet = Fleet(site.lab, site.home, built(intent()))

    def is_waiting() -> bool:
        return any(is_pending(fleet, name) for name in SWITCHES)

    until(lambda: not is_waiting(), "every timer has run out", PATIENCE_S)
    assert all(site.location(name) in {before[name], row} for name in SWITCHES)
    journal = Journal(site.runs()[-1])
    confirmed = {entry.device for entry in journal.entries() if entry.step == "confirmed"}
    assert {name for name in SWITCHES if site.location(name) == row} >= confirmed


def is_pending(fleet: Fleet, name: str) -> bool:
    driver = fleet.connect(name)
    driver.open()
    try:
        return driver.has_pending_commit()
    finally:
        driver.close()

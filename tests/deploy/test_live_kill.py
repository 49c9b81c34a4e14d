"""Deploys on a running lab that are killed at each step they write down, and gone on with."""

import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.deploy import Journal, Outcome, Result, State
from netkit.deploy.lock import held
from tests.command import ROOT, environment
from tests.deploy.fleet import Fleet, built
from tests.deploy.killed import ONLY_AFTER_A_FAILURE, SPINES, VICTIM, WITH_ANOTHER_TO_COME
from tests.deploy.live_scene import reasons, results, values
from tests.lab.running import RunningLab, needs_lab, running, write_fabric

pytestmark = needs_lab
PATIENCE_S = 300
STEPS = ("preflight", "sample", "drain", "load", "commit", "connect", "verify", "gate")
STEPS_TO_KEEP_IT = ("confirm", "confirmed", "undrain", "end")
ONLY_WITH_A_DRAIN = ("drain", "undrain")
NUMBERS = itertools.count(4)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """Boot a fabric of 2 leaves and 2 spines, as intended."""
    fabric = write_fabric(tmp_path_factory.mktemp("fabric"), values("nvue"))
    with running(fabric, name="k") as booted:
        yield booted


@pytest.fixture
def fleet(four: RunningLab, tmp_path: Path, step: str) -> Fleet:
    """Return the fabric with a change that no test before has made; it takes sessions down where a drain is needed."""
    number = next(NUMBERS)
    felt: dict[str, Any] = {"routing": {"bfd": {"multiplier": number}}}
    changed = values(
        "nvue", felt if step in ONLY_WITH_A_DRAIN else {"services": {"snmp": {"location": f"row {number}"}}}
    )
    write_fabric(tmp_path / "changed", changed)
    return Fleet(four, tmp_path / "runs", built(changed))


def killed(fleet: Fleet, tmp_path: Path, step: str) -> Journal:
    """Deploy in a process that is killed once a step is written, and return its journal."""
    arguments = [fleet.lab.home, fleet.lab.name, tmp_path / "changed" / "fabric.yaml", tmp_path / "runs", step]
    done = subprocess.run(
        [sys.executable, "-m", "tests.deploy.killed", *map(str, arguments)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    (folder,) = (folder for folder in (tmp_path / "runs").iterdir() if folder.is_dir())
    journal = Journal(folder)
    last = [entry.step for entry in journal.entries() if entry.device == VICTIM][-1]
    assert (last, journal.outcome()) == (step, None)
    return journal


def finished(fleet: Fleet, journal: Journal) -> Outcome:
    """Go on with a run; afterwards it has finished, nobody holds the lock, and nothing waits for a confirmation."""
    outcome = fleet.resume(journal)
    assert Journal(journal.folder).outcome() == outcome
    with held(journal.folder.parent, fleet.fabric.name, "next"):
        pass
    assert {name for name in SPINES if is_pending(fleet, name)} == set()
    return outcome


def is_pending(fleet: Fleet, name: str) -> bool:
    driver = fleet.connect(name)
    driver.open()
    try:
        return driver.has_pending_commit()
    finally:
        driver.close()


@pytest.mark.parametrize("step", [*STEPS, *STEPS_TO_KEEP_IT])
def test_a_run_killed_at_any_step_is_finished_by_resume(fleet: Fleet, tmp_path: Path, step: str) -> None:
    outcome = finished(fleet, killed(fleet, tmp_path, step))
    changed = SPINES if step in WITH_ANOTHER_TO_COME else (VICTIM,)
    expected = {**dict.fromkeys(fleet.names, "excluded"), **dict.fromkeys(changed, "done")}
    assert results(outcome) == expected, reasons(outcome)
    assert outcome.exit_code == 0
    assert {device.name for device in fleet.plan().changed} == {*fleet.names} - {*changed}


@pytest.mark.parametrize("step", ONLY_AFTER_A_FAILURE)
def test_a_run_killed_while_it_takes_a_device_back_does_so_when_resumed(
    fleet: Fleet, tmp_path: Path, step: str
) -> None:
    before = fleet.configs()
    outcome = finished(fleet, killed(fleet, tmp_path, step))
    one = outcome.device(VICTIM)
    assert one is not None
    assert (one.result, one.state, one.exit_code) == (Result.REVERTED, State.AS_BEFORE, 1), one.reasons
    assert results(outcome)["spine02"] == "not started"
    assert outcome.exit_code == 1
    assert fleet.configs() == before

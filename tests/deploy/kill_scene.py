"""Shared by the tests of killed deploys: a lab, a deploy that is killed at a journalled step, and a resume."""

import itertools
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from netkit.deploy import Journal, Outcome
from netkit.deploy.lock import lock_fabric
from tests.command import Forked
from tests.deploy.fleet import Fleet, built
from tests.deploy.killed import SPINES, VICTIM, WITH_ANOTHER_TO_COME, deploy_until
from tests.deploy.live_scene import reasons, results, values
from tests.lab.running import RunningLab, running, until, write_fabric

PATIENCE_S = 300
ONLY_WITH_A_DRAIN = ("drain", "undrain", "watch")
NUMBERS = itertools.count(4)


@contextmanager
def four(folder: Path) -> Iterator[RunningLab]:
    """Boot a fabric of 2 leaves and 2 spines with the intended configurations."""
    with running(write_fabric(folder, values("nvue")), name="k") as booted:
        yield booted


def changed(lab: RunningLab, folder: Path, step: str) -> Fleet:
    """The fabric with a change that no earlier test has made; it takes sessions down where a drain is needed."""
    number = next(NUMBERS)
    felt: dict[str, Any] = {"routing": {"bfd": {"multiplier": number}}}
    unfelt: dict[str, Any] = {"services": {"snmp": {"location": f"row {number}"}}}
    intent = values("nvue", felt if step in ONLY_WITH_A_DRAIN else unfelt)
    write_fabric(folder / "changed", intent)
    return Fleet(lab, folder / "runs", built(intent))


def killed(fleet: Fleet, folder: Path, step: str) -> Journal:
    """Deploy in a process that is killed once a step is journalled, and return its journal.

    It starts once the sessions that an earlier deploy took down are back, so that every loss belongs to this one.
    """
    until(lambda: all(has_sessions(fleet, name) for name in SPINES), "the sessions of the spines are back")
    arguments = [fleet.lab.home, fleet.lab.name, folder / "changed" / "fabric.yaml", folder / "runs", step]
    with tempfile.TemporaryFile() as output:
        code = Forked(partial(deploy_until, *map(str, arguments)), output).wait(PATIENCE_S)
        output.seek(0)
        assert code == -signal.SIGKILL, output.read().decode()
    (folder,) = (folder for folder in (folder / "runs").iterdir() if folder.is_dir())
    journal = Journal(folder)
    last = [entry.step for entry in journal.entries() if entry.device == VICTIM][-1]
    assert (last, journal.outcome()) == (step, None)
    return journal


def finished(fleet: Fleet, journal: Journal) -> Outcome:
    """Resume a run; then it has finished, the lock is free, and no commit waits for a confirmation."""
    outcome = fleet.resume(journal)
    assert Journal(journal.folder).outcome() == outcome
    with lock_fabric(journal.folder.parent, fleet.fabric.name, "next"):
        pass
    assert {name for name in SPINES if is_pending(fleet, name)} == set()
    return outcome


def has_sessions(fleet: Fleet, name: str) -> bool:
    """Whether a device has sessions, and every one is established."""
    driver = fleet.connect(name)
    driver.open()
    try:
        return {session.is_established for session in driver.sessions()} == {True}
    finally:
        driver.close()


def is_pending(fleet: Fleet, name: str) -> bool:
    driver = fleet.connect(name)
    driver.open()
    try:
        return driver.has_pending_commit()
    finally:
        driver.close()


def check_finished_after(lab: RunningLab, folder: Path, step: str) -> None:
    """Kill a run at a step, resume it, and assert that the change is on every switch."""
    fleet = changed(lab, folder, step)
    outcome = finished(fleet, killed(fleet, folder, step))
    todo = SPINES if step in WITH_ANOTHER_TO_COME else (VICTIM,)
    expected = {**dict.fromkeys(fleet.names, "excluded"), **dict.fromkeys(todo, "done")}
    assert results(outcome) == expected, reasons(outcome)
    assert outcome.exit_code == 0
    assert {device.name for device in fleet.plan().changed} == {*fleet.names} - {*todo}

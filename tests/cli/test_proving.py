"""`netkit plan --against git:REVISION --prove`: what needs no lab, and what it reports where no lab can run."""

import errno
import json
import signal
import time
from pathlib import Path

import pytest

from netkit.errors import LabError
from netkit.lab import personality
from netkit.lab.folder import LabFolder
from netkit.project.lab import ended_by_signals, shortfalls
from netkit.project.proving import measured
from tests.command import assert_refused, run
from tests.project.test_against import OVERRIDES, Repository


@pytest.fixture
def changed(tmp_path: Path) -> Repository:
    """A repository with one uncommitted change."""
    found = Repository(tmp_path / "repository")
    found.write({})
    found.git("init", "-q", "-b", "main")
    found.commit()
    found.write(OVERRIDES)
    return found


def _unable() -> None:
    personality.PROGRAMS["/nowhere/zebra"] = "frr"


def _full() -> None:
    personality.check = no_room


def no_room() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_without_a_change_no_lab_is_booted(changed: Repository) -> None:
    changed.commit()
    done = changed.plan("--prove")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == ["nothing to prove: the change does not affect any device"]


def test_a_proof_covers_the_whole_change_of_the_repository(changed: Repository) -> None:
    for done in (
        changed.plan("--prove", "--limit", "leaf01"),
        changed.plan("--prove", base="running"),
        run("plan", "--fabric", changed.fabric, "--prove"),
    ):
        assert_refused(done, "--prove tests a whole change against a revision")


def test_a_machine_that_cannot_run_labs_is_reported_in_the_comment(changed: Repository) -> None:
    words = ("plan", "--fabric", changed.fabric, "--against", "git:HEAD", "--prove", "--format")
    done = run(*words, "json", before=_unable)
    assert done.returncode == 3
    found = json.loads(done.stdout)["proof"]
    assert found["is_proven"] is False
    assert found["failures"][0].startswith("the lab needs packages that are not installed: frr")
    comment = run(*words, "markdown", before=_unable).stdout
    assert comment.splitlines()[2].startswith("⚠ **Not proven: the lab needs packages that are not installed: frr")


def test_a_full_machine_is_reported_in_the_comment(changed: Repository) -> None:
    words = ("plan", "--fabric", changed.fabric, "--against", "git:HEAD", "--prove", "--format", "markdown")
    done = run(*words, before=_full)
    assert done.returncode == 3
    said = "⚠ **Not proven: this machine could not run the proof: "
    assert done.stdout.splitlines()[2].startswith(said)
    assert "No space left on device" in done.stdout


def test_ignored_signals_stay_ignored_while_a_lab_runs(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals(LabFolder(tmp_path)):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, signal.SIG_DFL)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_lab_that_boots_too_slowly_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="allow more with --prove-within"):
        shortfalls(LabFolder(tmp_path), print, time.monotonic())


@pytest.mark.parametrize(("is_blocked", "pairs", "blocked"), [(False, 300, 0), (True, 100, 200)])
def test_pairs_that_the_design_isolates_are_not_counted_as_reachable(
    *, is_blocked: bool, pairs: int, blocked: int
) -> None:
    found = {"own": 100, "own_trips": 100, "across": 200, "across_trips": 500, "is_blocked": is_blocked}
    examined = measured({**found, "packet_bytes": 9000, "shortfalls": []}, 8, 2)
    assert (examined.pairs, examined.of_pairs, examined.blocked) == (pairs, pairs if is_blocked else 600, blocked)


def test_a_lab_of_too_few_devices_is_refused_with_the_number_required(changed: Repository) -> None:
    done = changed.plan("--prove", "--prove-devices", "3", "--format", "json")
    assert done.returncode == 3
    least = "a leaf with all switches above it and its hosts has 5 devices"
    said = f"{least}; --prove-devices 5, if this machine has the resources"
    assert json.loads(done.stdout)["proof"]["failures"] == [said]

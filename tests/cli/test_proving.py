"""`netkit plan --against git:REVISION --prove`: what needs no lab, and what is said where none can be had."""

import json
from pathlib import Path

import pytest

from netkit.lab import ability
from tests.cli.test_against import OVERRIDES, Repository
from tests.command import assert_refused, run


@pytest.fixture
def changed(tmp_path: Path) -> Repository:
    """Return a repository with a change in it."""
    found = Repository(tmp_path / "repository")
    found.write({})
    found.git("init", "-q", "-b", "main")
    found.commit()
    found.write(OVERRIDES)
    return found


def _unable() -> None:
    ability.PROGRAMS["/nowhere/zebra"] = "frr"


def test_where_nothing_changes_nothing_is_booted(changed: Repository) -> None:
    changed.commit()
    done = changed.plan("--prove")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == ["nothing to prove: no device would notice the change"]


def test_a_proof_is_of_a_whole_change_of_the_repository(changed: Repository) -> None:
    for done in (
        changed.plan("--prove", "--limit", "leaf01"),
        changed.plan("--prove", base="running"),
        run("plan", "-f", changed.fabric, "--prove"),
    ):
        assert_refused(done, "--prove rolls a whole change")


def test_a_machine_that_cannot_run_labs_is_told_in_the_comment(changed: Repository) -> None:
    words = ("plan", "-f", changed.fabric, "--against", "git:HEAD", "--prove", "--format")
    done = run(*words, "json", before=_unable)
    assert done.returncode == 3
    found = json.loads(done.stdout)["proof"]
    assert found["is_proven"] is False
    assert found["failures"][0].startswith("the lab needs packages that are not installed: frr")
    comment = run(*words, "markdown", before=_unable).stdout
    assert comment.splitlines()[2].startswith("⚠ **Not proven: the lab needs packages that are not installed: frr")


def test_too_few_devices_are_refused_with_the_number_it_takes(changed: Repository) -> None:
    done = changed.plan("--prove", "--prove-devices", "3", "--format", "json")
    assert done.returncode == 3
    said = "a leaf with all above it and its hosts is 5 devices; --prove-devices 5, if this machine can carry them"
    assert json.loads(done.stdout)["proof"]["failures"] == [said]

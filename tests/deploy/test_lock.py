"""One deploy at a time, and no lock that outlives its process."""

import subprocess
import sys
from pathlib import Path

import pytest

from netkit.deploy.lock import LockedError, held
from tests.command import ROOT

HOLD = """
import sys
from pathlib import Path
from netkit.deploy.lock import held
with held(Path(sys.argv[1]), "ai1", "run-7"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Start a process that holds the lock, and wait until it does."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_refusal_names_who_holds_it(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(LockedError) as caught, held(tmp_path, "ai1", "run-8"):
            pass
        assert f"process {process.pid}, run run-7" in str(caught.value)
        with held(tmp_path, "another", "run-9"):
            pass
    finally:
        process.communicate()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.kill()
    process.communicate()
    with held(tmp_path, "ai1", "run-8"), pytest.raises(LockedError, match="run-8"), held(tmp_path, "ai1", "run-9"):
        pass
    with held(tmp_path, "ai1", "run-9"):
        pass


def test_a_name_of_a_fabric_stays_within_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with held(folder, "../strange name/", "run-1"):
        assert [path.parent for path in tmp_path.rglob("*.lock")] == [folder]

"""One deploy at a time, and no lock outlives its process."""

import errno
import getpass
import json
import os
import pwd
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from netkit.deploy.lock import LockedError, is_running, lock_fabric, lock_shared_folder
from tests.command import ROOT

HOLD = """
import sys
from pathlib import Path
from netkit.deploy.lock import lock_fabric
with lock_fabric(Path(sys.argv[1]), "ai1", "run-7"):
    print("held", flush=True)
    sys.stdin.read()
"""


HOLD_FOR_ALL = """
import os, sys
from pathlib import Path
from netkit.deploy.lock import lock_shared_folder
os.setuid(int(sys.argv[2]))
with lock_shared_folder(Path(sys.argv[1]), Path("nowhere"), "ai1"):
    print("held", flush=True)
    sys.stdin.read()
"""
NOBODY = 65534
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")


def holder(folder: Path, program: str = HOLD, user: int = 0) -> subprocess.Popen[str]:
    """Start a process that holds the lock, and wait until it does."""
    words = [sys.executable, "-c", program, str(folder), str(user)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_refusal_names_the_holder(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(LockedError) as caught, lock_fabric(tmp_path, "ai1", "run-8"):
            pass
        who = f"{getpass.getuser()} on {socket.gethostname()}, process {process.pid}, run run-7"
        said = re.escape(f"ai1 is being deployed by {who}, since ") + r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; wait .*"
        assert re.fullmatch(said, str(caught.value))
        with lock_fabric(tmp_path, "another", "run-9"):
            pass
    finally:
        process.communicate()


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.kill()
    process.communicate()
    with (
        lock_fabric(tmp_path, "ai1", "run-8"),
        pytest.raises(LockedError, match="run-8"),
        lock_fabric(tmp_path, "ai1", "run-9"),
    ):
        pass
    with lock_fabric(tmp_path, "ai1", "run-9"):
        pass


def test_the_name_of_a_fabric_cannot_escape_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with lock_fabric(folder, "../strange name/", "run-1"):
        assert [path.parent for path in tmp_path.rglob("*.lock")] == [folder]


@pytest.mark.parametrize("user", [os.getuid(), pytest.param(NOBODY, marks=needs_root)])
def test_users_who_share_the_folder_of_a_fabric_exclude_each_other(tmp_path: Path, user: int) -> None:
    with shared_folder() as shared:
        process = holder(shared, HOLD_FOR_ALL, user)
        try:
            with pytest.raises(LockedError) as caught, lock_shared_folder(shared, tmp_path, "ai1"):
                pass
            name = pwd.getpwuid(user).pw_name
            assert f"ai1 is being deployed from {shared} by {name}, process {process.pid};" in str(caught.value)
            assert list(shared.iterdir()) == []
        finally:
            process.communicate()
        with lock_shared_folder(shared, tmp_path, "ai1"):
            pass


def test_for_one_account_it_is_known_which_run_waits_for_which(tmp_path: Path) -> None:
    with (
        shared_folder() as shared,
        lock_shared_folder(shared, tmp_path, "ai1"),
        lock_fabric(tmp_path, "ai1", "run-8"),
        pytest.raises(LockedError, match="run run-8, since"),
        lock_shared_folder(shared, tmp_path, "ai1"),
    ):
        pass


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that every account may read."""
    with tempfile.TemporaryDirectory(prefix="nks") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_reader_sees_a_run_that_holds_the_lock_and_takes_no_lock(tmp_path: Path) -> None:
    assert is_running(tmp_path, "ai1", "run-7") is False
    process = holder(tmp_path)
    try:
        assert is_running(tmp_path, "ai1", "run-7") is True
        assert is_running(tmp_path, "ai1", "run-8") is False
    finally:
        process.kill()
        process.communicate()
    assert "run-7" in (tmp_path / "ai1.lock").read_text(encoding="utf-8")
    assert is_running(tmp_path, "ai1", "run-7") is False


def test_a_run_of_another_machine_cannot_be_seen(tmp_path: Path) -> None:
    reported = {"user": "alice", "pid": os.getpid(), "host": "elsewhere", "run": "run-7", "since": ""}
    (tmp_path / "ai1.lock").write_text(json.dumps(reported), encoding="utf-8")
    assert is_running(tmp_path, "ai1", "run-7") is None
    (tmp_path / "ai1.lock").write_text('{"run"', encoding="utf-8")
    assert is_running(tmp_path, "ai1", "run-7") is False


@pytest.mark.parametrize("text", ["", '{"run": ', "[" * 100_000, "[]", '{"run": []}', "\0"])
def test_a_damaged_lock_file_names_nobody_and_still_excludes(tmp_path: Path, text: str) -> None:
    with lock_fabric(tmp_path, "ai1", "run-8"):
        (tmp_path / "ai1.lock").write_text(text, encoding="utf-8")
        assert is_running(tmp_path, "ai1", "run-8") is False
        with (
            pytest.raises(LockedError, match="being deployed by a process that has just started"),
            lock_fabric(tmp_path, "ai1", "run-9"),
        ):
            pass


def test_a_lock_that_cannot_be_cleared_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that became read-only: the outcome of the run is not lost for that."""
    with lock_fabric(tmp_path, "ai1", "run-8"):
        monkeypatch.setattr(os, "ftruncate", _read_only)
    monkeypatch.undo()
    with lock_fabric(tmp_path, "ai1", "run-9"):
        pass


def _read_only(*_: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))

"""Runs and stores are private to their owner, whatever the umask, and whoever created their folders before."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.deploy import Journal
from netkit.private import keep_private, make_folder, open_file, read_bytes, read_text
from netkit.project.past import usual_file
from netkit.project.runs import runs_folder
from netkit.store import Source
from netkit.store.database import alone
from netkit.store.store import open_store
from tests.command import run
from tests.deploy.scene import scene


@pytest.fixture(params=[0o000, 0o022, 0o027])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(top: Path) -> dict[str, int]:
    """The permissions of others on a folder and everything in it."""
    return {str(one): stat.S_IMODE(one.stat().st_mode) & 0o077 for one in (top, *top.rglob("*"))}


@pytest.mark.usefixtures("_umask")
def test_a_run_is_private_to_its_owner(tmp_path: Path) -> None:
    top = tmp_path / "state" / "netkit"
    with scene() as found:
        found.apply(Journal.new(top / "ai1" / "runs", found.time.clock))
    found_modes = modes(tmp_path / "state")
    assert len(found_modes) > 10
    assert {name: mode for name, mode in found_modes.items() if mode} == {}


@pytest.mark.usefixtures("_umask")
def test_a_store_is_private_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    make_folder(Path(usual_file()).parent)
    with open_store(usual_file()) as store, alone(usual_file(), Source("ai1")):
        store.runs(Source("ai1"))
        assert set(modes(tmp_path / "state").values()) == {0}
        assert len(modes(tmp_path / "state")) >= 3


def test_permissions_of_existing_files_are_tightened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    runs = tmp_path / "state" / "reference" / "runs"
    runs.mkdir(parents=True)
    store = tmp_path / "state" / "store.db"
    with open_store(str(store)):
        pass
    for path, mode in ((runs.parent, 0o777), (store, 0o644)):
        path.chmod(mode)
    assert runs_folder("reference", "") == runs
    with open_store(str(store), is_new_allowed=False):
        pass
    assert [stat.S_IMODE(path.stat().st_mode) for path in (runs.parent, store)] == [0o700, 0o600]


def test_parent_folders_keep_their_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_folder(tmp_path / "a" / "b")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")] == [
        0o755,
        0o700,
        0o700,
    ]


def test_a_device_file_and_a_missing_path_are_left_alone(tmp_path: Path) -> None:
    keep_private(tmp_path / "missing")
    before = Path("/dev/null").stat().st_mode
    os.close(open_file(Path("/dev/null"), os.O_RDWR))
    assert Path("/dev/null").stat().st_mode == before


def test_a_folder_of_another_account_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder that is somebody else's")
    (tmp_path / "reference").mkdir()
    os.chown(tmp_path / "reference", 4321, 4321)
    (tmp_path / "reference").chmod(0o777)
    tmp_path.chmod(0o755)
    for above in tmp_path.parents:
        above.chmod(above.stat().st_mode | 0o011)
    done = run(
        "history", "--fabric", "inventory/reference", NETKIT_STATE_DIR=str(tmp_path), before=lambda: os.seteuid(4322)
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"error: {tmp_path / 'reference'}: operation not permitted"), done.stderr


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe, device, file = tmp_path / "pipe", tmp_path / "device", tmp_path / "file"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    file.write_bytes(b"caf\xe9")
    for path in (pipe, device):
        with pytest.raises(OSError, match=f"not a regular file: '{path}'"):
            read_bytes(path)
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)
    assert (read_bytes(file), read_text(file, "replace")) == (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}")

"""`netkit snapshot`: where its file goes."""

import os
from pathlib import Path

import pytest

from netkit.cli import snapshot
from netkit.errors import OutputError
from netkit.facts import Snapshot, serial
from netkit.terminal.output import write_whole
from tests.cli.checked import checked
from tests.command import assert_refused, run

NOTHING = Snapshot("small", 1.0, {})


@pytest.mark.parametrize("out", ["", "nowhere/now.json"])
def test_an_unwritable_file_is_refused_before_any_device_is_read(out: str, tmp_path: Path) -> None:
    fabric, _ = checked(tmp_path)
    done = run("snapshot", "-o", tmp_path / out, "--fabric", fabric, "--lab")
    assert_refused(done, f"{tmp_path / out} cannot be written")


def test_a_pipe_stays_a_pipe_and_a_link_stays_a_link(tmp_path: Path) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "file.json"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    snapshot.save(NOTHING, pipe)
    write_whole(pipe, "text")
    assert os.read(reader, 9999) == serial.dump(NOTHING) + b"text"
    os.close(reader)
    file.touch()
    link.symlink_to(file)
    snapshot.save(NOTHING, link)
    assert (pipe.is_fifo(), link.is_symlink(), serial.read(file)) == (True, True, NOTHING)
    write_whole(link, "text")
    assert (link.is_symlink(), file.read_text(encoding="utf-8")) == (True, "text")


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="taken cannot be written"):
        snapshot.save(NOTHING, tmp_path / "taken")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_a_snapshot_with_damaged_differences_is_named(tmp_path: Path) -> None:
    fabric, file = checked(tmp_path)
    file.write_bytes(serial.dump(Snapshot("small", 1.0, {}, plan="x")))
    message = f"{file}: the differences from the intent in it cannot be read: is not a plan"
    assert_refused(run("check", "--from", file, "--fabric", fabric), message)

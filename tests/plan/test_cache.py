"""Compared pairs cached between runs: trusted only from a private file, and a difference is never hidden."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from netkit import plan
from netkit.plan import Plan, Running, serial
from tests.plan.scenes import Staged, staged

SCENE = staged("nvue", "asn")
SAME = {name: Running(dict(files)) for name, files in SCENE.intended.items()}


def planned(known: dict[str, str], running: dict[str, Running], scene: Staged = SCENE) -> Plan:
    return plan.make(scene.fabric, running, scene.intended, known=known)


def test_a_cached_pair_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, str] = {}
    first = planned(known, SAME)
    assert len(known) == len(SAME)
    monkeypatch.setattr(sys.modules["netkit.plan.make"], "compare", None)
    assert planned(known, SAME) == first


def test_differences_are_never_cached() -> None:
    known: dict[str, str] = {}
    planned(known, SCENE.running)
    assert len(known) == 4  # the hosts, which keep what they have
    assert planned(known, SCENE.running) == planned({}, SCENE.running)


def test_an_unread_file_is_never_cached() -> None:
    known: dict[str, str] = {}
    planned(known, {"leaf01": Running({})})
    assert known == {}


def test_pairs_survive_a_round_trip(tmp_path: Path) -> None:
    folder = tmp_path / "netkit"
    pairs = {"a" * 64: "b" * 64 + ":7"}
    serial.save(folder, pairs)
    assert serial.load(folder) == pairs
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / serial.FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == [serial.FILE]


def test_the_newest_pairs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serial, "MOST", 2)
    serial.save(tmp_path, {letter * 64: letter * 64 + ":0" for letter in "abcd"})
    assert list(serial.load(tmp_path)) == ["c" * 64, "d" * 64]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1, "pairs": {}}', "netkit pairs 3", "\xff"])
def test_a_broken_file_is_treated_as_empty(tmp_path: Path, text: str) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / serial.FILE).write_text(text, encoding="utf-8")
    assert serial.load(tmp_path) == {}


def test_pairs_found_by_other_code_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serial.save(tmp_path, {"a" * 64: "b" * 64 + ":7"})
    monkeypatch.setattr(serial, "code", lambda: "c" * 64)
    assert serial.load(tmp_path) == {}


def test_the_code_of_every_platform_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "netkit"
    shutil.copytree(Path(serial.__file__).parent.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(serial, "__file__", str(package / "plan" / "serial.py"))
    seen = {serial.code.__wrapped__()}
    for name in ("platforms/nvue/model.py", "platforms/secrets.py", "plan/make.py"):
        file = package / name
        file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        seen.add(serial.code.__wrapped__())
    assert len(seen) == 4


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    serial.save(tmp_path / "real", {"a" * 64: "b" * 64 + ":7"})
    for name in ("link", "pipe", "folder"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "link" / serial.FILE).symlink_to(tmp_path / "real" / serial.FILE)
    os.mkfifo(tmp_path / "pipe" / serial.FILE)
    (tmp_path / "folder" / serial.FILE).mkdir()
    (tmp_path / "way-round").symlink_to(tmp_path / "real")
    assert [serial.load(tmp_path / name) for name in ("link", "pipe", "folder", "way-round")] == [{}] * 4
    assert serial.load(tmp_path / "real") != {}


def test_a_file_writable_by_others_is_not_trusted(tmp_path: Path) -> None:
    serial.save(tmp_path, {"a" * 64: "b" * 64 + ":7"})
    tmp_path.chmod(0o770)
    assert serial.load(tmp_path) == {}
    tmp_path.chmod(0o700)
    assert serial.load(tmp_path) != {}
    (tmp_path / serial.FILE).chmod(0o666)
    assert serial.load(tmp_path) == {}


def test_an_unwritable_folder_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    serial.save(tmp_path / "file", {"a" * 64: "b" * 64 + ":7"})
    assert serial.load(tmp_path / "file") == {}

"""Configurations from before a run are stored encrypted, and restored byte for byte."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from netkit.deploy import Journal
from netkit.deploy.seal import KEY
from netkit.errors import DeployError
from netkit.plan import Running

RUNNING = Running({"snmpd.conf": 'createUser ops SHA "hidden-word" AES "hidden-too"\n', "frr.conf": None}, "10.3")


def kept(folder: Path, name: str = "run") -> Journal:
    (folder / name / "before").mkdir(parents=True)
    journal = Journal(folder / name)
    journal.keep("leaf01", RUNNING)
    return journal


def test_a_run_holds_no_secret_in_clear_text_and_restores_all(tmp_path: Path) -> None:
    journal = kept(tmp_path)
    files = [file.read_bytes() for file in journal.folder.rglob("*") if file.is_file()]
    assert len(files) == 1
    assert all(b"hidden" not in data for data in files)
    assert Journal(journal.folder).before("leaf01") == RUNNING
    assert (tmp_path / KEY).stat().st_mode & 0o777 == 0o600


def test_one_key_encrypts_all_runs(tmp_path: Path) -> None:
    first = kept(tmp_path, "first")
    key = (tmp_path / KEY).read_bytes()
    kept(tmp_path, "second")
    assert (tmp_path / KEY).read_bytes() == key
    assert first.before("leaf01") == RUNNING


def test_devices_that_are_stored_concurrently_share_the_first_key(tmp_path: Path) -> None:
    journal, together = Journal(tmp_path / "run"), Barrier(16)
    (journal.folder / "before").mkdir(parents=True)

    def keep(name: str) -> None:
        together.wait(timeout=30)
        journal.keep(name, RUNNING)

    names = [f"leaf{number:02d}" for number in range(16)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(keep, names))
    assert [journal.before(name) for name in names] == [RUNNING] * len(names)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run", KEY]


def test_a_run_from_before_encryption_is_read(tmp_path: Path) -> None:
    journal = kept(tmp_path)
    (journal.folder / "before" / "leaf01.json").write_text('{"files": {"a": "b"}, "version": "1"}', encoding="utf-8")
    assert journal.before("leaf01") == Running({"a": "b"}, "1")


@pytest.mark.parametrize("harm", ["flip", "other", "no key", "other key"])
def test_tampered_data_is_refused(tmp_path: Path, harm: str) -> None:
    journal = kept(tmp_path)
    file = journal.folder / "before" / "leaf01.json"
    text = file.read_text(encoding="utf-8")
    if harm == "flip":
        file.write_text(text[:60] + ("A" if text[60] != "A" else "B") + text[61:], encoding="utf-8")
    elif harm == "other":
        journal.keep("leaf02", RUNNING)
        file.write_bytes((file.parent / "leaf02.json").read_bytes())
    elif harm == "no key":
        (tmp_path / KEY).unlink()
    else:
        (tmp_path / KEY).write_bytes(b"x" * 32)
    with pytest.raises(DeployError, match=r"leaf01\.json: (is damaged, or sealed|cannot be opened)") as caught:
        journal.before("leaf01")
    assert caught.value.exit_code == 3

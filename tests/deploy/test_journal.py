"""A run on disk: only complete lines are read, whatever happened to the process that wrote them."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.deploy import ConfigState, DeviceOutcome, DeviceResult, Journal, Provenance
from netkit.deploy.journal import JOURNAL, JournalError, Ledger, lines
from netkit.errors import DeployError, Problem
from netkit.plan import Running
from tests.command import ROOT
from tests.deploy.fake import Killed
from tests.deploy.scene import killing, no_strike, scene
from tests.lanes import examples

FILL = """
import resource, signal, sys
from pathlib import Path
from netkit.deploy.journal import Ledger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
ledger = Ledger(Path(sys.argv[1]))
for letter in "xyz":
    try:
        ledger.add(letter * 60)
        print("taken")
    except OSError:
        print("refused")
"""


def journal(folder: Path) -> Journal:
    (folder / "run" / "before").mkdir(parents=True)
    return Journal(folder / "run")


def test_half_a_line_is_skipped_and_the_next_one_is_read(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.step("load", "leaf01", wave=2)
    first.step("commit", "leaf01", wave=2, revert_s=60)
    first.close()
    file = first.folder / JOURNAL
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    second = Journal(first.folder)
    outcome = DeviceOutcome("leaf01", DeviceResult.REVERTED, ConfigState.AS_BEFORE, ("why",), 2, 4, stops_all=True)
    second.end(outcome)
    second.close()
    found = second.entries()
    assert [(entry.step, entry.device, entry.wave) for entry in found] == [("load", "leaf01", 2), ("end", "leaf01", 2)]
    assert found[1].outcome == outcome


@settings(max_examples=examples(60))
@given(noise=st.binary(max_size=200).filter(lambda noise: b"\n" not in noise))
def test_incomplete_lines_of_a_journal_are_skipped(tmp_path_factory: object, noise: bytes) -> None:
    folder = tmp_path_factory.mktemp("noise")  # type: ignore[attr-defined]
    found = journal(folder)
    (found.folder / JOURNAL).write_bytes(noise)
    found.step("load", "leaf01")
    found.close()
    assert [(entry.step, entry.device) for entry in found.entries()][-1] == ("load", "leaf01")


def test_lines_of_many_threads_are_complete(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "lines")
    words = [f"{number:04}" * 20 for number in range(200)]
    threads = [threading.Thread(target=lambda part=part: [*map(ledger.add, words[part::8])]) for part in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    assert sorted(line.strip() for line in lines(tmp_path / "lines")) == words


def test_configurations_before_are_kept_with_files_that_did_not_exist(tmp_path: Path) -> None:
    found = journal(tmp_path)
    running = Running({"config_db.json": "{}\n", "frr.conf": None}, "202411")
    found.keep("leaf01", running)
    assert Journal(found.folder).before("leaf01") == running
    assert found.before("leaf02") is None


def test_a_full_disk_is_reported_and_no_later_line_is_accepted(tmp_path: Path) -> None:
    found = journal(tmp_path)
    (found.folder / JOURNAL).symlink_to("/dev/full")
    for _ in range(2):
        with pytest.raises(JournalError) as caught:
            found.step("load", "leaf01")
        said = f"{found.folder / JOURNAL}: cannot be written: no space left on device; make room"
        assert str(caught.value).startswith(said)
    found.close()


def test_a_partial_write_counts_as_a_full_disk(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", FILL, str(tmp_path / "lines")], cwd=ROOT, stdout=subprocess.PIPE) as p:
        said, _ = p.communicate()
    assert said.decode().split() == ["taken", "refused", "refused"]
    assert next(lines(tmp_path / "lines")).strip() == "x" * 60
    again = Ledger(tmp_path / "lines")
    again.add("whole")
    again.close()
    assert [line.strip() for line in lines(tmp_path / "lines")][-1] == "whole"


@pytest.mark.parametrize("place", ["file/runs/run", "file"])
def test_a_run_that_cannot_be_journalled_does_not_start(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with scene() as found, pytest.raises(DeployError, match=r"cannot be written: .*; make room or check permissions"):
        found.apply(Journal(tmp_path / place / "run"))
    assert found.connects == []


class Full(Journal):
    """A journal on a disk that is full."""

    def _save(self, name: str, _text: str) -> None:
        raise JournalError(Problem(f"no space left for {name}"))


def test_a_run_that_could_not_be_created_leaves_nothing() -> None:
    with scene() as found:
        with pytest.raises(DeployError) as caught:
            found.apply(Full(found.journal().folder))
        assert (caught.value.exit_code, found.connects) == (3, [])
        assert [*found.root.glob("*/")] == []


def test_a_resume_that_cannot_be_recorded_is_refused() -> None:
    with scene() as found:
        journal, found.strike = found.journal(), killing("leaf03")
        with pytest.raises(Killed):
            found.apply(journal)
        found.strike = no_strike
        found.connects.clear()
        with pytest.raises(DeployError) as caught:
            found.resume(journal, Full(journal.folder), provenance=Provenance("resume", 1.0, "alice", 1000, "bastion"))
        assert (caught.value.exit_code, found.connects) == (3, [])


def test_after_a_failed_write_of_a_file_no_line_is_written(tmp_path: Path) -> None:
    found = journal(tmp_path)
    found.step("preflight", "leaf01")
    (found.folder / "before" / ".leaf01.json").mkdir()
    with pytest.raises(JournalError, match=r"leaf01\.json: cannot be written: is a directory"):
        found.keep("leaf01", Running({}))
    with pytest.raises(JournalError, match=r"leaf01\.json: cannot be written"):
        found.step("end", "leaf01")
    found.close()
    assert [entry.step for entry in found.entries()] == ["preflight"]


STAGES = [f'{{"at_s": 1, "step": "stage", "note": "{note}"}}' for note in ("x", "", "-5", "1.5", "9" * 5000)]


@pytest.mark.parametrize(
    "line", ["garbage", '{"at_s": "now", "step": "load"}', '{"at_s": NaN, "step": "load"}', "[]", *STAGES]
)
def test_a_malformed_line_is_named_and_not_read_with_the_others(tmp_path: Path, line: str) -> None:
    found = journal(tmp_path)
    found.step("load", "leaf01")
    found.close()
    with (found.folder / JOURNAL).open("a", encoding="utf-8") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(DeployError, match=r"journal\.jsonl:2: is damaged; ") as caught:
        found.entries()
    assert caught.value.exit_code == 3

"""A run on disk: whole lines only, whatever happened to the process that wrote them."""

import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.deploy import DeviceOutcome, Journal, Result, State
from netkit.deploy.journal import JOURNAL
from netkit.deploy.ledger import Ledger, lines
from netkit.plan import Running


def journal(folder: Path) -> Journal:
    (folder / "run" / "before").mkdir(parents=True)
    return Journal(folder / "run")


def test_half_a_line_is_skipped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.step("load", "leaf01", wave=2)
    first.step("commit", "leaf01", wave=2, revert_s=60)
    first.close()
    file = first.folder / JOURNAL
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    second = Journal(first.folder)
    outcome = DeviceOutcome("leaf01", Result.REVERTED, State.AS_BEFORE, ("why",), 2, 4, stops_all=True)
    second.end(outcome)
    second.close()
    found = second.entries()
    assert [(entry.step, entry.device, entry.wave) for entry in found] == [("load", "leaf01", 2), ("end", "leaf01", 2)]
    assert found[1].outcome == outcome


@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=200))
def test_what_is_no_line_of_a_journal_is_skipped(tmp_path_factory: object, noise: bytes) -> None:
    folder = tmp_path_factory.mktemp("noise")  # type: ignore[attr-defined]
    found = journal(folder)
    (found.folder / JOURNAL).write_bytes(noise)
    found.step("load", "leaf01")
    found.close()
    assert [(entry.step, entry.device) for entry in found.entries()][-1] == ("load", "leaf01")


def test_lines_of_many_threads_are_all_there_and_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "lines")
    words = [f"{number:04}" * 20 for number in range(200)]
    threads = [threading.Thread(target=lambda part=part: [*map(ledger.add, words[part::8])]) for part in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    assert sorted(line.strip() for line in lines(tmp_path / "lines")) == words


def test_what_ran_before_is_kept_with_files_that_were_not_there(tmp_path: Path) -> None:
    found = journal(tmp_path)
    running = Running({"config_db.json": "{}\n", "frr.conf": None}, "202411")
    found.keep("leaf01", running)
    assert Journal(found.folder).before("leaf01") == running
    assert found.before("leaf02") is None

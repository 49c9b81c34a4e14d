"""Reading runs beside a running deploy: progress and results, without writing anything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.deploy import Journal, Provenance, RecentRuns, seal
from netkit.deploy.journal import INTENDED, JOURNAL, OUTCOME, PLAN
from netkit.deploy.lock import lock_fabric
from netkit.deploy.model import Phase
from netkit.deploy.resume import last_known
from netkit.plan import Running
from tests.deploy.fake import Fault, Killed
from tests.deploy.scene import Scene, killing, no_strike, scene

BEGUN = Provenance("deploy", 1_000_000.0, "alice", 1000, "bastion", reason="wider ECN window")


@pytest.fixture
def found() -> Iterator[Scene]:
    with scene() as made:
        yield made


def recent(found: Scene) -> RecentRuns:
    return RecentRuns(found.root, found.fabric.name)


def killed(found: Scene, device: str) -> Journal:
    """Deploy until a device has applied its change, and no further."""
    found.strike = killing(device)
    journal = found.journal()
    with pytest.raises(Killed):
        found.apply(journal, provenance=BEGUN)
    journal.close()
    return journal


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(file.relative_to(folder)): (file.stat().st_size, file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
    }


def test_a_finished_run_reports_user_change_and_result(found: Scene) -> None:
    journal = found.journal()
    found.apply(journal, provenance=BEGUN)
    (one,) = recent(found).read(5)
    assert (one.run, one.provenance, one.is_running, one.wave, one.busy) == (journal.run, (BEGUN,), False, 0, ())
    assert one.outcome == journal.outcome()
    assert one.results == {"done": 6, "unchanged": 4}
    assert 0 < one.began_s <= one.stepped_s


def test_a_run_in_progress_reports_its_wave_and_the_devices_in_it(found: Scene) -> None:
    journal = killed(found, "leaf03")
    before = files_of(found.root)
    with lock_fabric(found.root, found.fabric.name, journal.run):
        (one,) = recent(found).read(5)
    assert (one.outcome, one.is_running, one.wave, one.waves) == (None, True, 2, 5)
    assert (one.results, one.busy) == ({"done": 2}, ("leaf03",))
    (after,) = recent(found).read(5)
    assert after.is_running is False, "it was killed"
    lock = f"{found.fabric.name}.lock"
    assert {name: reported for name, reported in files_of(found.root).items() if name != lock} == {
        name: reported for name, reported in before.items() if name != lock
    }


def test_a_number_of_waves_that_is_too_long_is_unknown(found: Scene) -> None:
    journal = killed(found, "leaf03")
    journal.step("wave", "leaf03", wave=2, note="9" * 5000)
    assert [(one.wave, one.waves) for one in recent(found).read(5)] == [(2, 0)]


def test_a_lock_held_by_another_run_does_not_make_a_run_look_active(found: Scene) -> None:
    killed(found, "leaf03")
    with lock_fabric(found.root, found.fabric.name, "20990101T000000-0000"):
        assert [one.is_running for one in recent(found).read(5)] == [False]


def test_a_stopped_run_reports_that(found: Scene) -> None:
    found.devices["leaf03"].faults.append(Fault("open", "unreachable", 1000))
    found.apply(found.journal())
    (one,) = recent(found).read(5)
    assert one.outcome is not None
    assert one.outcome.stopped == "1 failed, 0 may: leaf03"


def test_the_newest_come_first_up_to_a_limit(found: Scene) -> None:
    names = []
    for _ in range(3):
        journal = found.journal()
        found.apply(journal)
        names.append(journal.run)
    assert [one.run for one in recent(found).read(2)] == names[:0:-1]


def test_only_changed_runs_are_read_again(found: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, journal = recent(found), killed(found, "leaf03")
    assert reader.read(5)[0].outcome is None
    found.strike = lambda *_: None
    found.resume(journal)
    (ended,) = reader.read(5)
    assert ended.outcome is not None
    monkeypatch.setattr(Journal, "entries", lambda _: pytest.fail("it is read again"))
    assert reader.read(5) == (ended,)


def test_a_damaged_run_and_one_that_never_started(found: Scene) -> None:
    journal = found.journal()
    found.apply(journal)
    (journal.folder / OUTCOME).unlink()
    (journal.folder / JOURNAL).write_text('{"at_s": "x"}\n{"at_s": 1, "step": "wave"}\n', encoding="utf-8")
    (found.root / "20200101T000000-0000").mkdir()
    (one,) = recent(found).read(5)
    assert "is damaged" in one.damage
    assert RecentRuns(found.root / "nowhere", "ai1").read(5) == ()


def test_what_a_device_runs_is_known_from_the_newest_run_that_changed_it(found: Scene) -> None:
    names = [device.name for device in found.plan.changed]
    assert last_known(found.root, names) == {}
    journal = killed(found, "leaf03")
    done = [entry.device for entry in journal.entries() if entry.step == Phase.END]
    assert last_known(found.root, names) == {name: Running(found.intended[name]) for name in done}, "leaf03 may revert"
    found.strike = no_strike
    assert found.resume(journal).exit_code == 0
    assert last_known(found.root, names) == {name: Running(found.intended[name]) for name in names}
    before = {name: journal.before(name) for name in names}
    assert found.undo(journal).exit_code == 0
    there = last_known(found.root, names)
    assert {name: {file: text for file, text in one.files.items() if text} for name, one in there.items()} == {
        name: {file: text for file, text in one.files.items() if text} for name, one in before.items() if one
    }
    (found.root / journal.run / OUTCOME).write_text("{")
    (found.root / journal.run / PLAN).write_text("{")
    assert last_known(found.root, names) == there


@pytest.mark.parametrize("file", [PLAN, INTENDED, OUTCOME, JOURNAL, seal.KEY])
def test_what_a_damaged_run_left_is_not_known_and_no_older_run_tells(found: Scene, file: str) -> None:
    first, names = found.journal(), [device.name for device in found.plan.changed]
    assert found.apply(first).exit_code == 0
    back = found.journal()
    assert found.undo(first, back).exit_code == 0
    assert last_known(found.root, names).keys() == {*names}
    if file == seal.KEY:
        (found.root / file).unlink()
    else:
        (back.folder / file).write_text("[]\n")
    (found.root / "99990101T000000-0000").mkdir()
    assert last_known(found.root, names) == {}

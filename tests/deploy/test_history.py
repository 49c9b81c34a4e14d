"""`netkit history` of runs: only what succeeded is reported as done."""

import errno
import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from netkit import deploy
from netkit.deploy import Approval, Journal, Provenance, RecentRuns, model
from netkit.deploy.model import ConfigState, DeviceOutcome, DeviceResult
from netkit.errors import DeployError, UsageError
from netkit.project.runs import unfinished_run
from netkit.report import history_text as history
from netkit.terminal.output import write_json
from tests.deploy.fake import Fault, Killed
from tests.deploy.scene import Scene, killing, scene


def table(journal: Journal) -> dict[str, list[str]]:
    """The report of each device of a run."""
    rows = history.run_text(journal).partition("DEVICE ")[2].partition("\n\n")[0].splitlines()[1:]
    return {row.split()[0]: [cell.strip() for cell in row.split("  ") if cell.strip()][1:] for row in rows}


def listed(found: Scene) -> list[tuple[str, ...]]:
    return [*history.rows(deploy.history(found.root))]


def test_failed_or_excluded_devices_are_no_success() -> None:
    with scene() as found:
        found.devices["leaf03"].faults.append(Fault("commit_config", "quiet", 1))
        journal = found.journal()
        outcome = found.apply(journal, limit=("leaf02", "leaf03", "leaf04"), max_fail=1)
        assert outcome.exit_code == 1
        said = table(journal)
        assert said["leaf02"] == ["1", "done", "intended"]
        assert said["leaf03"][:3] == ["2", "reverted", "as before"]
        assert said["leaf01"] == ["–", "excluded", "as before"]
        assert [row[-2:] for row in listed(found)] == [("failed", "2 done, 1 reverted, 7 excluded")]


def test_a_stopped_run_has_a_reason() -> None:
    with scene() as found:
        found.devices["leaf03"].faults.append(Fault("open", "unreachable", 1000))
        journal = found.journal()
        assert found.apply(journal).exit_code == 4
        said = table(journal)
        assert said["leaf03"] == ["–", "unreachable", "as before", "leaf03: cannot be reached"]
        assert said["leaf01"] == ["–", "not started", "as before"]
        assert listed(found)[0][-2] == "stopped: 1 failed, 0 may: leaf03"


def test_a_killed_run_lists_the_devices_it_had_started() -> None:
    with scene() as found:
        found.strike = killing("leaf02")
        journal = found.journal()
        with pytest.raises(Killed):
            found.apply(journal, limit=("leaf01", "leaf02", "leaf03"))
        journal.close()
        said = table(journal)
        assert said == {
            "leaf01": ["1", "done", "intended"],
            "leaf02": ["2", "not ended", "unknown", "its last step was commit"],
            "leaf03": ["–", "not started", "as before"],
        }
        assert listed(found)[0][-2:] == ("not finished", "")


def test_a_rollback_lists_what_it_did_not_roll_back_as_such() -> None:
    with scene() as found:
        first = found.journal()
        assert found.apply(first, limit=("leaf01", "leaf02", "leaf03")).exit_code == 0
        found.devices["leaf02"].faults.append(Fault("open", "unreachable", 1000))
        found.devices["leaf03"].faults.append(Fault("commit_config", "quiet", 1))
        found.options = replace(found.options, max_fail=2)
        back = found.journal()
        found.undo(first, back)
        said = table(back)
        assert said["leaf01"] == ["1", "done", "earlier"]
        assert said["leaf02"] == ["–", "unreachable", "not rolled back", "leaf02: cannot be reached"]
        assert said["leaf03"][:3] == ["2", "reverted", "not rolled back"]


def test_a_killed_rollback_lists_the_devices_it_had_started() -> None:
    with scene() as found:
        first = found.journal()
        assert found.apply(first, limit=("leaf01", "leaf02", "leaf03")).exit_code == 0
        found.strike = killing("leaf02")
        back = found.journal()
        with pytest.raises(Killed):
            found.undo(first, back)
        back.close()
        assert table(back) == {
            "leaf01": ["1", "done", "earlier"],
            "leaf02": ["2", "not ended", "unknown", "its last step was commit"],
            "leaf03": ["–", "not started", "not rolled back"],
        }


@pytest.mark.parametrize("operation", ["commit_config, done", "drain, done"])
def test_an_unfinished_run_is_superseded_once_later_runs_have_changed_its_devices(operation: str) -> None:
    """But not while a device may still be drained."""

    with scene("asn") as found:
        found.strike = killing("spine01", operation)
        journal = found.journal()
        with pytest.raises(Killed):
            found.apply(journal, has_drain=operation.startswith("drain"), has_canary=False)
        journal.close()
        found.strike = lambda _device, _operation: None
        found.wait(500)
        found.devices["spine01"].is_drained = False
        ended = {entry.device for entry in journal.entries() if entry.outcome is not None}
        first, *others = (name for step in found.plan.steps for name in step.devices if name not in ended)
        assert found.apply(limit=(first,)).exit_code == 0
        assert unfinished_run(found.root).run == journal.run
        later = found.journal()
        assert found.apply(later, limit=tuple(others)).exit_code == 0
        is_drained = operation.startswith("drain")
        assert [row[-2] for row in listed(found)] == [
            "done",
            "done",
            "not finished" if is_drained else f"superseded by {later.run}",
        ]
        shown = history.run_text(journal).splitlines()
        (recent,) = (one for one in RecentRuns(found.root, found.fabric.name).read(3) if one.run == journal.run)
        assert recent.superseded == ("" if is_drained else later.run)
        if is_drained:
            assert unfinished_run(found.root).run == journal.run
        else:
            assert f"it has not finished; run {later.run} has superseded it" in shown
            with pytest.raises(UsageError, match="no run is left"):
                unfinished_run(found.root)


GIVEN = Approval("bob@example.net", 1_000_000.0, 1_086_400.0, "0" * 32, "SHA256:abc", "the text")
BEGUN = Provenance(
    *("deploy", 1_000_000.0, "alice", 1000, "bastion"),
    commit="c0ffee" * 6 + "c0de",
    is_dirty=True,
    reason="CHG-1234 \x1b[2J wider ECN window for the training rails",
    hook="allowed",
    hook_reason="window until 06:00",
    approval=GIVEN,
)


def test_an_automatic_rollback_has_the_author_and_the_reason_of_its_run() -> None:
    with scene() as found:
        found.devices["spine02"].faults.append(Fault("commit_config", "quiet", 1))
        journal = found.journal()
        assert found.apply(journal, provenance=BEGUN, on_failure="rollback", has_canary=False).stopped
        assert found.back(journal).exit_code == 0
        back, first = listed(found)
        assert back[2:5] == ("alice@bastion", f"rollback of {journal.run}", "c0ffeec0ff+")
        assert first[2:4] == ("alice@bastion", "deploy")
        run = next(one for one in deploy.history(found.root) if one.run == back[0])
        assert run.provenance == (
            replace(
                BEGUN,
                verb="rollback",
                at_s=run.provenance[0].at_s,
                reason=f"{BEGUN.reason}; automatic after a failure",
                undone=journal.run,
                hook="",
                hook_reason="",
                approval=None,
            ),
        )
        assert run.provenance[0].at_s >= BEGUN.at_s


def test_user_and_reason_are_in_the_list_and_in_the_run() -> None:
    with scene() as found:
        journal = found.journal()
        assert found.apply(journal, limit=("leaf02", "leaf03"), provenance=BEGUN).exit_code == 0
        found.wait(10)
        assert found.undo(journal, provenance=replace(BEGUN, verb="rollback", undone=journal.run, approval=None))
        back, there = listed(found)
        assert there[2:8] == (
            *("alice@bastion", "deploy", "c0ffeec0ff+", "CHG-1234 \x1b[2J wider ECN window for the…"),
            *("bob@example.net", "allowed"),
        )
        assert (back[3], back[6]) == (f"rollback of {journal.run}", "")
        said = history.run_text(journal)
    source = f"intent of commit {BEGUN.commit} and changes that are not committed"
    assert said.splitlines()[1:6] == [
        f"deploy by alice@bastion (uid 1000), 1970-01-12 13:46:40 UTC, {source}",
        r"  reason: CHG-1234 \x1b[2J wider ECN window for the training rails",
        "  approved by bob@example.net, 1970-01-12 13:46:40 UTC, key SHA256:abc",
        "  hook: allowed: window until 06:00",
        "options: limit=leaf02, leaf03, is_disruptive_allowed=true, parallel=4, settle_s=20, drain_s=5, poll_s=2",
    ]


def test_a_reason_that_is_not_utf_8_does_not_make_the_run_unreadable() -> None:
    with scene() as found:
        journal = found.journal()
        begun = replace(BEGUN, reason="\udcc4nderung", hook_reason="ok \ud800")
        found.apply(journal, limit=("leaf02",), provenance=begun)
        assert "  reason: ?nderung\n" in history.run_text(journal)
        assert "  hook: allowed: ok ?\n" in history.run_text(journal)
        assert listed(found)[0][5] == "?nderung"
        journal.end(DeviceOutcome("leaf02", DeviceResult.FAILED, ConfigState.UNKNOWN, ("\udcff",)))
        entry = journal.entries()[-1]
        assert entry.outcome is not None
        assert entry.outcome.reasons == ("?",)


def test_control_characters_in_the_reasons_of_a_device_are_escaped() -> None:
    with scene() as found:
        journal = found.journal()
        outcome = found.apply(journal, limit=("leaf02",))
        devices = tuple(replace(one, reasons=("\x1b[2J\nleaf99",)) for one in outcome.devices)
        (journal.folder / "outcome.json").write_text(model.write(replace(outcome, devices=devices)), encoding="utf-8")
        assert r"leaf02   1     done      intended   \x1b[2J\nleaf99" in history.run_text(journal).splitlines()


@pytest.mark.parametrize("change", [{"at_s": 1e30}, {"at_s": "nan"}, {"approval": {**asdict(GIVEN), "at_s": -1e300}}])
def test_a_time_that_is_no_date_is_damage(change: dict[str, object]) -> None:
    with scene() as found:
        journal = found.journal()
        found.apply(journal, limit=("leaf02",), provenance=BEGUN)
        (journal.folder / "provenance.json").write_text(json.dumps([{**BEGUN.plain(), **change}]), encoding="utf-8")
        with pytest.raises(DeployError, match="lacks the author of the run"):
            history.run_text(journal)


def test_a_resume_by_another_user_is_listed_below_the_first() -> None:
    with scene() as found:
        found.strike = killing("leaf02")
        journal = found.journal()
        with pytest.raises(Killed):
            found.apply(journal, limit=("leaf01", "leaf02"), provenance=BEGUN)
        journal.close()
        found.strike = lambda _device, _operation: None
        found.resume(journal, provenance=replace(BEGUN, verb="resume", user="carol", reason="", approval=None))
        said = history.run_text(journal).splitlines()
        assert [line.split(" (uid")[0] for line in said if "(uid" in line] == [
            "deploy by alice@bastion",
            "resume by carol@bastion",
        ]
        assert listed(found)[0][2:4] == ("alice@bastion", "deploy")


def test_the_diff_of_each_device_is_shown_and_of_selected_ones_completely(capsys: pytest.CaptureFixture[str]) -> None:
    with scene() as found:
        journal = found.journal()
        found.apply(journal, limit=("leaf02", "leaf03"))
        said = history.run_text(journal)
        heads = [line.split(": risk")[0] for line in said.splitlines() if ": risk " in line]
        assert heads == ["leaf02", "leaf03"]
        (only,) = [line for line in history.run_text(journal, {"leaf03"}).splitlines() if ": risk " in line]
        assert only.startswith("leaf03: risk none")
        write_json(history.run_document(journal))
        document = json.loads(capsys.readouterr().out)
    planned = {device.name: device for device in found.plan.changed}
    assert [one["name"] for one in document["changes"]] == ["leaf02", "leaf03"]
    for one in document["changes"]:
        wanted = [(list(change.path), change.running, change.intended) for change in planned[one["name"]].changes]
        assert [(change["path"], change["running"], change["intended"]) for change in one["changes"]] == wanted
    assert document["outcome"]["devices"][1]["device"] == "leaf02"
    assert document["options"]["limit"] == ["leaf02", "leaf03"]
    assert document["provenance"] == []


def test_a_run_of_an_older_netkit_is_listed_without_the_columns_it_lacks() -> None:
    with scene() as found:
        journal = found.journal()
        found.apply(journal, limit=("leaf02",))
        assert not (journal.folder / "provenance.json").exists()
        assert history.table(deploy.history(found.root)).splitlines()[0].split() == [
            "RUN",
            "BEGAN",
            "RESULT",
            "DEVICES",
        ]
        assert "uid" not in history.run_text(journal)


@pytest.mark.parametrize("damage", ["", "[", "{}", "[1]", '[{"verb": "deploy"}]', "\udcff"])
def test_a_damaged_record_of_the_user_neither_hides_a_run_nor_blocks_a_resume(damage: str) -> None:
    with scene() as found:
        journal = found.journal()
        found.apply(journal, limit=("leaf02",), provenance=BEGUN)
        file: Path = journal.folder / "provenance.json"
        file.write_text(damage, encoding="utf-8", errors="surrogateescape")
        assert [one.run for one in deploy.history(found.root)] == [journal.run]
        with pytest.raises(DeployError, match="lacks the author of the run"):
            history.run_text(journal)
        journal.resumed(BEGUN)
        assert journal.provenance() == (BEGUN,)


def test_a_run_whose_folder_cannot_be_read_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with scene() as found:
        first = found.journal()
        found.apply(first, limit=("leaf02",))
        found.wait(10)
        second = found.journal()
        found.apply(second, limit=("leaf03",))
        read = Path.stat

        def refusing(path: Path, **options: bool) -> os.stat_result:
            if path.parent == second.folder:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return read(path, **options)

        monkeypatch.setattr(Path, "stat", refusing)
        newest, oldest = deploy.history(found.root)
        assert f"{second.folder}/owner.json: cannot be read: permission denied" in str(newest.damage)
        assert (oldest.run, oldest.damage) == (first.run, None)
        assert found.undo(first).exit_code == 0


def test_runs_that_cannot_be_listed_are_not_taken_for_none(tmp_path: Path) -> None:
    assert deploy.history(tmp_path / "nowhere") == ()
    (tmp_path / "runs").write_text("", encoding="utf-8")
    with pytest.raises(DeployError, match=rf"{tmp_path}/runs: cannot be listed: not a directory"):
        deploy.history(tmp_path / "runs")

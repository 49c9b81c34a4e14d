"""What `netkit history` says of runs: nothing is called done that is not."""

import pytest

from netkit import deploy
from netkit.cli.change import history
from netkit.deploy import Journal
from tests.deploy.fake import Fault, Killed
from tests.deploy.scene import Scene, scene


def table(journal: Journal, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Return what is said of each device of a run."""
    history.tell(journal, "text")
    rows = capsys.readouterr().out.partition("DEVICE ")[2].splitlines()[1:]
    return {row.split()[0]: [cell.strip() for cell in row.split("  ") if cell.strip()][1:] for row in rows}


def listed(found: Scene) -> list[tuple[str, ...]]:
    return [*history.rows(deploy.history(found.root))]


def test_devices_that_failed_or_were_left_out_are_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    with scene() as found:
        found.devices["leaf03"].faults.append(Fault("commit_config", "quiet", 1))
        journal = found.journal()
        outcome = found.apply(journal, limit=("leaf02", "leaf03", "leaf04"), max_fail=1)
        assert outcome.exit_code == 1
        said = table(journal, capsys)
        assert said["leaf02"] == ["1", "done", "intended"]
        assert said["leaf03"][:3] == ["2", "reverted", "as before"]
        assert said["leaf01"] == ["–", "excluded", "as before"]
        assert [row[2:] for row in listed(found)] == [("failed", "2 done, 1 reverted, 7 excluded")]


def test_a_stopped_run_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    with scene() as found:
        found.devices["leaf03"].faults.append(Fault("open", "unreachable", 1000))
        journal = found.journal()
        assert found.apply(journal).exit_code == 4
        said = table(journal, capsys)
        assert said["leaf03"] == ["–", "unreachable", "as before", "leaf03: cannot be reached"]
        assert said["leaf01"] == ["–", "not started", "as before"]
        assert listed(found)[0][2] == "stopped: 1 failed, 0 may: leaf03"


def test_a_run_that_was_killed_tells_which_devices_it_had_begun(capsys: pytest.CaptureFixture[str]) -> None:
    def strike(device: str, operation: str) -> None:
        if (device, operation) == ("leaf02", "commit_config, done"):
            raise Killed

    with scene() as found:
        found.strike = strike
        journal = found.journal()
        with pytest.raises(Killed):
            found.apply(journal, limit=("leaf01", "leaf02", "leaf03"))
        journal.close()
        said = table(journal, capsys)
        assert said == {
            "leaf01": ["1", "done", "intended"],
            "leaf02": ["2", "not ended", "unknown", "its last step was commit"],
            "leaf03": ["–", "not started", "as before"],
        }
        assert listed(found)[0][2:] == ("not finished", "")

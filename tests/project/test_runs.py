"""Selecting a run by name, and the folder of runs."""

from pathlib import Path

import pytest

from netkit.deploy import Journal, Options, Outcome
from netkit.deploy.journal import Orders
from netkit.errors import UsageError
from netkit.plan import Plan
from netkit.project.runs import found_run, runs_folder, unfinished_run

PLAN = Plan("small", (), (), (), "0")


def begun(root: Path, name: str, *, ended: bool) -> None:
    journal = Journal(root / name)
    journal.start(Orders(PLAN, {}, None, Options()))
    if ended:
        journal.finish(Outcome(name, "small", ()))


def test_a_run_is_named_by_its_prefix_or_as_the_last(tmp_path: Path) -> None:
    for name in ("20260101T000000-aaaa", "20260102T000000-bbbb", "20260102T000001-cccc"):
        begun(tmp_path, name, ended=True)
    assert found_run(tmp_path, "20260101").run == "20260101T000000-aaaa"
    assert found_run(tmp_path, "20260102T000001-cccc").run == "20260102T000001-cccc"
    assert found_run(tmp_path, "last").run == "20260102T000001-cccc"
    with pytest.raises(UsageError, match="2 runs begin with '20260102'; give more of the name"):
        found_run(tmp_path, "20260102")
    with pytest.raises(UsageError, match=r"no run '\.\./x'"):
        found_run(tmp_path, "../x")


def test_the_newest_unfinished_run_is_resumed(tmp_path: Path) -> None:
    for name, ended in (("1", False), ("2", False), ("3", True)):
        begun(tmp_path, name, ended=ended)
    assert unfinished_run(tmp_path).run == "2"


def test_runs_on_a_lab_are_separate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETKIT_STATE_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    state = tmp_path / ".local" / "state" / "netkit"
    assert runs_folder("../ai1", "") == state / ".._ai1" / "runs"
    assert runs_folder("ai1", "t") == state / "ai1" / "labs" / "t" / "runs"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert runs_folder("ai1", "") == Path("/state/netkit/ai1/runs")
    monkeypatch.setenv("NETKIT_STATE_DIR", "/mine")
    assert runs_folder("ai1", "") == Path("/mine/ai1/runs")

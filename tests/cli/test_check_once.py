"""Scheduled checks do not overlap, end in time, and never block the next one, however they ended."""

import os
import signal
from pathlib import Path

import pytest

from netkit.errors import UsageError
from netkit.observe import CollectOptions, Target, collect
from netkit.project.deadline import NEVER, Deadline
from tests.cli.checked import VALUES
from tests.cli.test_check_store import BEGAN_S, check, seen, stored
from tests.command import assert_refused, run
from tests.lab.running import write_fabric
from tests.observe.test_collect import COUNTING, NAMING, Answering
from tests.store.held import holding


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NETKIT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("NETKIT_STORE", raising=False)
    return write_fabric(tmp_path / "fabric", VALUES)


def test_a_second_check_exits_at_once_with_the_reason(fabric: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with holding(str(tmp_path / "state" / "store.db")) as other:
        done = check(fabric, seen(BEGAN_S, 5), "load.errors", "--store")
        what = "another check of small that uses this store is running"
        assert (done.returncode, done.stdout) == (5, "")
        assert done.stderr == f"error: {what}; nothing was checked; wait for it to finish\n"
        assert check(fabric, seen(BEGAN_S, 5), "load.errors").returncode == 1
        assert check(fabric, seen(BEGAN_S, 5), "load.errors", f"--store={tmp_path / 'other.db'}").returncode == 1
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        assert check(fabric, seen(BEGAN_S, 5), "load.errors", "--store").returncode == 1
    assert len(stored(fabric)) == 1


def test_connections_are_closed_at_the_deadline() -> None:
    answers = {"count": "7", "name": "leaf", "ports": "p"}
    devices = {name: Answering(name, answers, hangs=name == "leaf02") for name in ("leaf01", "leaf02")}
    targets = [Target(name, "frr", (COUNTING, NAMING)) for name in devices]
    with Deadline("1s") as deadline:
        found = collect("ai1", targets[1:], lambda name: deadline.bound(devices[name]), CollectOptions(window_s=0.01))
        late = collect("ai1", targets[:1], lambda name: deadline.bound(devices[name]), CollectOptions())
    why = "not read completely before the deadline of 1s"
    assert (found.snapshot.devices["leaf02"].failure, late.snapshot.devices["leaf01"].failure) == (why, why)
    assert len(found.snapshot.devices["leaf02"].samples) == 1


def test_a_device_that_hangs_leaves_time_for_the_others() -> None:
    assert 2.0 < Deadline("20s").share_s(10.0) <= 2.5
    assert Deadline("20s").share_s(19.0) == 1.0
    assert NEVER.share_s(10.0) == float("inf")


@pytest.mark.parametrize("written", ["0m", "10", "1d", "-5m", "soon"])
def test_an_invalid_deadline_is_refused(fabric: Path, written: str) -> None:
    assert_refused(
        run("check", "--fabric", fabric, f"--deadline={written}"), "is not a duration; use seconds, minutes or hours"
    )


def test_a_deadline_shorter_than_the_window_is_refused() -> None:
    with pytest.raises(UsageError, match="give more than the 30 s of --window"):
        Deadline("30s", 30.0)

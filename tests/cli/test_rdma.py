"""`netkit check --rdma`: a host that did not measure never passes silently, and everything ends in time."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from netkit.platforms.view import Reply, Viewer
from netkit.project import rdma
from netkit.project.deadline import Deadline
from tests.cli.checked import VALUES
from tests.command import Done, run
from tests.lab.running import write_fabric
from tests.observe.test_rdma_mesh import Measuring


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    return write_fabric(tmp_path / "fabric", {**VALUES, "units": [{"unit": 1, "hosts": 4}]})


def check(fabric: Path, host: Callable[[str], Viewer], *how: str) -> Done:
    """Run the measurement on hosts that answer from memory."""

    def before() -> None:
        vars(rdma).update(patient_viewer=lambda _reached, name, _limit_s: host(name))

    return run("check", "acceptance.completed", "--rdma", "--window=0", "--fabric", fabric, *how, before=before)


class Silent(Measuring):
    """A host that accepts the connection and does not answer until it is closed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._hung_up = threading.Event()

    def close(self) -> None:
        self._hung_up.set()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        self._hung_up.wait()
        return tuple(Reply("", "it hung up") for _ in commands)


class Failing(Measuring):
    """A host whose commands fail."""

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        return tuple(Reply("", "no answer within 19 s") for _ in commands)


class Bare(Measuring):
    """A host without any of the tools."""

    def _reply(self, command: str) -> Reply:
        del command
        return Reply("")


def test_a_fabric_where_no_host_can_measure_does_not_pass(fabric: Path) -> None:
    done = check(fabric, Bare)
    assert (done.returncode, done.stderr) == (1, "RDMA latency: no ib_read_lat on gpu01, gpu02, gpu03, gpu04\n")
    assert "failed: no two hosts can measure it" in done.stdout


def test_only_hosts_that_measure_are_judged(fabric: Path) -> None:
    done = check(fabric, Measuring)
    assert (done.returncode, done.stderr) == (0, "")
    assert "clean" in done.stdout


@pytest.mark.parametrize(
    ("lost", "why"),
    [(lambda: Measuring("gpu02", "connection refused"), "connection refused"), (lambda: Failing("gpu02"), "no answer")],
)
def test_an_unreachable_host_is_named_and_fails(fabric: Path, lost: Callable[[], Viewer], why: str) -> None:
    done = check(fabric, lambda name: lost() if name == "gpu02" else Measuring(name))
    assert (done.returncode, done.stdout.count("FAIL")) == (1, 1)
    assert f"gpu02: ib_read_lat failed: not reached: {why}" in done.stdout


def test_hosts_that_do_not_answer_are_disconnected_after_half_of_the_deadline(fabric: Path) -> None:
    done = check(fabric, lambda name: Silent(name) if name == "gpu02" else Measuring(name), "--deadline=2s")
    assert done.returncode == 1
    why = "not reached: not measured within half of the deadline of 2s"
    assert f"gpu02: ib_read_lat failed: {why}" in done.stdout


def test_rounds_without_time_left_are_counted_and_their_hosts_named(fabric: Path) -> None:
    done = check(fabric, Measuring, "--deadline=10s")
    assert done.returncode == 1
    assert done.stderr == "RDMA latency: 4 rounds of 4 not started: no time is left before the deadline\n"
    assert "not started: no time was left before the deadline" in done.stdout


def test_measuring_leaves_the_window_and_half_of_the_remaining_time() -> None:
    assert 30 < Deadline("100s", 10.0).half().left_s <= 45
    assert Deadline("").half().left_s == float("inf")

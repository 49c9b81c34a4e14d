"""Acceptance runs in a lab: real iperf3 between its hosts; what they do not have is absent with the reason."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.project import trials
from tests import intents
from tests.lab.running import RunningLab, intent, needs_lab, running, write_fabric

pytestmark = [needs_lab, pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")]
ABSENT = (
    "absent: perftest: ib_write_bw and ib_read_lat on fewer than two hosts\n"
    "absent: nccl-tests: mpirun and all_reduce_perf on fewer than two hosts\n"
)
RAIL = "   10 s at most  iperf3 along rail {0}, lossless and best effort together: gpu01 → gpu02\n"
PLAN = f"{ABSENT}{RAIL.format(0)}{RAIL.format(1)}   20 s at most in all\n"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), intent()), name="accepted") as lab:
        yield lab


def asked(up: RunningLab, out: Path, *more: str) -> tuple[int, str, str]:
    where = ("--fabric", up.fabric, "--lab=accepted", "-o", out, "--seconds", "2")
    done = up.netkit("acceptance", "run", *where, *more)
    return done.returncode, done.stdout, done.stderr


def test_the_plan_comes_first_and_nothing_runs_unless_somebody_agrees(up: RunningLab, tmp_path: Path) -> None:
    out = tmp_path / "results.txt"
    assert asked(up, out, "--dry-run") == (0, PLAN, "")
    refused = "error: Run them? Jobs that run meanwhile are slowed down. There is no terminal to ask on; use --yes\n"
    assert asked(up, out) == (3, PLAN, refused)
    assert not out.exists()


def test_what_ran_is_judged_and_kept_in_a_snapshot(up: RunningLab, tmp_path: Path) -> None:
    out, snapshot = tmp_path / "results.txt", tmp_path / "all.json.gz"
    assert asked(up, out, "--yes")[:2] == (0, f"{PLAN}{out}: judge it with netkit check acceptance --results {out}\n")
    assert out.read_text(encoding="utf-8").startswith("".join(f"# {line}" for line in ABSENT.splitlines(keepends=True)))
    found = trials.read([out])
    host, other = ([nic.address for nic in one.nics] for one in intents.fabric(intent()).hosts)
    assert [(trial.ends, trial.nic, trial.failure) for trial in found] == [
        ((host[rail], other[rail]), f"rail{rail}", "") for rail in (0, 1) for _ in range(2)
    ]
    assert [stream.dscp for trial in found for stream in trial.streams] == [26, 0] * 2
    taken = up.netkit(
        "snapshot", "-o", snapshot, "--fabric", up.fabric, "--lab=accepted", "--window", "0", "--results", out
    )
    assert taken.returncode == 0, taken.stderr
    judged = up.netkit("check", "acceptance", "--fabric", up.fabric, "--from", snapshot)
    assert judged.stdout.startswith("small: clean: 4 things examined")
    assert "too little to compete" in judged.stdout


def test_hosts_that_cannot_measure_rdma_are_named(up: RunningLab) -> None:
    done = up.netkit("check", "acceptance", "--rdma", "--fabric", up.fabric, "--lab=accepted")
    assert (done.returncode, done.stderr) == (1, "RDMA latency: no ib_read_lat on gpu01, gpu02\n")


def test_a_tool_nobody_knows_is_refused(up: RunningLab, tmp_path: Path) -> None:
    code, _, said = asked(up, tmp_path / "r", "--tool", "fio")
    assert (code, said) == (3, "error: unknown tool 'fio'; use perftest, iperf3, nccl-tests\n")
    code, told, _ = asked(up, tmp_path / "r", "--tool", "perftest", "--yes")
    assert (code, told) == (1, ABSENT.splitlines(keepends=True)[0])

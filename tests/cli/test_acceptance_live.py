"""Acceptance runs in a lab: real iperf3, stand-ins for perftest and nccl-tests, and an injected fault that is found."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from netkit.project import checking
from tests import intents
from tests.lab.running import RunningLab, intent, needs_lab, running, write_fabric

pytestmark = [needs_lab, pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")]
VALUES = intent(units=[{"unit": 1, "hosts": 4}])
FIRST, SECOND = "gpu01 → gpu03, gpu02 → gpu04", "gpu01 → gpu04, gpu02 → gpu03"
PERFTEST = tuple(
    f"   10 s at most  {test} along rail {rail}: {pairs}\n"
    for rail in (0, 1)
    for test, pairs in (("ib_write_bw", FIRST), ("ib_read_lat", FIRST), ("ib_write_bw", SECOND))
)
IPERF3 = tuple(
    f"   10 s at most  iperf3 along rail {rail}, lossless and best effort together: {FIRST}\n" for rail in (0, 1)
)
COLLECTIVES = tuple(f"  300 s at most  all_reduce_perf over {hosts} hosts\n" for hosts in (2, 4))


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), VALUES), name="accepted") as lab:
        yield lab


def asked(up: RunningLab, out: Path, *more: str) -> tuple[int, str, str]:
    where = ("--fabric", up.fabric, "--lab=accepted", "-o", out, "--seconds", "2")
    done = up.netkit("acceptance", "run", *where, *more)
    return done.returncode, done.stdout, done.stderr


def judged(up: RunningLab, out: Path, *checks: str) -> tuple[int, str]:
    done = up.netkit("check", *checks, "--fabric", up.fabric, "--results", out)
    return done.returncode, " ".join(done.stdout.split())


def test_the_plan_is_printed_first_and_nothing_runs_without_confirmation(up: RunningLab, tmp_path: Path) -> None:
    out = tmp_path / "results.txt"
    plan = "".join((*PERFTEST, *IPERF3, *COLLECTIVES)) + "  680 s at most in all\n"
    assert asked(up, out, "--dry-run") == (0, plan, "")
    refused = "error: Run them? They slow down running jobs. There is no terminal to ask on; use --yes\n"
    assert asked(up, out) == (3, plan, refused)
    assert not out.exists()


def test_results_are_judged_and_stored_in_a_snapshot(up: RunningLab, tmp_path: Path) -> None:
    out, snapshot = tmp_path / "results.txt", tmp_path / "all.json.gz"
    plan = "".join(IPERF3) + "   20 s at most in all\n"
    agreed = f"{plan}{out}: judge it with netkit check acceptance --results {out}\n"
    assert asked(up, out, "--tool", "iperf3", "--yes")[:2] == (0, agreed)
    found = checking.read([out])
    hosts = [[nic.address for nic in one.nics] for one in intents.fabric(VALUES).hosts]
    assert [(trial.ends, trial.nic, trial.failure) for trial in found] == [
        ((hosts[near][rail], hosts[near + 2][rail]), f"rail{rail}", "")
        for rail in (0, 1)
        for near in (0, 1)
        for _ in range(2)
    ]
    assert [stream.dscp for trial in found for stream in trial.streams] == [26, 0] * 4
    taken = up.netkit(
        "snapshot", "-o", snapshot, "--fabric", up.fabric, "--lab=accepted", "--window", "0", "--results", out
    )
    assert taken.returncode == 0, taken.stderr
    kept = up.netkit("check", "acceptance", "--fabric", up.fabric, "--from", snapshot)
    assert kept.stdout.startswith("small: clean: 8 things examined")
    assert "too little to compete" in kept.stdout


def test_a_healthy_fabric_passes_and_a_dirty_fibre_is_found_until_it_is_cleaned(up: RunningLab, tmp_path: Path) -> None:
    tools = ("--tool", "perftest", "--tool", "nccl-tests", "--yes")
    healthy, faulty, healed = (tmp_path / f"{name}.txt" for name in ("healthy", "faulty", "healed"))
    assert asked(up, healthy, *tools)[0] == 0
    code, said = judged(up, healthy, "acceptance")
    assert (code, said.startswith("small: clean:")) == (0, True), said
    assert up.lab("break", "dirty-lane", "gpu03:rail1", "ber=2e-3").returncode == 0
    assert asked(up, faulty, *tools)[0] == 0
    code, said = judged(up, faulty, "acceptance.stragglers")
    assert code == 1
    assert said.count(" is slow: ") == 1, said
    assert "gpu03:rail1 (rail 1, mlx5_3) is slow: " in said
    assert "its link ends at leaf02 swp2s0" in said
    up.lab("heal", "--all")
    assert asked(up, healed, *tools)[0] == 0
    code, said = judged(up, healed, "acceptance")
    assert (code, said.startswith("small: clean:")) == (0, True), said


def test_packets_that_are_really_lost_slow_a_pair_down(up: RunningLab, tmp_path: Path) -> None:
    out = tmp_path / "lossy.txt"
    assert up.lab("break", "lossy", "gpu02:rail0", "percent=20").returncode == 0
    try:
        assert asked(up, out, "--tool", "perftest", "--yes")[0] == 0
    finally:
        up.lab("heal", "--all")
    code, said = judged(up, out, "acceptance.stragglers")
    assert (code, said.count(" is slow: ")) == (1, 1), said
    assert "gpu02:rail0 (rail 0, mlx5_0) is slow: " in said


def test_latency_of_rdma_is_measured_during_a_check(up: RunningLab) -> None:
    done = up.netkit("check", "acceptance", "--rdma", "--fabric", up.fabric, "--lab=accepted")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "clean" in done.stdout


def test_an_unknown_tool_is_refused_and_gpu_memory_is_absent(up: RunningLab, tmp_path: Path) -> None:
    code, _, said = asked(up, tmp_path / "r", "--tool", "fio")
    assert (code, said) == (3, "error: unknown tool 'fio'; use perftest, iperf3, nccl-tests\n")
    code, reported, _ = asked(up, tmp_path / "r", "--tool", "perftest", "--cuda", "--yes")
    absent = "absent: perftest: ib_write_bw and ib_read_lat and use_cuda on fewer than two hosts\n"
    assert (code, reported) == (1, absent)

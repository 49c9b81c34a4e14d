"""Results of acceptance runs on the command line: judged from files without a device, and kept in snapshots."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.facts import serial
from netkit.project import checking
from tests.cli.checked import checked
from tests.command import ROOT, run

CASES = ROOT / "tests" / "facts" / "acceptance" / "cases"
REMEDY = "give what all_reduce_perf, ib_write_bw or iperf3 -J printed"
GOOD, BAD = CASES / "nccl_two_nodes.txt", CASES / "perftest_failed.txt"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return checked(tmp_path_factory.mktemp("checked"))


def test_results_alone_are_judged_without_a_device(place: tuple[Path, Path]) -> None:
    fabric, _ = place
    done = run("check", "acceptance", "--fabric", fabric, "--results", GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("small: clean: 3 things examined on 0 of 0 devices by 7 checks")


def test_failures_are_reported_with_tool_hosts_and_time(place: tuple[Path, Path]) -> None:
    fabric, _ = place
    done = run("check", "acceptance", "--fabric", fabric, "--results", GOOD, "--results", BAD)
    assert done.returncode == 1
    assert "gpu01:rail1: ib_write_bw from gpu01:rail1 to gpu02:rail1 failed: Couldn't connect" in done.stdout
    assert (
        "seen: tool perftest, hosts gpu01, gpu02, at 2023-11-14 22:13:20+00:00, file perftest_failed.txt" in done.stdout
    )


def test_results_in_a_snapshot_are_judged_again_the_same(place: tuple[Path, Path], tmp_path: Path) -> None:
    fabric, file = place
    whole = tmp_path / "whole.json"
    whole.write_bytes(serial.dump(checking.added(serial.read(file), checking.read([BAD]))))
    added = run("check", "acceptance", "--fabric", fabric, "--from", file, "--results", BAD)
    kept = run("check", "acceptance", "--fabric", fabric, "--from", whole)
    assert (added.stdout, added.returncode) == (kept.stdout, kept.returncode)


def test_pytest_judges_results_in_a_snapshot_as_netkit_check_does(place: tuple[Path, Path], tmp_path: Path) -> None:
    fabric, file = place
    whole = tmp_path / "whole.json"
    whole.write_bytes(serial.dump(checking.added(serial.read(file), checking.read([BAD]))))
    words = ["-m", "pytest", "-q", "-rfs", "-p", "no:cacheprovider", "checks/acceptance.py", "--netkit-fabric", fabric]
    done = subprocess.run(
        [sys.executable, *map(str, words), "--netkit-snapshot", whole],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FAILED checks/acceptance.py::completed[fabric]" in done.stdout
    assert done.stdout.startswith("Fsssss")


def test_without_results_nothing_can_be_judged(place: tuple[Path, Path]) -> None:
    done = run("check", "acceptance", "--fabric", place[0])
    assert done.returncode == 1
    assert done.stdout.startswith("small: nothing could be judged")
    assert "no results of acceptance runs: give files with --results" in done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing.txt", f"holds no result of nccl-tests, perftest or iperf3; {REMEDY}"),
        ("missing.txt", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
    ],
)
def test_a_file_without_results_is_refused(place: tuple[Path, Path], name: str, message: str) -> None:
    file = CASES / name
    done = run("check", "acceptance", "--fabric", place[0], "--results", file)
    assert (done.returncode, done.stderr) == (3, f"error: {file}: {message}\n")


def test_a_result_without_a_time_is_as_old_as_its_file() -> None:
    (trial,) = checking.read([GOOD])
    assert trial.at_s == GOOD.stat().st_mtime
    assert replace(trial, at_s=None).ends == ("gpu01", "gpu02")

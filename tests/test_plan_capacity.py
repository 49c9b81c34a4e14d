"""`netkit plan-capacity`: each design is exactly what its `netkit init` writes."""

import json
import shlex
from pathlib import Path

import pytest

from tests.command import assert_refused, run


@pytest.mark.parametrize(("gpus", "ratio"), [(64, 1), (1000, 2)])
def test_init_writes_exactly_each_design(gpus: int, ratio: int, tmp_path: Path) -> None:
    done = run("plan-capacity", "--gpus", str(gpus), "--oversubscription", f"{ratio}:1", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = [row for row in json.loads(done.stdout) if row["summary"]]
    assert {row["topology"] for row in found} >= {"two-tier"}
    for place, row in enumerate(found):
        folder = tmp_path / str(place) / "fabric"
        words = [str(folder) if word == "my-fabric" else word for word in shlex.split(row["command"])[1:]]
        assert run(*words).returncode == 0
        summary = json.loads(run("design", "--fabric", folder, "--format", "json").stdout)
        leaf = summary["tiers"][0]
        assert leaf["oversubscription"] is None or leaf["oversubscription"] <= ratio
        for tier in summary["tiers"]:
            del tier["oversubscription"]
        assert summary == row["summary"]
        assert summary["gpus"] >= gpus


def test_4096_gpus_without_oversubscription() -> None:
    done = run("plan-capacity", "--gpus", "4096", "--model", "SN5600")
    assert done.returncode == 0, done.stderr
    row = done.stdout.splitlines()[1]
    # Twin-port modules: 64 in each leaf and spine, 4 in each of 512 hosts. Cables: 4096 to hosts, as many to spines.
    optics, cables = 64 * 64 + 32 * 64 + 512 * 4, 2 * 4096
    assert row.split() == f"SN5600 two-tier 4096 1 : 1 64 32 {optics} {cables} not known".split()
    assert "rail-only  too large for this model" in done.stdout


def test_refusals() -> None:
    assert_refused(run("plan-capacity", "--gpus", "8", "--oversubscription", "1"), "is not a ratio", "1:1 or 2:1")
    assert_refused(run("plan-capacity", "--gpus", "8", "--model", "SN9"), "no switch model 'SN9'")
    assert run("plan-capacity", "--gpus", "100000", "--model", "SN5600").returncode == 1

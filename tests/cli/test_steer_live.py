"""A fault in a lab takes exactly its node out, and healing it brings the node back."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Done, run
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = needs_lab
CLUSTER = {"kubernetes": {"vfs": 4, "steering": {"good_rounds": 2}}}
PLACE = "leaf01:swp1s0"
ROOM = {"units": 1, "hosts_per_unit": 4, "spines": 4, "addresses_per_nic": 5}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    values = intent(clusters=CLUSTER, ceilings=ROOM)
    with running(write_fabric(tmp_path_factory.mktemp("steer") / "fabric", values)) as found:
        yield found


def check(lab: RunningLab, state: Path, *names: str) -> Done:
    words: list[str | Path] = ["check", *names, "--fabric", lab.fabric, "--lab", lab.name]
    words += ["--window", "2", "--steer", "kubernetes"]
    return run(*words, timeout_s=300, NETKIT_LAB_DIR=str(lab.home), NETKIT_STATE_DIR=str(state))


def decided(done: Done) -> list[str]:
    """Return the lines about nodes, without those of the checks before."""
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("kubernetes: "))
    return lines[at:]


def test_a_dim_optic_takes_its_node_out_and_healing_brings_it_back(lab: RunningLab, tmp_path: Path) -> None:
    until(lambda: check(lab, tmp_path / "before").returncode == 0, "the lab is well", 180)
    assert decided(check(lab, tmp_path / "state", "optics.light")) == ["kubernetes: all 2 nodes take jobs"]
    assert lab.lab("break", "dim-optic", PLACE, "db=16").returncode == 0
    first = decided(check(lab, tmp_path / "state", "optics.light"))
    assert first[0] == "kubernetes: all 2 nodes take jobs"
    assert first[1].startswith("  watched    gpu01: optics.light at ")
    assert len(first) == 2
    second = decided(check(lab, tmp_path / "state", "optics.light"))
    assert second[0] == "kubernetes: 1 of 2 nodes out"
    assert [line.split()[4] for line in second if "kubectl" in line] == ["gpu01"] * 3
    assert lab.lab("heal", PLACE).returncode == 0
    assert decided(check(lab, tmp_path / "state", "optics.light"))[0] == "kubernetes: 1 of 2 nodes out"
    assert decided(check(lab, tmp_path / "state", "links.up"))[0] == "kubernetes: 1 of 2 nodes out"
    assert decided(check(lab, tmp_path / "state", "optics.light"))[:2] == [
        "kubernetes: all 2 nodes take jobs",
        "  back       gpu01",
    ]
    (kept,) = (tmp_path / "state").rglob("steer-kubernetes.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == {}

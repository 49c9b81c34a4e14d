"""A fault in a lab takes exactly its node out of service, and healing it brings the node back."""

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

import pytest

from netkit.intent.model import SteeringIntent
from netkit.project.project import Project
from tests.command import Done, run
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = needs_lab
CLUSTER = {"kubernetes": {"vfs": 4, "steering": {"good_rounds": 2}}}
ROUNDS = int(os.environ.get("NETKIT_STEER_ROUNDS", "10"))
FAULTS = (("dim-optic", "db=16"), ("dirty-lane", "ber=2e-3"))
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
    """The lines about nodes, without those of the checks before them."""
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


Marks = dict[str, dict[str, str]]
"""Node → its labels, annotations and taints, by kubectl verb and key."""


def obey(marks: Marks, lines: Sequence[str]) -> None:
    """Apply the printed commands to the nodes."""
    for words in (shlex.split(line) for line in lines if line.lstrip().startswith("kubectl ")):
        _, _, verb, _, node, change, *_ = words
        key, has_value, value = change.partition("=")
        if has_value:
            marks.setdefault(node, {})[f"{verb} {key}"] = value
        else:
            marks.get(node, {}).pop(f"{verb} {key.removesuffix('-')}", None)


def test_marks_follow_faults_through_many_rounds_without_a_flap(lab: RunningLab, tmp_path: Path) -> None:
    """A fault lasts two rounds; two rounds after it is healed, its node is back; the fifth round is healthy.

    After each round, at most one node has marks: the one of the fault, with the port where it was found.
    """
    checks, state = SteeringIntent().checks, tmp_path / "state"
    until(lambda: check(lab, tmp_path / "before", *checks).returncode == 0, "the lab is well", 180)
    fabric = Project.open(lab.fabric).fabric
    places = cycle((leaf.name, port) for leaf in fabric.tier("leaf") for port in leaf.host_ports)
    marks: Marks = {}
    for number in range(ROUNDS):
        step, turn = number % 5, number // 5
        if step == 0:
            leaf, port = next(places)
            fault, value = FAULTS[turn % len(FAULTS)]
            assert lab.lab("break", fault, f"{leaf}:{port.name}", value).returncode == 0
        elif step == 2:
            assert lab.lab("heal", f"{leaf}:{port.name}").returncode == 0
        obey(marks, decided(check(lab, state, *checks)))
        found = {node: own for node, own in marks.items() if own}
        assert list(found) == ([port.peer] if step in {1, 2} else []), f"round {number}: {fault} at {leaf}:{port.name}"
        for own in found.values():
            assert set(own) == {
                "annotate fabric.netkit/reason",
                "label fabric.netkit/health",
                "taint fabric.netkit/unhealthy",
            }
            assert own["annotate fabric.netkit/reason"].startswith((f"{leaf}:{port.name}", f"{port.peer}:"))

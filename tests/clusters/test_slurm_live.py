"""Debian's slurmctld accepts the rendered files, and shows the designed cluster."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from netkit.design import Fabric
from netkit.judge.steering import NodeHealth, Steering
from netkit.plan.slurm_running import SlurmDifference, differences, parse_nodes, parse_topology
from netkit.project.steering import Applied, applied
from netkit.render.slurm import fold
from tests import documents, intents
from tests.clusters.slurm_daemon import PATH, Controller, controller, needs_slurmctld
from tests.clusters.slurm_scenes import FULL, SHAPES, built, cluster_of, files_of
from tests.command import ROOT, run

pytestmark = needs_slurmctld


@pytest.fixture(name="running", params=SHAPES, scope="module")
def running_controller(request: pytest.FixtureRequest) -> Iterator[tuple[str, Fabric, Controller]]:
    fabric = built(request.param, FULL)
    with controller(files_of(fabric)) as slurm:
        yield request.param, fabric, slurm


def fields(line: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in line.split())


def test_the_topology_is_the_designed_one(running: tuple[str, Fabric, Controller]) -> None:
    _, fabric, slurm = running
    designed = cluster_of(fabric).switches
    below = {switch.name: {*switch.nodes} for switch in designed}
    levels = dict.fromkeys(below, 0)
    for switch in designed:
        for child in switch.switches:
            below[switch.name] |= below[child]
            levels[switch.name] = levels[child] + 1
    rows = [fields(line) for line in slurm.ask("scontrol", "show", "topology").splitlines()]
    assert [row | {key: {*slurm.names(row[key])} for key in ("Nodes", "Switches") if key in row} for row in rows] == [
        {
            "SwitchName": switch.name,
            "Level": str(levels[switch.name]),
            "LinkSpeed": "1",
            "Nodes": below[switch.name],
            **({"Switches": {*switch.switches}} if switch.switches else {}),
        }
        for switch in designed
    ]


def test_nodes_have_their_gpus_features_and_partition(running: tuple[str, Fabric, Controller]) -> None:
    _, fabric, slurm = running
    rows = [fields(line) for line in slurm.ask("scontrol", "show", "nodes", "-o").splitlines()]
    shown = ("NodeName", "Gres", "AvailableFeatures", "ActiveFeatures", "CPUTot", "RealMemory", "Partitions")
    assert sorted(tuple(row[key] for key in shown) for row in rows) == sorted(
        (
            node.name,
            "gpu:h100:8",
            ",".join(node.features),
            ",".join(node.features),
            str(FULL["cpus"]),
            str(FULL["memory_mb"]),
            "gpu",
        )
        for node in cluster_of(fabric).nodes
    )


def test_the_controller_logs_no_error_about_the_files(running: tuple[str, Fabric, Controller]) -> None:
    slurm = running[2]
    assert slurm.ask("scontrol", "show", "partition", "gpu", "-o").startswith("PartitionName=gpu ")
    words = ("gres", "topo", "switch", "node name", "invalid", "include", "duplicate")
    complaints = [line for line in slurm.log.splitlines() if " error: " in line]
    assert [line for line in complaints if any(word in line.lower() for word in words)] == []
    config = dict(re.findall(r"^(\w+) += (.*)$", slurm.ask("scontrol", "show", "config"), re.MULTILINE))
    assert (config["SelectType"], config["GresTypes"], config["TopologyPlugin"]) == (
        "select/cons_tres",
        "gpu",
        "topology/tree",
    )


def test_the_acceptance_job_can_start(running: tuple[str, Fabric, Controller], tmp_path: Path) -> None:
    shape, fabric, slurm = running
    values = intents.values({**SHAPES[shape], "clusters": {"slurm": FULL}})
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    job = tmp_path / "job.sbatch"
    assert run("acceptance", "emit", "slurm", "-o", job, "--fabric", tmp_path).returncode == 0
    names = {node.name for node in cluster_of(fabric).nodes}
    done = slurm.run("sbatch", "--test-only", str(job))
    assert done.returncode == 0, done.stderr
    words = done.stderr.split()
    assert words[-3:] == ["in", "partition", "gpu"]
    assert {*slurm.names(words[words.index("nodes") + 1])} == names
    # More GPUs than a node has are refused, so the success above is meaningful.
    text = job.read_text(encoding="utf-8")
    job.write_text(text.replace("--gpus-per-node=", "--gpus-per-node=9"), encoding="utf-8")
    refused = slurm.run("sbatch", "--test-only", str(job))
    assert (refused.returncode, "Requested node configuration is not available" in refused.stderr) == (1, True)


def test_features_select_a_unit(running: tuple[str, Fabric, Controller]) -> None:
    _, fabric, slurm = running
    unit = cluster_of(fabric).units[0]
    count = len(unit.nodes)
    wanted = ("--partition=gpu", f"--constraint={unit.name}", f"--nodes={count}", "--wrap=true")
    done = slurm.run("sbatch", "--test-only", *wanted)
    assert {*slurm.names(done.stderr.split()[-4])} == {*unit.nodes}
    assert slurm.run("sbatch", "--test-only", *wanted[:2], f"--nodes={count + 1}", "--wrap=true").returncode == 1


def test_the_running_cluster_is_compared_with_the_design(running: tuple[str, Fabric, Controller]) -> None:
    _, fabric, slurm = running
    cluster = cluster_of(fabric)

    def found() -> list[SlurmDifference]:
        nodes = parse_nodes(slurm.ask("scontrol", "show", "nodes"))
        return [*differences(cluster, nodes, parse_topology(slurm.ask("scontrol", "show", "topology")))]

    assert found() == []
    name, features = cluster.nodes[0].name, ",".join(cluster.nodes[0].features)
    slurm.ask("scontrol", "update", f"nodename={name}", "availablefeatures=unit9", "activefeatures=unit9")
    try:
        intended = ",".join(sorted(cluster.nodes[0].features))
        assert found() == [SlurmDifference("node", name, "Features", "unit9", intended)]
    finally:
        slurm.ask(
            "scontrol", "update", f"nodename={name}", f"availablefeatures={features}", f"activefeatures={features}"
        )


def test_slurm_accepts_the_files_and_the_job_of_the_page(tmp_path: Path) -> None:
    documents.run(ROOT / "docs" / "slurm.md", tmp_path)
    files = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "out" / "slurm").glob("*.*")}
    with controller(files) as slurm:
        assert slurm.ask("scontrol", "show", "topology").count("SwitchName=") == 3
        done = slurm.run("sbatch", "--test-only", str(tmp_path / "out/slurm/jobs/acceptance.sh"))
        assert (done.returncode, "on nodes gpu-u01-[01-02],gpu-u02-[01-02] in" in done.stderr) == (0, True), done.stderr


def test_unusual_names_and_long_lines_are_accepted(tmp_path: Path) -> None:
    """Names that cannot be folded, and lines of many thousand characters."""
    odd = {1: "7", 2: "gpu-a", 3: "x1y2", 4: "a1"}
    units = [{"unit": 1, "hosts": 4, "host_names": odd}, {"unit": "2-16", "hosts": 32}]
    values = intents.values(
        {
            "ceilings": {"units": 16, "hosts_per_unit": 32},
            "units": units,
            "names": {"host": "node{number:03}-in-hall-b"},
            "overrides": {"7": {"rack": "7"}},
            "clusters": {"slurm": {**FULL, "gpu_type": "h100-80gb", "partition": "p-1", "domain": "example.net"}},
        }
    )
    fabric = intents.fabric(values)
    nodes = cluster_of(fabric).nodes
    files = files_of(fabric)
    assert max(map(len, files["nodes.conf"].splitlines())) > 10_000
    with controller(files) as slurm:
        rows = [fields(line) for line in slurm.ask("scontrol", "show", "nodes", "-o").splitlines()]
        assert sorted((row["NodeName"], row["Gres"], row["AvailableFeatures"]) for row in rows) == sorted(
            (node.name, "gpu:h100-80gb:8", ",".join(node.features)) for node in nodes
        )
        names = [node.name for node in nodes] + ["b8", "b9", "b10", "b011", "r1n1", "r2n1", "b"]
        assert slurm.names(fold(names)) == names
        (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        job = tmp_path / "job.sbatch"
        assert run("acceptance", "emit", "slurm", "-o", job, "--fabric", tmp_path).returncode == 0
        done = slurm.run("sbatch", "--test-only", str(job))
        assert (done.returncode, "in partition p-1" in done.stderr) == (0, True), done.stderr
        *_, root = slurm.ask("scontrol", "show", "topology").splitlines()
        assert {*slurm.names(fields(root)["Nodes"])} == {node.name for node in nodes}


def test_plan_and_check_run_scontrol(
    running: tuple[str, Fabric, Controller], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, fabric, slurm = running
    values = intents.values({**SHAPES[shape], "clusters": {"slurm": FULL}})
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    monkeypatch.setenv("SLURM_CONF", str(slurm.folder / "slurm.conf"))
    monkeypatch.setenv("PATH", PATH)
    words = ("--fabric", tmp_path, "--cluster", "slurm")
    same = run("plan", *words)
    assert (same.returncode, same.stdout) == (0, "the cluster matches the rendered files\n")
    node = cluster_of(fabric).nodes[0]
    features, intended = ",".join(node.features), ",".join(sorted(node.features))
    slurm.ask("scontrol", "update", f"nodename={node.name}", "availablefeatures=unit9", "activefeatures=unit9")
    try:
        assert run("plan", *words).stdout.splitlines() == [
            "slurm: 1 object differs",
            f"~ node {node.name}",
            f"    Features: unit9 → {intended}",
            "  take the rendered files over, then scontrol reconfigure",
        ]
        judged = run("check", "cluster.objects", *words)
        assert judged.returncode == 1
        assert f"node {node.name}: differs: Features: unit9 → {intended}" in judged.stdout
    finally:
        slurm.ask(
            "scontrol", "update", f"nodename={node.name}", f"availablefeatures={features}", f"activefeatures={features}"
        )


def test_steering_drains_and_resumes_and_keeps_drains_of_others(
    running: tuple[str, Fabric, Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, fabric, slurm = running
    monkeypatch.setenv("SLURM_CONF", str(slurm.folder / "slurm.conf"))
    monkeypatch.setenv("PATH", PATH)
    first, second = (node.name for node in cluster_of(fabric).nodes[:2])

    def state(name: str) -> tuple[bool, str]:
        (found,) = parse_nodes(slurm.ask("scontrol", "show", "node", name))
        return "DRAIN" in found.states, found.reason

    bad = NodeHealth(2, 0, is_out=True, check="links.flaps", reason="leaf01:swp1: went down 3 times in 10 s")
    both, back = {first: bad, second: bad}, Steering("slurm", {}, returned=(first, second))
    slurm.ask("scontrol", "update", f"nodename={second}", "state=drain", "reason=new fans")
    reason = "netkit: links.flaps: leaf01:swp1: went down 3 times in 10 s"
    for _ in range(2):  # the second time nothing is left to do
        done = applied(Steering("slurm", both, taken=(first, second)), "")
        assert (done.failed, set(done.left)) == ({}, {second})
        assert done.left[second].endswith("DRAIN+POWERED_DOWN for another reason: new fans")
        assert (state(first), state(second)) == ((True, reason), (True, "new fans"))
    for _ in range(2):
        assert applied(back, "") == Applied({}, {})
        assert (state(first)[0], state(second)) == (False, (True, "new fans"))
    slurm.ask("scontrol", "update", f"nodename={second}", "state=undrain")


def test_steering_leaves_nodes_alone_that_an_operator_set_down(
    running: tuple[str, Fabric, Controller], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, fabric, slurm = running
    monkeypatch.setenv("SLURM_CONF", str(slurm.folder / "slurm.conf"))
    monkeypatch.setenv("PATH", PATH)
    node = cluster_of(fabric).nodes[0].name
    bad = NodeHealth(2, 0, is_out=True, check="links.flaps", reason="leaf01:swp1: went down")
    slurm.ask("scontrol", "update", f"nodename={node}", "state=down", "reason=RMA 4711")
    try:
        for steering in (Steering("slurm", {node: bad}), Steering("slurm", {}, returned=(node,))):
            assert applied(steering, "").failed == {}
            (found,) = parse_nodes(slurm.ask("scontrol", "show", "node", node))
            assert "DOWN" in found.states
            assert found.reason == "RMA 4711"
    finally:
        slurm.ask("scontrol", "update", f"nodename={node}", "state=resume")

"""Output of scontrol, recorded from slurmctld 22.05 (Debian's) and 25.11, parsed and compared with the design."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.design.clusters import TopologySwitch
from netkit.errors import PlanError
from netkit.plan.slurm_running import (
    RunningTopology,
    SlurmDifference,
    SlurmNodeState,
    differences,
    parse_nodes,
    parse_topology,
)
from tests.clusters.slurm_scenes import FULL, built, cluster_of

RECORDED = Path(__file__).parent / "recorded"
CLUSTER = cluster_of(built("two-tier", FULL))
TREE = RunningTopology("tree", CLUSTER.switches)


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


def node(name: str, features: tuple[str, ...]) -> SlurmNodeState:
    states = ("IDLE", "CLOUD", "POWERED_DOWN")
    return SlurmNodeState(name, "gpu:h100:8", features, 224, 2_000_000, ("gpu",), states, "")


NODES = (
    node("gpu01", ("unit1", "rack-R1")),
    replace(
        node("gpu02", ("unit1", "rack-R2")),
        states=("IDLE", "CLOUD", "DRAIN", "POWERED_DOWN"),
        reason="rail 3: dim optic, Gres=none",
    ),
    node("gpu05", ("unit2", "rack-R1")),
    node("gpu06", ("unit2",)),
)


@pytest.mark.parametrize("name", ["nodes", "nodes-oneliner"])
def test_nodes_are_parsed(name: str) -> None:
    """One is drained with a reason that looks like a field; another has a comment and an extra that do."""
    assert parse_nodes(recorded(name)) == NODES


def test_additional_fields_of_a_registered_node_are_parsed() -> None:
    text = (
        "NodeName=n1 Arch=x86_64 CoresPerSocket=56 \n   CPUAlloc=0 CPUEfctv=224 CPUTot=224 CPULoad=0.01\n"
        "   AvailableFeatures=(null)\n   ActiveFeatures=(null)\n   Gres=gpu:h100:8(S:0-1)\n"
        "   NodeAddr=n1 NodeHostName=n1 Version=23.11.4\n   OS=Linux 5.10.0-19-amd64 #1 SMP Debian 5.10.149-2\n"
        "   RealMemory=1 AllocMem=0 FreeMem=2 Sockets=2\n   State=DOWN*+DRAIN+NOT_RESPONDING ThreadsPerCore=2\n"
        "   Reason=Not responding [slurm@2026-11-26T23:07:39]\n\n"
    )
    states = ("DOWN", "DRAIN", "NOT_RESPONDING")
    assert parse_nodes(text) == (SlurmNodeState("n1", "gpu:h100:8", (), 224, 1, (), states, "Not responding"),)


def test_the_topology_is_parsed() -> None:
    assert parse_topology(recorded("topology")) == TREE
    tiers = parse_topology(recorded("topology-three-tier"))
    assert tiers == RunningTopology("tree", cluster_of(built("three-tier", FULL)).switches)
    assert parse_topology(recorded("topology-none")) == RunningTopology("none", ())


@pytest.mark.parametrize("topology", ["tree", "block"])
def test_output_of_a_newer_controller_is_parsed(topology: str) -> None:
    """Above blocks, it prints the blocks that they aggregate."""
    cluster = cluster_of(built("three-tier", {**FULL, "topology": topology, "version": "25.11"}))
    running = parse_topology(recorded(f"topology-{topology}-25.11"))
    assert running.kind == topology
    assert running.switches == (cluster.switches if topology == "tree" else cluster.units)
    nodes = parse_nodes(recorded("nodes-25.11"))
    drained = {node.name: node.reason for node in nodes if "DRAIN" in node.states}
    assert drained == {"gpu02": "rail 3: dim optic, Gres=none"}
    assert [*differences(cluster, nodes, running)] == []


@pytest.mark.parametrize("text", ["", "No nodes in the system\n", "NodeName=a CPUTot=x\n", "NodeName=a State=IDLE\n"])
def test_text_without_nodes_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match=r"not the nodes of a Slurm cluster: .*; have scontrol show nodes print it"):
        parse_nodes(text)


@pytest.mark.parametrize(
    "text",
    [
        "slurm_load_topo: Unable to contact slurm controller\n",
        "SwitchName=a Level=0 LinkSpeed=1 Nodes=gpu[01-02,\n",
        "SwitchName=a Level=0 Nodes=b\nBlockName=c Nodes=d\n",
    ],
)
def test_a_truncated_or_mixed_topology_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match=r"not the topology of a Slurm cluster: .*with SLURM_TOPO_LEN unset"):
        parse_topology(text)


def test_a_cluster_as_designed_has_no_differences() -> None:
    assert [*differences(CLUSTER, parse_nodes(recorded("nodes")), parse_topology(recorded("topology")))] == []


def test_nodes_that_differ_are_listed() -> None:
    first, second, third, _ = NODES
    running = (
        replace(first, gres="gpu:7", features=("rack-R1", "unit1"), cpus=1, memory_mb=1),
        replace(second, partitions=("other", "debug"), features=("unit9",)),
        third,
        replace(third, name="new"),
        replace(third, name="login", partitions=("debug",)),
    )
    assert [*differences(CLUSTER, running, TREE)] == [
        SlurmDifference("node", "gpu01", "Gres", "gpu:7", "gpu:h100:8"),
        SlurmDifference("node", "gpu01", "CPUs", "1", "224"),
        SlurmDifference("node", "gpu01", "RealMemory", "1", "2000000"),
        SlurmDifference("node", "gpu02", "Features", "unit9", "rack-R2,unit1"),
        SlurmDifference("node", "gpu02", "Partitions", "other,debug", "gpu"),
        SlurmDifference("node", "gpu06", "NodeName", "", "gpu06"),
        SlurmDifference("node", "new", "NodeName", "new", ""),
    ]
    unknown = cluster_of(built("two-tier", {"gpu_type": "h100"}))
    cpus = tuple(replace(node, cpus=1, memory_mb=1) for node in NODES)
    assert [*differences(replace(unknown, nodes=CLUSTER.nodes), cpus, TREE)] == []


SITE = (node("login", ("ib",)), node("other01", ("unit1",)))


def in_partitions(nodes: Iterable[SlurmNodeState], *names: str) -> tuple[SlurmNodeState, ...]:
    return tuple(replace(one, partitions=names) for one in nodes)


def test_a_renamed_partition_is_left_over_with_the_removed_nodes() -> None:
    old = node("gpu03", ("unit1",))
    running = (
        *in_partitions((*NODES, old), "old", "site"),
        *in_partitions(SITE[:1], "site"),
        *in_partitions(SITE[1:], "fabric2"),
    )
    assert [*differences(CLUSTER, running, TREE)] == [
        SlurmDifference("node", "gpu03", "NodeName", "gpu03", ""),
        SlurmDifference("partition", "gpu", "PartitionName", "", "gpu"),
        SlurmDifference("partition", "old", "PartitionName", "old", ""),
    ]


def test_partitions_of_the_site_beside_the_designed_one_are_not_compared() -> None:
    running = (*in_partitions(NODES, "gpu", "urgent"), *in_partitions(SITE, "urgent"))
    assert [*differences(CLUSTER, running, TREE)] == []


def test_switches_of_a_removed_unit_are_left_over() -> None:
    """So is the tier above them, but not those of the site, above the fabric and beside it."""
    gone = (node("gpu09", ("unit3",)), node("gpu10", ("unit3",)))
    topology = RunningTopology(
        "tree",
        (
            *CLUSTER.units,
            TopologySwitch("unit3", ("gpu09", "gpu10")),
            TopologySwitch("pod3", switches=("unit3", "pod3")),
            TopologySwitch("fabric", switches=("unit1", "unit2", "pod3")),
            TopologySwitch("cpus", ("login",)),
            TopologySwitch("empty", switches=("nowhere",)),
            TopologySwitch("site", switches=("fabric", "cpus")),
        ),
    )
    assert [*differences(CLUSTER, (*NODES, *gone, *in_partitions(SITE[:1], "cpu")), topology)] == [
        SlurmDifference("node", "gpu09", "NodeName", "gpu09", ""),
        SlurmDifference("node", "gpu10", "NodeName", "gpu10", ""),
        SlurmDifference("switch", "fabric", "Switches", "unit[1-2],pod3", "unit[1-2]"),
        SlurmDifference("switch", "unit3", "SwitchName", "unit3", ""),
        SlurmDifference("switch", "pod3", "SwitchName", "pod3", ""),
    ]


def test_resources_and_features_of_the_site_are_not_compared() -> None:
    first, second, *others = NODES
    more = (replace(first, gres="nic:mlx5:8,gpu:h100:8,nvme:3T", features=("ib", "rack-R1", "unit1")), second, *others)
    assert [*differences(CLUSTER, more, TREE)] == []
    elsewhere = (replace(first, features=("unit1", "rack-R1", "unit2")), second, *others)
    assert [*differences(CLUSTER, elsewhere, TREE)] == [
        SlurmDifference("node", "gpu01", "Features", "rack-R1,unit1,unit2", "rack-R1,unit1")
    ]


def test_a_topology_that_differs_is_listed() -> None:
    running = RunningTopology(
        "tree",
        (
            TopologySwitch("unit1", ("gpu01",)),
            TopologySwitch("other", ("gpu02", "gpu05", "gpu06")),
            TopologySwitch("cpus", ("login",)),
            TopologySwitch("fabric", switches=("unit1", "other")),
            TopologySwitch("site", switches=("fabric", "cpus")),
        ),
    )
    assert [*differences(CLUSTER, NODES, running)] == [
        SlurmDifference("switch", "unit1", "Nodes", "gpu01", "gpu[01-02]"),
        SlurmDifference("switch", "unit2", "SwitchName", "", "unit2"),
        SlurmDifference("switch", "fabric", "Switches", "unit1,other", "unit[1-2]"),
        SlurmDifference("switch", "other", "SwitchName", "other", ""),
    ]
    assert [*differences(CLUSTER, NODES, RunningTopology("none", ()))] == [
        SlurmDifference("topology", "", "TopologyPlugin", "none", "tree"),
        *(SlurmDifference("switch", name, "SwitchName", "", name) for name in ("unit1", "unit2", "fabric")),
    ]

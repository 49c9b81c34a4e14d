"""What a change of the intent alters for clusters, object by object, and whom it touches."""

from collections.abc import Mapping
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.plan.cluster_diff import ClusterDiff, ObjectChange, ValueChange, compare_cluster, value_changes
from netkit.report.cluster_diff import cluster_lines, summary

NODES = ("gpu01", "gpu02", "gpu03")
Values = Mapping[str, Any]


def pool(name: str, prefixes: Mapping[str, str], *routes: str) -> Values:
    allocations = [{"nodeName": node, "prefix": prefix} for node, prefix in prefixes.items()]
    spec = {"staticAllocations": allocations, "routes": [{"dst": route} for route in routes]}
    return {"kind": "CIDRPool", "metadata": {"name": name, "namespace": "ops"}, "spec": spec}


def files(*objects: Values) -> Mapping[str, str]:
    return {"all.yaml": yaml.safe_dump_all(objects)}


def compared(before: Mapping[str, str], after: Mapping[str, str]) -> ClusterDiff:
    found = compare_cluster("kubernetes", before, after, NODES)
    assert found is not None
    return found


def test_equal_files_are_no_difference() -> None:
    assert compare_cluster("kubernetes", files(pool("rail0", {})), files(pool("rail0", {})), NODES) is None


def test_an_entry_of_one_node_touches_the_pods_of_that_node_alone() -> None:
    before = files(pool("rail0", {"gpu01": "10.0.0.0/28", "gpu02": "10.0.0.16/28"}))
    after = files(pool("rail0", {"gpu01": "10.0.0.0/28", "gpu02": "10.0.0.32/28"}))
    value = ValueChange("spec.staticAllocations[gpu02].prefix", "10.0.0.16/28", "10.0.0.32/28")
    assert compared(before, after) == ClusterDiff(
        "kubernetes", (ObjectChange("CIDRPool ops/rail0", "changed", (value,)),), restarted=("gpu02",)
    )


def test_a_value_of_the_whole_pool_touches_the_pods_of_all_nodes() -> None:
    found = compared(files(pool("rail0", {}, "10.1.0.0/16")), files(pool("rail0", {}, "10.2.0.0/16")))
    assert found.restarted == NODES
    assert list(cluster_lines(found)) == [
        "  kubernetes: 1 object differs, pods restart on 3 nodes",
        "  ~ CIDRPool ops/rail0",
        "    - spec.routes[10.1.0.0/16]: dst: 10.1.0.0/16",
        "    + spec.routes[10.2.0.0/16]: dst: 10.2.0.0/16",
        "    pods keep the old values until they restart: gpu01, gpu02, gpu03",
    ]


def test_a_policy_of_nics_drains_the_nodes_and_a_new_pool_touches_nobody() -> None:
    policy = {"kind": "SriovNetworkNodePolicy", "metadata": {"name": "rail0"}, "spec": {"numVfs": 4, "isRdma": True}}
    more = {**policy, "spec": {"numVfs": 8, "isRdma": True}}
    found = compared(files(policy), files(more, pool("rail0", {"gpu01": "10.0.0.0/28"})))
    assert found == ClusterDiff(
        "kubernetes",
        (
            ObjectChange("CIDRPool ops/rail0", "added"),
            ObjectChange("SriovNetworkNodePolicy rail0", "changed", (ValueChange("spec.numVfs", "4", "8"),)),
        ),
        drained=NODES,
    )
    assert summary(found) == "2 objects differ, 3 nodes drained"


def test_lines_of_slurm_are_compared_and_new_nodes_need_a_restart() -> None:
    before = {"nodes.conf": "NodeName=gpu01\n", "topology.conf": "SwitchName=u1 Nodes=gpu01\n"}
    after = {"nodes.conf": "NodeName=gpu[01-02]\n", "topology.conf": "SwitchName=u1 Nodes=gpu01\n"}
    found = compare_cluster("slurm", before, after, NODES)
    assert found is not None
    assert list(cluster_lines(found)) == [
        "  slurm: 1 file differs",
        "  ~ nodes.conf",
        "    - NodeName=gpu01",
        "    + NodeName=gpu[01-02]",
        "    restart slurmctld and slurmd for it; running jobs go on",
    ]
    regrouped = compare_cluster("slurm", before, {**before, "topology.conf": "SwitchName=u2 Nodes=gpu01\n"}, NODES)
    assert regrouped is not None
    assert regrouped.advice == ("scontrol reconfigure reads it; running jobs go on",)


def test_the_order_of_a_list_is_a_value() -> None:
    assert list(value_changes({"a": ["x", "y"]}, {"a": ["y", "x"]})) == [ValueChange("a", "x, y", "y, x")]


SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
)


@given(TREES)
def test_a_tree_does_not_differ_from_itself(tree: Any) -> None:
    assert list(value_changes(tree, tree)) == []


@given(st.dictionaries(st.sampled_from("abc"), TREES), st.sampled_from("abc"), st.integers(10, 20))
def test_a_changed_value_is_found_at_its_path(tree: dict[str, Any], key: str, value: int) -> None:
    changed = {**tree, key: value}
    found = list(value_changes(tree, changed))
    assert [one.path for one in found] == [key]
    assert found[0].after == str(value)

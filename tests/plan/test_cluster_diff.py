"""What a change of the intent alters for clusters, object by object, and which pods and nodes it affects."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import RenderError
from netkit.plan.cluster_diff import (
    LEFT,
    PLACED,
    ClusterDiff,
    ObjectChange,
    ValueChange,
    compare_cluster,
    compare_running,
    value_changes,
)
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


def test_an_entry_of_one_node_affects_only_the_pods_of_that_node() -> None:
    before = files(pool("rail0", {"gpu01": "10.0.0.0/28", "gpu02": "10.0.0.16/28"}))
    after = files(pool("rail0", {"gpu01": "10.0.0.0/28", "gpu02": "10.0.0.32/28"}))
    value = ValueChange("spec.staticAllocations[gpu02].prefix", "10.0.0.16/28", "10.0.0.32/28")
    assert compared(before, after) == ClusterDiff(
        "kubernetes", (ObjectChange("CIDRPool ops/rail0", "changed", (value,)),), restarted=("gpu02",)
    )


def test_a_value_of_the_whole_pool_affects_the_pods_of_all_nodes() -> None:
    found = compared(files(pool("rail0", {}, "10.1.0.0/16")), files(pool("rail0", {}, "10.2.0.0/16")))
    assert found.restarted == NODES
    assert list(cluster_lines(found)) == [
        "  kubernetes: 1 object differs, pods restart on 3 nodes",
        "  ~ CIDRPool ops/rail0",
        "    - spec.routes[10.1.0.0/16]: dst: 10.1.0.0/16",
        "    + spec.routes[10.2.0.0/16]: dst: 10.2.0.0/16",
        "    pods keep the old values until they restart: gpu01, gpu02, gpu03",
    ]


def test_a_nic_policy_drains_the_nodes_and_a_new_pool_affects_nothing() -> None:
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


def labelled(name: str, **labels: str) -> Values:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def policy(vfs: int, **selector: Any) -> Values:
    return {"kind": "SriovNetworkNodePolicy", "metadata": {"name": "rail0"}, "spec": {"numVfs": vfs, **selector}}


LABELLED = (labelled("gpu01", rail0="true", unit="1"), labelled("gpu02", rail0="true", unit="2"), labelled("gpu03"))


def rule(operator: str, *values: str, key: str = "unit") -> Values:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]}


@pytest.mark.parametrize(
    ("selector", "nodes"),
    [
        ({"rail0": "true"}, ("gpu01", "gpu02")),
        ({"rail0": "true", "unit": "2"}, ("gpu02",)),
        ({"unit": "9"}, ()),
        ({"label-of-others": "x"}, NODES),
        (rule("Exists"), ("gpu01", "gpu02")),
        (rule("DoesNotExist"), ("gpu03",)),
        (rule("In", "1", "9"), ("gpu01",)),
        (rule("NotIn", "1"), ("gpu02", "gpu03")),
        (rule("Exists", key="label-of-others"), NODES),
        ({"nodeSelectorTerms": [{}]}, NODES),
        (None, NODES),
    ],
)
def test_nodes_are_those_that_the_selector_matches(selector: Any, nodes: tuple[str, ...]) -> None:
    before = {**files(policy(4, nodeSelector=selector)), "nodes.yaml": files(*LABELLED)["all.yaml"]}
    after = {**before, **files(policy(8, nodeSelector=selector))}
    assert compared(before, after).drained == nodes
    running = compare_running([policy(4, nodeSelector=selector)], after, NODES)
    assert running is not None
    assert running.drained == nodes


def test_a_changed_selector_affects_the_nodes_of_both() -> None:
    before = files(*LABELLED, policy(4, nodeSelector={"unit": "1"}))
    assert compared(before, files(*LABELLED, policy(4, nodeSelector={"unit": "2"}))).drained == ("gpu01", "gpu02")


@pytest.mark.parametrize(
    ("after", "drained"),
    [
        ([labelled("gpu01", rail0="true"), labelled("gpu02")], ("gpu02",)),
        ([labelled("gpu01"), labelled("gpu02")], ("gpu01", "gpu02")),
        ([labelled("gpu01", rail0="true"), labelled("gpu02", rail0="true", unit="1")], ()),
    ],
)
def test_nodes_that_an_unchanged_policy_no_longer_selects_are_drained(
    after: list[Values], drained: tuple[str, ...]
) -> None:
    one = policy(4, nodeSelector={"rail0": "true"})
    before = [labelled("gpu01", rail0="true"), labelled("gpu02", rail0="true"), one]
    assert compared(files(*before), files(*after, one)).drained == drained
    running = compare_running([*after, one], files(*before), ("gpu01", "gpu02"))
    assert (running.drained if running else ()) == drained


def test_new_nodes_are_neither_drained_nor_do_their_pods_restart() -> None:
    before = files(pool("rail0", {"gpu01": "10.0.0.0/28"}))
    after = files(pool("rail0", {"gpu01": "10.0.0.0/28", "new": "10.0.0.16/28"}))
    found = compare_cluster("kubernetes", before, after, NODES, (*NODES, "new"))
    assert found is not None
    assert (found.drained, found.restarted) == ((), ())
    running = compare_running([pool("rail0", {}), labelled("gpu01")], before, NODES)
    assert running is not None
    assert running.restarted == ("gpu01",)


def test_the_policy_of_the_operator_drains_nothing() -> None:
    one = {"kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}, "spec": {"version": 1}}
    assert compared(files(one), files({**one, "spec": {"version": 2}})).drained == ()


@pytest.mark.parametrize(
    ("after", "is_said"),
    [
        ([labelled("gpu01", unit="2")], True),
        ([labelled("gpu01")], True),
        ([], True),
        ([labelled("gpu01", unit="1", rack="R1")], False),
        ([{**labelled("gpu01", unit="1"), "spec": {"taints": [{"key": "dim"}]}}], True),
    ],
)
def test_changed_labels_and_taints_move_no_pod(after: list[Values], *, is_said: bool) -> None:
    before = {**labelled("gpu01", unit="1"), "spec": {"taints": []}}
    found = compared(files(before), files(*({"spec": {"taints": []}, **one} for one in after), pool("rail0", {})))
    assert found.advice == ((PLACED,) if is_said else ())


def test_removed_objects_have_a_command_that_deletes_them() -> None:
    """Nodes have none: kubectl label would remove labels of nodes that stay in another cluster."""
    objects = [pool("rail0", {}), pool("rail1", {}), policy(8), labelled("gpu01", unit="1")]
    typed = [{"apiVersion": "x.net/v1", **one} for one in objects]
    assert compared(files(*typed), {"notes.txt": ""}).advice == (
        PLACED,
        LEFT,
        "kubectl delete CIDRPool.x.net -n ops rail0 rail1",
        "kubectl delete SriovNetworkNodePolicy.x.net rail0",
    )


def queue(quota: Any, group: str = "kueue.x-k8s.io") -> Values:
    resources = [{"name": "memory", "nominalQuota": quota}]
    version = {"apiVersion": f"{group}/v1beta2"} if group else {}
    return {**version, "kind": "Queue", "metadata": {"name": "q"}, "spec": {"resources": resources}}


@pytest.mark.parametrize(
    ("runs", "rendered"),
    [("1Pi", "1024Ti"), ("1k", "1000"), ("1k", 1000), ("500m", "0.5"), ("1e3", "1k"), (8, "8"), ("2000u", "2m")],
)
def test_quantities_are_compared_by_value(runs: Any, rendered: Any) -> None:
    assert compare_running([queue(runs)], files(queue(rendered)), ()) is None
    capability = {"kind": "Queue", "metadata": {"name": "q"}, "spec": {"capability": {"cpu": rendered}}}
    live = {**capability, "spec": {"capability": {"cpu": runs}}}
    assert compare_running([live], files(capability), ()) is None
    elsewhere = {**capability, "spec": {"version": rendered}}
    found = compare_running([{**elsewhere, "spec": {"version": runs}}], files(elsewhere), ())
    assert (found is None) == (str(runs) == str(rendered))


@pytest.mark.parametrize(("runs", "rendered"), [("1Pi", "1023Ti"), ("1k", "1Ki"), ("1", "x"), ("x", "1")])
def test_different_quantities_differ(runs: Any, rendered: Any) -> None:
    assert compare_running([queue(runs)], files(queue(rendered)), ()) is not None


def test_equal_kinds_of_two_groups_are_two_objects() -> None:
    ours, theirs = queue("1"), queue("2", "scheduling.volcano.sh")
    found = compared(files(ours), files(ours, theirs))
    assert [(one.name, one.action) for one in found.objects] == [("Queue q", "added")]
    assert compare_running([theirs, ours], files(ours), ()) is None
    assert compare_running([ours, theirs], files(ours, theirs), ()) is None
    assert compare_running([{**ours, "apiVersion": "kueue.x-k8s.io/v1beta1"}], files(ours), ()) is None
    alone = compare_running([theirs], files(ours), ())
    assert alone is not None
    assert [one.action for one in alone.objects] == ["added"]


def test_an_unknown_group_matches_any() -> None:
    assert compare_running([queue("1", "")], files(queue("1")), ()) is None
    assert compare_running([queue("1")], files(queue("1", "")), ()) is None


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "a: 2001-99-99", "[" * 9_999, "? [a]\n: b", "a: \x00"])
def test_a_file_that_is_not_yaml_is_named(text: str) -> None:
    good, bad = files(pool("rail0", {})), {"own.yaml": f"kind: A\n---\n{text}"}
    with pytest.raises(RenderError, match=r"^kubernetes/own\.yaml(:\d+)?: is not YAML: .*; correct its template"):
        compared(good, {**good, **bad})
    with pytest.raises(RenderError, match=r"^the earlier kubernetes/own\.yaml(:\d+)?: is not YAML: "):
        compared({**good, **bad}, good)
    with pytest.raises(RenderError, match=r"^kubernetes/own\.yaml"):
        compare_running([], bad, ())


@pytest.mark.parametrize("metadata", ["text", 7, ["a"], None, {"labels": 3}])
def test_metadata_of_any_shape_is_compared(metadata: Any) -> None:
    one = {"kind": "Node", "metadata": metadata}
    found = compared(files(one), files({**one, "spec": {"a": 1}}))
    assert [(change.name, change.action) for change in found.objects] == [("Node all.yaml", "changed")]
    assert compare_running([one], files(one), ()) is None


def test_files_that_are_not_manifests_are_compared_by_line() -> None:
    before = {**files(pool("rail0", {})), "README.md": "a: [\nold\n"}
    found = compared(before, {**before, "README.md": "a: [\nnew\n"})
    values = (ValueChange("", "old", ""), ValueChange("", "", "new"))
    assert found == ClusterDiff("kubernetes", (ObjectChange("README.md", "changed", values),))
    assert compare_cluster("kubernetes", before, {**before, "all.yaml": f"# more\n{before['all.yaml']}"}, NODES) is None


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
        "    restart slurmctld and slurmd to apply it; running jobs continue",
    ]
    regrouped = compare_cluster("slurm", before, {**before, "topology.conf": "SwitchName=u2 Nodes=gpu01\n"}, NODES)
    assert regrouped is not None
    assert regrouped.advice == ("scontrol reconfigure applies it; running jobs continue",)


def test_of_a_value_with_several_lines_the_changed_ones_are_shown() -> None:
    def config(*lines: str) -> Values:
        text = "".join(f"{line}\n" for line in lines)
        return {"kind": "ConfigMap", "metadata": {"name": "nccl"}, "data": {"nccl.conf": text}}

    found = compared(files(config("A=1", "B=2", "C=3")), files(config("A=1", "B=4", "C=3", "--- D")))
    assert list(cluster_lines(found))[1:-1] == [
        "  ~ ConfigMap nccl",
        "      data.nccl.conf:",
        "    -   B=2",
        "    +   B=4",
        "    +   --- D",
    ]
    many = compared(files(config("a")), files(config(*map(str, range(30)))))
    assert list(cluster_lines(many))[-2] == "        … and 7 more lines"
    ends = compared(files(config("a")), files({**config(), "data": {"nccl.conf": "a"}}))
    assert list(cluster_lines(ends))[2] == "      data.nccl.conf: a\n → a"


def test_the_order_of_a_list_matters() -> None:
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

"""Objects and node labels that an earlier intent rendered, and that are still in the cluster."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.design.clusters import ClusterOwner
from netkit.facts.cluster import ObjectDrift
from netkit.observe.kubernetes import OWNED
from netkit.plan.cluster_diff import LEFT, PLACED, ClusterDiff, ObjectChange, ValueChange, compare_running
from netkit.project.cluster import cluster_facts, compared
from netkit.project.project import Project
from tests.clusters import manifests
from tests.clusters.api_server import api_server
from tests.clusters.manifests import Manifest
from tests.clusters.test_kubernetes import VARIANTS, fabric, files, rendered
from tests.clusters.test_running import opened, saved
from tests.clusters.test_running import rendered as rendered_by
from tests.command import run

OWNER = ClusterOwner("small", "fabric.netkit")
MINE = {"app.kubernetes.io/managed-by": "netkit", "app.kubernetes.io/part-of": "small"}
WITHOUT_OWNER = {"Node", "NicClusterPolicy"}
POOL = {
    "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
    "kind": "CIDRPool",
    "metadata": {"name": "rail7", "namespace": "nvidia-network-operator", "labels": MINE},
}
DELETE_POOL = "kubectl delete CIDRPool.nv-ipam.nvidia.com -n nvidia-network-operator rail7"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return opened(tmp_path_factory.mktemp("fabric"), manifests.values())


def changed(one: Manifest, **metadata: Any) -> Manifest:
    return {**one, "metadata": {**one["metadata"], **metadata}}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_object_has_the_labels_of_its_owner(name: str) -> None:
    """Except for nodes, which netkit does not create, and the one NicClusterPolicy that fabrics share."""
    for one in rendered(name):
        expected = None if one["kind"] == "NicClusterPolicy" else MINE
        assert one["kind"] == "Node" or one["metadata"].get("labels") == expected, one["kind"]
        assert one["kind"] != "Node" or not MINE.keys() & one["metadata"]["labels"].keys()
    assert {one["kind"] for one in rendered(name)} - WITHOUT_OWNER <= set(OWNED)


@given(st.sampled_from(sorted(VARIANTS)), st.sampled_from(sorted(VARIANTS)))
def test_objects_of_another_intent_are_left_over_until_deleted(before: str, after: str) -> None:
    changes, settings = VARIANTS[after]
    now = files(fabric(changes, **settings))
    old, new = ({key(one): one for one in rendered(name)} for name in (before, after))
    live = {name: copy.deepcopy(one) for name, one in old.items()}
    for name, one in new.items():
        # As kubectl apply does with nodes: it adds labels, and keeps others.
        labels = {**old.get(name, one)["metadata"].get("labels", {}), **one["metadata"].get("labels", {})}
        live[name] = changed(one, labels=labels)
    found = compare_running(live.values(), now, (), owner=OWNER)
    gone = {(name[0], name[2]) for name in old if name not in new and name[0] != "Node"}
    removed = [tuple(one.name.split(" ", 1)) for one in (found.objects if found else ()) if one.action == "removed"]
    assert sorted(removed) == sorted(gone)
    cleaned = [one for name, one in live.items() if name in new]
    nodes = {name: one["metadata"]["labels"] for name, one in new.items() if name[0] == "Node"}
    cleaned = [changed(one, labels=nodes[key(one)]) if one["kind"] == "Node" else one for one in cleaned]
    assert compare_running(cleaned, now, (), owner=OWNER) is None


def key(one: Manifest) -> tuple[str, str, str]:
    metadata = one["metadata"]
    place = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    return one["kind"], one["apiVersion"].partition("/")[0], place


def test_a_left_over_object_is_listed_with_its_command(project: Project, tmp_path: Path) -> None:
    live = saved(tmp_path / "live.json", [*rendered_by(project), POOL])
    done = run("plan", "--fabric", project.folder, "--cluster", live)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "kubernetes: 1 object differs, pods restart on 4 nodes",
        "- CIDRPool nvidia-network-operator/rail7",
        "  pods keep the old values until they restart: gpu01, gpu02, gpu05, gpu06",
        f"  {LEFT}",
        f"  {DELETE_POOL}",
    ]
    facts = cluster_facts(project, str(live))
    assert facts.drift == (ObjectDrift("CIDRPool nvidia-network-operator/rail7", is_left=True),)
    assert facts.compared == len(rendered_by(project)) + 1


def test_a_left_over_object_is_a_finding(project: Project, tmp_path: Path) -> None:
    live = saved(tmp_path / "live.json", [*rendered_by(project), POOL])
    done = run("check", "cluster.objects", "--fabric", project.folder, "--cluster", live, "--format", "json")
    assert done.returncode == 1
    (result,) = json.loads(done.stdout)["results"]
    ((place, text, remedy),) = ((one["place"], one["text"], one["remedy"]) for one in result["findings"])
    assert place == "CIDRPool nvidia-network-operator/rail7"
    assert text == "exists, but is not part of the intent any more"
    assert remedy == "netkit plan --cluster prints the command that deletes it"
    assert result["examined"] == len(rendered_by(project)) + 1


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {}},
        {"labels": {"app.kubernetes.io/managed-by": "netkit"}},
        {"labels": {**MINE, "app.kubernetes.io/part-of": "other"}},
        {"labels": {**MINE, "app.kubernetes.io/managed-by": "Helm"}},
        {"ownerReferences": [{"kind": "SriovNetwork", "name": "rail0"}]},
    ],
)
def test_objects_of_other_owners_are_not_left_over(project: Project, metadata: Any) -> None:
    found = compare_running([*rendered_by(project), changed(POOL, **metadata)], FILES, (), owner=OWNER)
    assert found is None


FILES = files(fabric())


def test_a_list_of_one_kind_finds_left_over_objects(project: Project) -> None:
    """Items of such a list have no version, and so no group."""
    items = [{name: value for name, value in one.items() if name != "apiVersion"} for one in rendered_by(project)]
    assert compare_running(items, FILES, (), owner=OWNER) is None
    bare = {name: value for name, value in POOL.items() if name != "apiVersion"}
    found = compare_running([*items, bare], FILES, (), owner=OWNER)
    assert found is not None
    assert [(one.name, one.action) for one in found.objects] == [("CIDRPool nvidia-network-operator/rail7", "removed")]


def test_a_left_over_policy_drains_the_nodes_that_it_selects() -> None:
    changes = {"units": [{"unit": 1, "hosts": 2}, {"unit": 2, "hosts": 2, "rails": "1"}]}
    before = rendered_files(fabric(changes))
    found = compare_running(before, files(fabric({**changes, "units": [{"unit": 1, "hosts": 2}]})), NODES, owner=OWNER)
    assert found is not None
    assert found.drained == ("gpu05", "gpu06")  # the remaining policies no longer select them
    policies = [one for one in before if one["kind"] == "SriovNetworkNodePolicy"]
    left = [changed(one, name=f"{one['metadata']['name']}-old") for one in policies]
    found = compare_running([*before, *left], files(fabric(changes)), NODES, owner=OWNER)
    assert found is not None
    assert [one.action for one in found.objects] == ["removed", "removed"]
    assert found.drained == NODES
    found = compare_running([*before, left[0]], files(fabric(changes)), NODES, owner=OWNER)
    assert found is not None
    assert found.drained == ("gpu01", "gpu02")  # those of the other unit have no NIC on rail 0


NODES = ("gpu01", "gpu02", "gpu05", "gpu06")


def rendered_files(built: Any) -> list[Manifest]:
    return manifests.objects_of(files(built))


def test_labels_that_an_object_lacks_affect_nothing(project: Project) -> None:
    """As after an update from a release that rendered no labels of an owner."""
    live = [one if one["kind"] == "Node" else changed(one, labels={"other": "label"}) for one in rendered_by(project)]
    found = compare_running(live, FILES, NODES, owner=OWNER)
    assert found is not None
    assert len(found.objects) == sum(one["kind"] not in WITHOUT_OWNER for one in live)
    values = {(value.path, value.before, value.after) for one in found.objects for value in one.values}
    assert values == {(f"metadata.labels.{name}", "", value) for name, value in MINE.items()}
    assert (found.drained, found.restarted, found.advice) == ((), (), ())


def test_left_over_labels_of_a_node_are_found(project: Project) -> None:
    live = rendered_by(project)
    (first, *_) = (one for one in live if one["kind"] == "Node")
    first["metadata"]["labels"] |= {
        "fabric.netkit/rail7": "true",
        "fabric.netkit/rack": "a1",
        "fabric.netkit/health": "degraded",  # of steering
        "fabric.netkit/colour": "red",  # of the site
        "elsewhere/rail6": "true",
    }
    former = {"fabric.netkit/fabric": "small", "fabric.netkit/unit": "9", "zone": "b"}
    other = {"fabric.netkit/fabric": "large", "fabric.netkit/unit": "9"}
    more = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        for name, labels in (("gpu99", former), ("gpu98", other), ("login", {"fabric.netkit/unit": "1"}))
    ]
    assert compare_running([*live, *more], FILES, NODES, owner=OWNER) == ClusterDiff(
        "kubernetes",
        (
            ObjectChange(
                "Node gpu01",
                "changed",
                (
                    ValueChange("metadata.labels.fabric.netkit/rack", "a1", ""),
                    ValueChange("metadata.labels.fabric.netkit/rail7", "true", ""),
                ),
            ),
            ObjectChange(
                "Node gpu99",
                "changed",
                (
                    ValueChange("metadata.labels.fabric.netkit/fabric", "small", ""),
                    ValueChange("metadata.labels.fabric.netkit/unit", "9", ""),
                ),
            ),
        ),
        advice=(
            PLACED,
            LEFT,
            "kubectl label node gpu01 fabric.netkit/rack- fabric.netkit/rail7-",
            "kubectl label node gpu99 fabric.netkit/fabric- fabric.netkit/unit-",
        ),
    )


def test_a_node_with_missing_and_left_over_labels_is_listed_once(project: Project) -> None:
    live = rendered_by(project)
    (first, *_) = (one for one in live if one["kind"] == "Node")
    first["metadata"]["labels"] = {"fabric.netkit/fabric": "small", "fabric.netkit/rail7": "true"}
    found = compare_running(live, FILES, NODES, owner=OWNER)
    assert found is not None
    (change,) = found.objects
    assert [(value.path.removeprefix("metadata.labels.fabric.netkit/"), value.after) for value in change.values] == [
        ("rail0", "true"),
        ("rail1", "true"),
        ("rail7", ""),
        ("unit", "1"),
    ]
    assert "kubectl label node gpu01 fabric.netkit/rail7-" in found.advice


def test_the_api_server_is_queried_for_left_over_objects(project: Project, tmp_path: Path) -> None:
    theirs = changed(POOL, name="theirs", labels={})
    left = {"apiVersion": "mellanox.com/v1alpha1", "kind": "MacvlanNetwork", "metadata": {"name": "x", "labels": MINE}}
    unlabelled = {**left, "metadata": {"name": "y"}}
    with api_server([*rendered_by(project), POOL, theirs, left, unlabelled]) as api:
        api.page = 1
        found = compared(project, str(api.kubeconfig(tmp_path)))
    assert found.diff is not None
    assert [(one.name, one.action) for one in found.diff.objects] == [
        ("CIDRPool nvidia-network-operator/rail7", "removed"),
        ("MacvlanNetwork x", "removed"),
    ]
    assert found.diff.advice == (LEFT, DELETE_POOL, "kubectl delete MacvlanNetwork.mellanox.com x")
    names = [one["metadata"]["name"] for one in found.reading.objects if one["kind"] == "MacvlanNetwork"]
    assert names == ["x"]
    assert (found.reading.unread, found.reading.unsearched) == ({}, {})


def test_a_kind_that_may_not_be_searched_is_listed_and_does_not_change_the_exit_code(
    project: Project, tmp_path: Path
) -> None:
    with api_server(rendered_by(project)) as api:
        api.lists["SriovNetworkNodeState"] = []
        api.refused = {"IPPool": 403}
        file = api.kubeconfig(tmp_path)
        done = run("plan", "--fabric", project.folder, "--cluster", file)
        checked = run("check", "cluster.objects", "--fabric", project.folder, "--cluster", file, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "the cluster matches the rendered files",
        "not searched for leftover objects: IPPool: the API server answers 403",
    ]
    (result,) = json.loads(checked.stdout)["results"]
    assert [(one["verdict"], one["place"], one["text"]) for one in result["findings"]] == [
        ("skipped", "IPPool", "was not read: the API server answers 403")
    ]

"""The manifests of a Kubernetes cluster: valid for their CRDs, and consistent with the fabric and its hosts."""

import copy
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from netkit.design import Fabric
from netkit.errors import DesignError
from netkit.intent.model import KubernetesIntent
from netkit.observe.kubernetes import OF_PODS, PATHS
from netkit.platforms.linux.view_nic import nic_qos, nv_settings
from netkit.render import Engine, render
from netkit.render.render import render_clusters
from tests import intents
from tests.clusters import manifests
from tests.clusters.manifests import VLAN, Manifest
from tests.conftest import Golden

ENGINE = Engine()
CRDS = os.environ.get("NETKIT_CRDS")
"""A folder with the CRDs of the operators, in the layout of their repositories; 26.7 or later for all variants."""
THREE_TIERS = {
    "topology": "three-tier",
    "ceilings": {"pods": 2, "cores": 2},
    "switches": {
        "spine": {"uplink_breakout": "2x400G"},
        "core": {"model": "SN5600", "platform": "nvue", "version": "5.16.1", "breakout": "2x400G", "slots": 1},
    },
    "units": [{"pod": "1-2", "unit": "1-2", "hosts": 2}],
    "cables": {"core": {"media": "800G-2xDR4", "length_m": 40}},
    "names": {"spine": "spine{number:02}", "core": "core{number:02}"},
}
OLDEST_WITH_ECN = "26.7.0"
MODES = ("sriov", "host-device", "macvlan", "spectrum-x")


def fabric(changes: dict[str, Any] | None = None, **settings: Any) -> Fabric:
    return intents.fabric(manifests.values(changes, **settings))


def files(built: Fabric) -> dict[str, str]:
    (rendered,) = render_clusters(built, built.clusters, ENGINE)
    return dict(rendered.files)


def variants() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Every mode with both attachments, and the settings that add or change objects."""
    for mode, attachment in product(MODES, ("p2p", "vlan")):
        changes = VLAN if attachment == "vlan" else {}
        yield f"{mode}-{attachment}", changes, {"mode": mode}
        if mode != "spectrum-x":
            yield f"{mode}-{attachment}-by-source", changes, {"mode": mode, "pod_routes": "by-source"}
        yield f"{mode}-{attachment}-operator", changes, {"mode": mode, "nic_qos": "operator"}
    yield "operator-26.7", {}, {"nic_qos": "operator", "operator_version": OLDEST_WITH_ECN}
    yield "mixed", {}, {"rail_modes": {1: "macvlan"}, "nic_qos": "operator"}
    yield "prefix", {}, {"mode": "host-device", "resource_prefix": "example.com", "pod_routes": "by-source"}
    yield "three-tier", THREE_TIERS, {}
    yield "volcano", {}, {"scheduler": "volcano"}
    yield "volcano-three-tier", THREE_TIERS, {"scheduler": "volcano"}
    lacking = {"units": [{"unit": 1, "hosts": 2}, {"unit": 2, "hosts": 2, "rails": "1"}]}
    yield "rails", lacking, {"mode": "macvlan", "nic_qos": "operator", "unit": "2"}


VARIANTS = {name: (changes, settings) for name, changes, settings in variants()}


@cache
def rendered(name: str) -> tuple[Manifest, ...]:
    changes, settings = VARIANTS[name]
    return tuple(manifests.objects_of(files(fabric(changes, **settings))))


@pytest.mark.parametrize("name", VARIANTS)
def test_every_manifest_is_valid_for_its_schema(name: str) -> None:
    found = rendered(name)
    assert [complaint for one in found for complaint in manifests.complaints(one)] == []
    places = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in found]
    assert len(set(places)) == len(places)


@pytest.mark.skipif(not CRDS, reason="NETKIT_CRDS names no folder")
@pytest.mark.parametrize("name", VARIANTS)
def test_every_manifest_is_valid_for_the_crd_of_its_operator(name: str) -> None:
    known = manifests.crds(Path(CRDS or ""))
    found = [one for one in rendered(name) if one["apiVersion"] != "v1"]
    assert [complaint for one in found for complaint in manifests.real_complaints(known, one)] == []


def test_every_kind_of_the_schema_is_rendered_and_no_other() -> None:
    assert {manifests.title(one) for name in VARIANTS for one in rendered(name)} == set(manifests.schema())


def test_every_kind_can_be_read_from_a_cluster() -> None:
    paths = {(one["kind"], one["apiVersion"]) for name in VARIANTS for one in rendered(name)}
    read = {(kind, re.sub(r"/apis?/(.*)/[^/]+", r"\1", path)) for kind, path in PATHS.items()}
    assert paths <= read


@cache
def one_of_each_kind() -> dict[str, Manifest]:
    """The largest object of each kind, by its title."""
    found: dict[str, Manifest] = {}
    for one in (one for name in VARIANTS for one in rendered(name)):
        title = manifests.title(one)
        if len(json.dumps(one)) > len(json.dumps(found.get(title, ""))):
            found[title] = one
    return found


@pytest.mark.parametrize("title", manifests.schema())
def test_a_missing_or_an_unknown_field_is_detected(title: str) -> None:
    manifest = one_of_each_kind()[title]
    known = {key: part for key, part in manifests.schema()[title].items() if key != "scope"}
    paths = [("kind",), ("apiVersion",), ("metadata",), ("metadata", "name"), *manifests.required(known, manifest)]
    for path in paths:
        mutant = copy.deepcopy(manifest)
        del at(mutant, path[:-1])[path[-1]]
        assert manifests.complaints(mutant), path
    for path in manifests.objects(manifest):
        mutant = copy.deepcopy(manifest)
        at(mutant, path)["surprise"] = "x"
        assert manifests.complaints(mutant), path


def at(manifest: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        manifest = manifest[part]
    return manifest


@pytest.mark.parametrize("name", ["sriov-p2p", "sriov-vlan-operator", "volcano-three-tier"])
def test_every_file_equals_its_golden_file(name: str, golden: Golden) -> None:
    changes, settings = VARIANTS[name]
    for file, text in files(fabric(changes, **settings)).items():
        golden(f"clusters/kubernetes-{name}/{file}", text)


@pytest.mark.parametrize(
    "name", ["host-device-p2p", "macvlan-p2p", "macvlan-vlan-by-source", "spectrum-x-vlan", "prefix"]
)
def test_networks_and_policies_of_each_mode_equal_their_golden_files(name: str, golden: Golden) -> None:
    changes, settings = VARIANTS[name]
    found = files(fabric(changes, **settings))
    for file in ("networks.yaml", "nic-policy.yaml"):
        golden(f"clusters/kubernetes-{name}/{file}", found[file])


BROUGHT_BY_THE_POLICY = {
    "CIDRPool", "IPPool", "NicConfigurationTemplate", "NicInterfaceNameTemplate", "SpectrumXRailPoolConfig"
}  # fmt: skip
"""Kinds whose CRDs the Network Operator applies with the components in a NicClusterPolicy."""


@pytest.mark.parametrize("name", VARIANTS)
def test_files_that_are_applied_first_need_no_crd_of_the_policy(name: str) -> None:
    changes, settings = VARIANTS[name]
    found = files(fabric(changes, **settings))
    kinds = {file: {one["kind"] for one in manifests.documents(text)} for file, text in found.items()}
    assert (kinds["nodes.yaml"], kinds["nic-policy.yaml"] - {"NicNodePolicy"}) == ({"Node"}, {"NicClusterPolicy"})
    later = {kind for file, own in kinds.items() if file not in {"nodes.yaml", "nic-policy.yaml"} for kind in own}
    assert later & BROUGHT_BY_THE_POLICY
    assert ("nic-config.yaml" in found) == (settings.get("nic_qos") == "operator")


def test_the_role_in_the_guide_permits_all_reads_of_a_comparison() -> None:
    page = (Path(__file__).parents[2] / "docs/kubernetes.md").read_text(encoding="utf-8")
    (text,) = (
        one for one in re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if "ClusterRole" in one
    )
    (role,) = manifests.documents(text)
    read = {one["kind"] for name in VARIANTS for one in rendered(name)} | set(OF_PODS)
    wanted = set()
    for kind in read:
        *_, group, _, resource = PATHS[kind].split("/")
        wanted.add(("" if group == "api" else group, resource))
    assert [rule["verbs"] for rule in role["rules"]] == [["get", "list"]] * len(role["rules"])
    found = [(group, one) for rule in role["rules"] for group in rule["apiGroups"] for one in rule["resources"]]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "1/1", "nvidia.com/mig-1g.10gb", "example.com/" + "g" * 63])
def test_a_gpu_resource_has_a_prefix(name: str) -> None:
    (queue,) = manifests.objects_of(files(fabric(gpu_resource=name)), ["ClusterQueue"])
    assert queue["spec"]["resourceGroups"][0]["coveredResources"][0] == name


@pytest.mark.parametrize(
    "name", ["gpu", "on", "/gpu", "nvidia.com/", "Nvidia.com/gpu", "a/b/c", "a b/c", "a/b: c", "a/-b", "a/" + "g" * 64]
)
def test_an_invalid_resource_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError) as refused:
        fabric(gpu_resource=name)
    (error,) = refused.value.errors()
    assert error["loc"] == ("clusters", "kubernetes", "gpu_resource")
    assert error["msg"] == (
        "Value error, {given} is not a resource of a device plugin; write it as prefix/name, such as nvidia.com/gpu"
    )


# Field → the cluster settings it needs, and a change of it.
FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pod": (THREE_TIERS, {"pod": "2"}),
    "unit": ({}, {"unit": "2"}),
    "domain": ({}, {"domain": "example.net"}),
    "mode": ({}, {"mode": "macvlan"}),
    "rail_modes": ({}, {"rail_modes": {1: "host-device"}}),
    "vfs": ({}, {"vfs": 4}),
    "nic_qos": ({}, {"nic_qos": "operator"}),
    "pod_routes": ({}, {"pod_routes": "by-source"}),
    "namespace": ({}, {"namespace": "training"}),
    "operator_namespace": ({}, {"operator_namespace": "network"}),
    "operator_version": ({}, {"operator_version": "26.7.0"}),
    "image_registry": ({}, {"image_registry": "registry.example.net/mellanox"}),
    "resource_prefix": ({}, {"resource_prefix": "nvidia-dgx-h100"}),
    "resource": ({}, {"resource": "nic{rail}"}),
    "network": ({}, {"network": "nic{rail}"}),
    "gpu_resource": ({}, {"gpu_resource": "example.com/gpu"}),
    "label_prefix": ({}, {"label_prefix": "example.com"}),
    "scheduler": ({}, {"scheduler": "volcano"}),
    "queue": ({}, {"queue": "batch"}),
}
ELSEWHERE = {"image": "jobs of acceptance", "steering": "netkit check --steer"}


def test_every_field_has_a_change() -> None:
    assert {*FIELDS, *ELSEWHERE} == set(KubernetesIntent.model_fields)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_changes_a_file(field: str) -> None:
    changes, settings = FIELDS[field]
    assert files(fabric(changes)) != files(fabric(changes, **settings))


@pytest.mark.parametrize(("rack", "label"), [("a1", "a1"), ("Row 3/A_07 (left)", "Row-3-A_07-left")])
def test_a_rack_is_a_label(rack: str, label: str) -> None:
    built = fabric({"overrides": {"gpu01": {"rack": rack}}})
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in nodes(built)}
    assert [labels[name].get("fabric.netkit/rack") for name in ("gpu01", "gpu02")] == [label, None]


def nodes(built: Fabric) -> list[Manifest]:
    return manifests.objects_of(files(built), ["Node"])


def test_names_of_nodes_are_lower_case() -> None:
    built = fabric({"names": {"host": "GPU{number:02}"}})
    assert [one["metadata"]["name"] for one in nodes(built)] == ["gpu01", "gpu02", "gpu05", "gpu06"]
    (pool, _) = manifests.objects_of(files(built), ["CIDRPool"])
    assert [one["nodeName"] for one in pool["spec"]["staticAllocations"]] == ["gpu01", "gpu02", "gpu05", "gpu06"]


def test_the_operator_gets_the_values_of_the_rendered_host_files() -> None:
    built = fabric({"adaptive_routing": True}, nic_qos="operator", operator_version=OLDEST_WITH_ECN)
    own = nic_qos(built.lossless, "mlx5", is_adaptive=True)
    (policy,) = manifests.objects_of(files(built), ["NicConfigurationTemplate"])
    template = policy["spec"]["template"]
    qos = template["roceOptimized"]["qos"]
    assert qos == {
        "trust": "dscp",
        "pfc": ",".join(pair.partition(":")[2] for pair in own.pfc.split()),
        "tos": own.tos,
        "ecn": {"enabled": True, "priority": own.priority},
        "pauseFrames": {"enabled": False},
    }
    older = fabric({"adaptive_routing": True}, nic_qos="operator")
    (before,) = manifests.objects_of(files(older), ["NicConfigurationTemplate"])
    kept = {key: qos[key] for key in ("trust", "pfc", "tos")}
    assert before["spec"]["template"]["roceOptimized"] == {"enabled": True, "qos": kept}
    assert before["spec"]["template"]["rawNvConfig"] == template["rawNvConfig"]
    firmware = {one["name"]: one["value"] for one in template["rawNvConfig"]}
    # linkType is this setting.
    assert firmware | {"LINK_TYPE_P1": "2"} == {one.key: one.value for one in nv_settings(built)}
    assert (template["linkType"], template["numVfs"]) == ("Ethernet", 8)


@pytest.mark.parametrize("backend", ["netplan", "networkd"])
def test_either_netkit_or_the_operator_configures_the_nics_of_a_host(backend: str) -> None:
    hosts = {"hosts": {"backend": backend}}
    kept, left = (fabric(hosts, unit="1", nic_qos=owner) for owner in ("netkit", "operator"))
    before, after = ({one.device: one.files for one in render(built, built.hosts, ENGINE)} for built in (kept, left))
    gone = {"netkit-nic-qos", "netkit-nic-qos@.service", "mlxconfig.conf"}
    for name in ("gpu01", "gpu02"):
        assert set(before[name]) - set(after[name]) == gone
        assert [file for file, text in after[name].items() if "nic-qos" in text or "mlxconfig" in text] == []
        changed = {file for file in after[name] if after[name][file] != before[name][file]}
        assert changed == {"70-netkit-rails.rules", "install.txt"}
        assert 'NAME="$env{NETKIT_RAIL}"\n' in after[name]["70-netkit-rails.rules"]
    # Hosts of another unit are not nodes.
    assert {name: after[name] for name in ("gpu05", "gpu06")} == {name: before[name] for name in ("gpu05", "gpu06")}


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    (
        {},
        {"operator_version": "26.1.2"},
        "operator_version",
        "the operator of release 26.1.2 does not know all objects and fields that are rendered",
        "use 26.4 or later",
    ),
    (
        {},
        {"network": "Rail{rail}"},
        "network",
        "names of networks are lower-case in Kubernetes",
        "write it in lower case",
    ),
    (
        {"lossless": {"roce": {"dscp": [34]}}},
        {"nic_qos": "operator"},
        "nic_qos",
        "the operator leaves NICs their own map, in which DSCP 34 has priority 4, not 3",
        "use DSCPs from 24 to 31, or use nic_qos: netkit",
    ),
    (
        {},
        {"mode": "spectrum-x", "resource": "nic{rail}"},
        "resource",
        "with mode spectrum-x, network and resource of a rail have one name",
        "write rail{rail} here too",
    ),
    (
        {},
        {"mode": "spectrum-x", "pod_routes": "by-source"},
        "pod_routes",
        "with mode spectrum-x, routes of pods are in the main table",
        "use pod_routes: main, or another mode",
    ),
    (
        {"lossless": {"roce": {"priority": 4, "dscp": [34]}}},
        {"mode": "spectrum-x"},
        "mode",
        "mode spectrum-x marks RoCE data with DSCP 24, which is not lossless here",
        "add 24 to lossless.roce.dscp, or use another mode",
    ),
]


@pytest.mark.parametrize(("changes", "settings", "key", "message", "remedy"), REFUSED)
def test_features_unsupported_by_an_operator_are_refused(
    changes: dict[str, Any], settings: dict[str, Any], key: str, message: str, remedy: str
) -> None:
    with pytest.raises(DesignError) as refused:
        fabric(changes, **settings)
    assert str(refused.value) == f"clusters.kubernetes.{key}: {message}; {remedy}"


def renamed(**names: str) -> dict[str, Any]:
    """Give hosts of the first unit other names, by slot: s1, s2."""
    return {"units": [{"unit": 1, "hosts": 2, "host_names": {int(slot[1:]): name for slot, name in names.items()}}]}


def test_hosts_with_the_same_node_name_are_refused() -> None:
    with pytest.raises(DesignError) as refused:
        fabric(renamed(s1="GPU02"))
    assert str(refused.value) == (
        "units[0].host_names[1]: GPU02 and gpu02 are one node in Kubernetes, whose names are lower-case;"
        " rename one of them"
    )
    assert intents.fabric(intents.values(renamed(s1="GPU02"))).hosts[0].name == "GPU02"


@pytest.mark.parametrize("kind", ["kubernetes", "slurm"])
@pytest.mark.parametrize("role", ["host", "spine"])
def test_a_device_named_like_the_folder_of_a_cluster_is_refused(kind: str, role: str) -> None:
    changes = renamed(s2=kind)
    if role == "spine":
        changes = {"names": {"spine": kind}, "switches": {"spine": {"slots": 1}}}
    room = intents.values({**manifests.ROOM, **changes})
    assert kind in intents.fabric(room).names
    with pytest.raises(DesignError) as refused:
        intents.fabric({**room, "clusters": {kind: {}}})
    place = "names.spine" if role == "spine" else "units[0].host_names[2]"
    assert str(refused.value) == (
        f"{place}: a device is called {kind}, as the folder of the cluster's rendered files; rename it"
    )
    other = {"kubernetes": "slurm", "slurm": "kubernetes"}[kind]
    assert intents.fabric({**room, "clusters": {other: {}}})


def test_settings_that_an_operator_ignores_give_warnings() -> None:
    def warnings(**settings: Any) -> list[str]:
        built = fabric({"adaptive_routing": True}, **settings)
        return [str(note) for note in built.notes if note.path[:1] == ("clusters",)]

    remedy = "set them at each boot by other means, or use nic_qos: netkit"
    head = "clusters.kubernetes.nic_qos: the operator has no setting for the shares of traffic classes"
    forced = "for forcing adaptive routing on NICs"
    assert warnings(nic_qos="operator") == [f"{head}, for ECN and global pause (26.7 has), {forced}; {remedy}"]
    assert warnings(nic_qos="operator", operator_version=OLDEST_WITH_ECN) == [f"{head}, {forced}; {remedy}"]
    assert warnings() == []


def test_addresses_for_pods_are_counted_by_mode() -> None:
    room = {"ceilings": {"addresses_per_nic": 2}}
    assert files(fabric(room, mode="host-device"))
    for mode in ("sriov", "macvlan", "spectrum-x"):
        with pytest.raises(DesignError) as refused:
            fabric(room, mode=mode)
        assert str(refused.value) == (
            "clusters.kubernetes.mode: 8 pods share a rail NIC and need an address each, and there is room for 1;"
            " set ceilings.addresses_per_nic: 9 (which renumbers), or lower vfs"
        )


@pytest.mark.parametrize("routes", ["per-leaf", "supernet"])
def test_no_route_is_the_link_of_a_node(routes: str) -> None:
    # With one host in a unit, the prefix of a leaf is that of its only link.
    alone = {"host_routes": routes, "ceilings": {"hosts_per_unit": 1}, "units": [{"unit": "1-2", "hosts": 1}]}
    (pool, _) = manifests.objects_of(files(fabric(alone)), ["CIDRPool"])
    assert [one["dst"] for one in pool["spec"]["routes"]] == ["10.128.0.0/17"]

"""A running cluster compared with what is rendered: from files, through the official client, and by checks."""

import contextlib
import copy
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kubernetes.client.exceptions import ApiException

from netkit.design.clusters import KubernetesCluster
from netkit.errors import CheckError, UsageError
from netkit.facts import Snapshot, serial
from netkit.judge import CheckContext, Verdict, catalog
from netkit.judge.run import run as run_checks
from netkit.observe.kubernetes import OWNED
from netkit.plan.cluster_diff import compare_running
from netkit.project.cluster import cluster_facts, compared
from netkit.project.project import Project
from netkit.project.rendering import cluster_files
from tests import intents
from tests.checks.judging import shipped
from tests.clusters import manifests
from tests.clusters.api_server import Api, api_server
from tests.command import assert_refused, run

Object = dict[str, Any]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return opened(tmp_path_factory.mktemp("fabric"), manifests.values())


def opened(folder: Path, values: Mapping[str, Any]) -> Project:
    (folder / "fabric.yaml").write_text(yaml.safe_dump(dict(values)))
    return Project.open(folder)


def rendered(project: Project) -> list[Object]:
    return [one for text in cluster_files(project)["kubernetes"].values() for one in manifests.documents(text)]


def lived_in(objects: Sequence[Object]) -> list[Object]:
    """Objects as in a running cluster: with defaults, a status, and labels and objects of other owners."""
    found = copy.deepcopy(list(objects))
    for one in found:
        one["metadata"] |= {"uid": "1", "resourceVersion": "7"}
        one["metadata"].setdefault("labels", {})["other"] = "label"
        one["status"] = {"phase": "fine"}
        if isinstance(one.get("spec"), dict):
            one["spec"]["aDefault"] = True
    return [*found, {"kind": "SriovNetwork", "metadata": {"name": "other", "namespace": "default"}, "spec": {}}]


def saved(file: Path, objects: Sequence[Object]) -> Path:
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return file


def test_a_complete_cluster_does_not_differ(project: Project, tmp_path: Path) -> None:
    found = compared(project, str(saved(tmp_path / "live.json", lived_in(rendered(project)))))
    assert (found.diff, found.compared, found.reading.unread) == (None, len(rendered(project)), {})


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in pairs:
            yield from leaves(one, (*path, key))
    else:
        yield path


@given(st.data())
def test_each_changed_value_is_found_at_its_object(project: Project, data: st.DataObject) -> None:
    objects, files = lived_in(rendered(project)), cluster_files(project)["kubernetes"]
    number = data.draw(st.integers(0, len(rendered(project)) - 1))
    places = [path for path in leaves(rendered(project)[number]) if path[0] not in {"kind", "apiVersion"}]
    names = {("metadata", "name"), ("metadata", "namespace")}
    path = data.draw(st.sampled_from([one for one in places if one not in names]))
    holder: Any = objects[number]
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = "changed"
    found = compare_running(objects, files, ())
    assert found is not None
    metadata = objects[number]["metadata"]
    name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    assert [(one.name, one.action) for one in found.objects] == [(f"{objects[number]['kind']} {name}", "changed")]
    assert all("changed" in value.before or value.path for value in found.objects[0].values)


def test_missing_objects_would_be_added(project: Project) -> None:
    files = cluster_files(project)["kubernetes"]
    found = compare_running([], files, ())
    assert found is not None
    assert [one.action for one in found.objects] == ["added"] * len(rendered(project))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no Kubernetes object"),
        ("{", "is neither JSON nor YAML"),
        ("a: [", "is neither JSON nor YAML"),
        ("[" * 9_999, "is neither JSON nor YAML"),
        ("just a word", "contains no Kubernetes object"),
        ('{"kind": "List", "items": [1, null]}', "contains no Kubernetes object"),
        ("kind: Config\nclusters: []\n", "is not a usable kubeconfig: "),
    ],
)
def test_a_file_of_another_format_is_refused(project: Project, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(CheckError) as refused:
        compared(project, str(file))
    assert str(refused.value).startswith(f"{file}: {message}")


def test_a_cluster_outside_the_fabric_is_refused(project: Project, tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.txt"
    nodes.write_text("NodeName=gpu01 State=IDLE\n")
    for source in ("slurm", str(nodes)):
        with pytest.raises(UsageError, match="small has no cluster of kind slurm"):
            compared(project, source)


def test_a_folder_called_slurm_does_not_hide_scontrol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    (tmp_path / "slurm").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="small has no cluster of kind slurm"):
        compared(project, "slurm")


@pytest.fixture(name="api")
def serving(project: Project) -> Iterator[Api]:
    with api_server(lived_in(rendered(project))) as found:
        yield found


def test_the_api_server_is_queried_for_current_and_earlier_kinds(project: Project, tmp_path: Path, api: Api) -> None:
    api.page = 1
    found = compared(project, str(api.kubeconfig(tmp_path)))
    assert found.diff is None
    assert found.reading.unread == {}
    assert set(api.asked) == {one["kind"] for one in rendered(project)} | set(OWNED)
    facts = cluster_facts(project, str(tmp_path / "kubeconfig"))
    assert facts.unread == {"SriovNetworkNodeState": "unknown kind in the cluster"}


def test_a_forbidden_kind_is_not_compared(project: Project, tmp_path: Path, api: Api) -> None:
    api.refused = {"SriovNetwork": 403}
    api.lists["SriovNetwork"] = []
    file = api.kubeconfig(tmp_path)
    found = run("plan", "--fabric", project.folder, "--cluster", file)
    assert (found.returncode, found.stderr) == (4, "")
    assert found.stdout.splitlines() == [
        "the cluster matches the rendered files",
        "not compared: SriovNetwork: the API server answers 403",
    ]


def test_a_wrong_token_compares_nothing(project: Project, tmp_path: Path, api: Api) -> None:
    found = compared(project, str(api.kubeconfig(tmp_path, token="wrong")))  # noqa: S106 (of this server alone)
    assert (found.diff, found.compared) == (None, 0)


def test_an_unreachable_server_is_reported_in_one_line(project: Project, tmp_path: Path) -> None:
    with api_server([]) as api:
        file = api.kubeconfig(tmp_path)
    found = run("plan", "--fabric", project.folder, "--cluster", file)
    assert found.returncode == 3
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    assert line.startswith(f"error: the API server of {file} does not answer: ")


def test_a_failed_tls_handshake_is_reported_in_one_line(project: Project, tmp_path: Path, api: Api) -> None:
    """The client reports it as an answer with status 0."""
    file = api.kubeconfig(tmp_path)
    file.write_text(file.read_text().replace("http://", "https://"))
    found = run("plan", "--fabric", project.folder, "--cluster", file)
    (line,) = found.stderr.splitlines()
    assert found.returncode == 3
    assert line.startswith(f"error: the API server of {file} does not answer: ")
    assert "SSL" in line


def test_an_answer_with_status_0_is_reported_in_one_line(
    project: Project, tmp_path: Path, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ApiException(status=0, reason="SSLError\ncertificate has expired")

    monkeypatch.setattr("kubernetes.client.CustomObjectsApi.list_cluster_custom_object", failing)
    with pytest.raises(CheckError, match="does not answer: SSLError certificate has expired; check server"):
        compared(project, str(api.kubeconfig(tmp_path)))


OWN = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: exporter
  namespace: {{ settings.namespace }}
---
apiVersion: example.net/v1
kind: Topology
metadata:
  name: site
"""


def test_the_users_own_files_are_compared(tmp_path: Path) -> None:
    folder = tmp_path / "templates" / "kubernetes" / "files"
    folder.mkdir(parents=True)
    (folder / "own.yaml.j2").write_text(OWN)
    project = opened(tmp_path, manifests.values())
    objects = rendered(project)
    assert [one["kind"] for one in objects[-2:]] == ["Deployment", "Topology"]
    assert compared(project, str(saved(tmp_path / "live.json", objects))).diff is None
    with api_server(objects[:-2]) as api:
        found = compared(project, str(api.kubeconfig(tmp_path)))
    assert found.diff is None
    assert found.compared == len(objects) - 2
    why = "the API server is not queried for it; save it with kubectl get -o json"
    assert found.reading.unread == {"Deployment.apps": why, "Topology.example.net": why}


def test_a_template_that_renders_invalid_yaml_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "templates" / "kubernetes"
    folder.mkdir(parents=True)
    (folder / "nodes.yaml.j2").write_text("kind: Node\nmetadata: [\n")
    project = opened(tmp_path, manifests.values())
    done = run("plan", "--fabric", project.folder, "--cluster", saved(tmp_path / "live.json", [STATES]))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: kubernetes/nodes.yaml:3: is not YAML: ")


def pod(name: str, node: str, networks: Mapping[str, tuple[str, str]], **more: Any) -> Object:
    """A running pod with an interface on each network, with an address and a device."""
    status = [
        {"name": f"default/{network}", "interface": "net1", "ips": [ip] if ip else [], **device(pci)}
        for network, (ip, pci) in networks.items()
    ]
    wanted = more.get("wanted", ",".join(networks))
    annotations = {"k8s.v1.cni.cncf.io/networks": wanted, "k8s.v1.cni.cncf.io/network-status": json.dumps(status)}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": "Running"}}


def device(pci: str) -> Mapping[str, Any]:
    return {"device-info": {"type": "pci", "version": "1.0.0", "pci": {"pci-address": pci}}} if pci else {}


RAIL0, RAIL1 = "0000:18:00.0", "0000:40:00.0"
STATES = {
    "kind": "SriovNetworkNodeState",
    "metadata": {"name": "gpu01", "namespace": "nvidia-network-operator"},
    "status": {
        "interfaces": [
            {"pciAddress": RAIL0, "Vfs": [{"pciAddress": "0000:18:00.2"}]},
            {"pciAddress": RAIL1, "Vfs": [{"pciAddress": "0000:40:00.2"}]},
        ]
    },
}


def found_by_check(project: Project, tmp_path: Path, *objects: Object) -> list[tuple[str, str]]:
    """The findings of netkit check cluster.pods."""
    file = saved(tmp_path / "live.json", [*rendered(project), STATES, *objects])
    words = (
        "check",
        "cluster.objects",
        "cluster.pods",
        "--fabric",
        project.folder,
        "--cluster",
        file,
        "--format",
        "json",
    )
    done = run(*words)
    assert done.stderr == ""
    document = json.loads(done.stdout)
    return [(one["place"], one["text"]) for result in document["results"] for one in result["findings"]]


def test_a_pod_on_its_rails_passes(project: Project, tmp_path: Path) -> None:
    good = pod("a", "gpu01", {"rail0": ("10.128.0.3", "0000:18:00.2"), "rail1": ("10.128.128.3", "0000:40:00.2")})
    assert found_by_check(project, tmp_path, good) == []
    facts = cluster_facts(project, str(tmp_path / "live.json"))
    assert [(one.name, one.wanted) for one in facts.pods] == [("default/a", ("default/rail0", "default/rail1"))]


@pytest.mark.parametrize(
    ("networks", "more", "text"),
    [
        ({}, {"wanted": "rail0"}, "has no interface on the rail, though it asks for default/rail0"),
        ({"rail0": ("10.128.0.3", "0000:40:00.2")}, {}, f"is on 0000:40:00.2 of the NIC {RAIL1}"),
        ({"rail0": ("", "0000:18:00.2")}, {}, "has no address"),
        ({"rail0": ("10.128.0.19", "0000:18:00.2")}, {}, "has 10.128.0.19, outside 10.128.0.0/28 of gpu01"),
        ({"rail0": ("10.128.0.2", "0000:18:00.2")}, {}, "has 10.128.0.2, as gpu01 has"),
        ({"rail0": ("10.128.0.1", "0000:18:00.2")}, {}, "has 10.128.0.1, the address of the gateway"),
        ({"rail0": ("fe80::1", "0000:18:00.2")}, {}, "has fe80::1, which is not an IPv4 address"),
    ],
)
def test_a_misconfigured_pod_is_found(project: Project, tmp_path: Path, networks: Any, more: Any, text: str) -> None:
    ((place, said),) = found_by_check(project, tmp_path, pod("a", "gpu01", networks, **more))
    assert place == "default/a rail0"
    assert said.startswith(text)


def test_an_address_of_two_pods_is_found_once(project: Project, tmp_path: Path) -> None:
    address = {"rail0": ("10.128.0.3", "0000:18:00.2")}
    found = found_by_check(project, tmp_path, pod("a", "gpu01", address), pod("b", "gpu01", address))
    assert found == [("default/b rail0", "has 10.128.0.3, as default/a has")]


def test_pods_elsewhere_finished_or_without_rails_do_not_fail(project: Project, tmp_path: Path) -> None:
    elsewhere = pod("c", "other", {"rail0": ("10.128.0.3", "")})
    done = {**pod("d", "gpu01", {}, wanted="rail0"), "status": {"phase": "Succeeded"}}
    plain = pod("e", "gpu01", {}, wanted="")
    skipped = [("default/c", "runs on other, which is not in the fabric")]
    assert found_by_check(project, tmp_path, elsewhere, done, plain) == skipped


def test_virtual_functions_of_spectrum_x_are_judged(tmp_path: Path) -> None:
    settings = {"mode": "spectrum-x", "resource": "rail{rail}", "network": "rail{rail}"}
    project = opened(tmp_path, manifests.values({"lossless": {"roce": {"dscp": [24, 26]}}}, **settings))
    good = pod("a", "gpu01", {"rail0": ("10.128.0.3", "0000:18:00.2")})
    wrong = pod("b", "gpu01", {"rail0": ("10.128.0.4", "0000:40:00.2")})
    physical = pod("c", "gpu01", {"rail0": ("10.128.0.5", RAIL0)})
    found = found_by_check(project, tmp_path, good, wrong, physical)
    assert found == [
        ("default/b rail0", f"is on 0000:40:00.2 of the NIC {RAIL1}, not on that of the rail, {RAIL0}"),
        ("default/c rail0", f"is on {RAIL0}, which is not a virtual function of gpu01"),
    ]


def test_a_device_that_is_not_a_function_is_found_where_functions_are_known(project: Project, tmp_path: Path) -> None:
    unknown = pod("b", "gpu02", {"rail0": ("10.128.0.19", "0000:99:00.1")})
    strange = pod("a", "gpu01", {"rail0": ("10.128.0.3", "0000:99:00.1")})
    found = found_by_check(project, tmp_path, strange, unknown)
    assert found == [("default/a rail0", "is on 0000:99:00.1, which is not a virtual function of gpu01")]
    none = {"kind": "SriovNetworkNodeState", "metadata": {"name": "gpu02"}, "status": {"interfaces": []}}
    assert [place for place, _ in found_by_check(project, tmp_path, unknown, none)] == ["default/b rail0"]


def test_both_interfaces_of_a_pod_on_one_network_are_judged(project: Project, tmp_path: Path) -> None:
    twice = pod("a", "gpu01", {"rail0": ("10.128.0.3", "0000:18:00.2")}, wanted="rail0,rail0")
    missing = ("default/a rail0 (2)", "has no interface on the rail, though it asks for default/rail0")
    assert found_by_check(project, tmp_path, twice) == [missing]
    annotations = twice["metadata"]["annotations"]
    (first,) = json.loads(annotations["k8s.v1.cni.cncf.io/network-status"])
    for ips, text in ((["10.128.0.3"], "has 10.128.0.3, as its net1 has"), ([], "has no address")):
        status = [first, {**first, "interface": "net2", "ips": ips}]
        annotations["k8s.v1.cni.cncf.io/network-status"] = json.dumps(status)
        assert found_by_check(project, tmp_path, twice) == [("default/a rail0 (2)", text)]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"startTime": "2026-01-01T00:00:00Z"}, "does not run yet on gpu01"),
        ({}, "does not run yet on gpu01"),
        ({"startTime": 7}, "does not run yet on gpu01"),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
            "does not run yet on gpu01: ContainerCreating",
        ),
        ({"startTime": "now"}, None),
    ],
)
def test_a_pod_that_is_pending_for_long_is_skipped_with_the_reason(
    project: Project, tmp_path: Path, status: Object, text: str | None
) -> None:
    if status.get("startTime") == "now":
        status = {"startTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    waiting = {**pod("a", "gpu01", {}, wanted="rail0"), "status": {"phase": "Pending", **status}}
    assert found_by_check(project, tmp_path, waiting) == ([("default/a", text)] if text else [])
    assert found_by_check(project, tmp_path, {**waiting, "spec": {}}) == []


ROUTES = [
    {"dst": "default", "gateway": "169.254.1.1", "dev": "eth0", "flags": []},
    {"dst": "10.128.0.0/28", "dev": "net1", "protocol": "kernel", "scope": "link", "prefsrc": "10.128.0.3"},
]


def kubectl(folder: Path, script: str) -> str:
    """Write a kubectl that records its arguments and runs a script; return the PATH with it."""
    folder.mkdir()
    file = folder / "kubectl"
    file.write_text(f'#!/bin/sh\necho "$@" >> {folder}/words\n{script}\n')
    file.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def routes_found(project: Project, tmp_path: Path, script: str) -> list[tuple[str, str, str]]:
    """The findings about routes of a pod whose `ip` is this script."""
    with api_server([*rendered(project), STATES, pod("a", "gpu01", {"rail0": ("10.128.0.3", "0000:18:00.2")})]) as api:
        config = api.kubeconfig(tmp_path)
        words = ("check", "cluster.routes", "--fabric", project.folder, "--cluster", config, "--pod-routes")
        done = run(*words, "--format", "json", PATH=kubectl(tmp_path / "bin", script))
    assert done.stderr == ""
    asked = (tmp_path / "bin" / "words").read_text().splitlines()
    whole = (
        f"--kubeconfig={config} --request-timeout=30s --namespace=default exec a -- ip -json -4 route show table all"
    )
    assert asked == [whole]
    (result,) = json.loads(done.stdout)["results"]
    return [(one["verdict"], one["place"], one["text"]) for one in result["findings"]]


def route(prefix: str, gateway: str, interface: str = "net1") -> Object:
    return {"dst": prefix, "gateway": gateway, "dev": interface, "table": "100", "flags": []}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ((), "has no route to {}, not by 10.128.0.1 on net1"),
        (("10.128.0.9", "net1"), "reaches {} by 10.128.0.9 on net1, not by 10.128.0.1 on net1"),
        (("10.128.0.1", "eth0"), "reaches {} by 10.128.0.1 on eth0, not by 10.128.0.1 on net1"),
        (("10.128.0.1", "net1"), ""),
    ],
)
def test_routes_of_pods_lead_to_the_gateway_of_their_node(
    project: Project, tmp_path: Path, more: tuple[str, ...], text: str
) -> None:
    (cluster,) = project.fabric.clusters
    assert isinstance(cluster, KubernetesCluster)
    prefixes = cluster.rails[0].routes
    shown = [*ROUTES, *(route(prefix, *more) for prefix in prefixes if more)]
    found = routes_found(project, tmp_path, f"echo '{json.dumps(shown)}'")
    assert found == [("fail", "default/a rail0", text.format(prefix)) for prefix in prefixes if text]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ('echo "error: exec: ip: executable file not found" >&2; exit 1', "error: exec: ip: executable file not found"),
        ("echo Usage: ip", "ip route did not print JSON"),
    ],
)
def test_unread_routes_are_skipped(project: Project, tmp_path: Path, script: str, why: str) -> None:
    found = routes_found(project, tmp_path, script)
    assert found == [("skipped", "default/a", f"its routes were not read: {why}")]


def test_routes_of_pods_are_read_only_on_request(project: Project, tmp_path: Path) -> None:
    file = saved(tmp_path / "live.json", [*rendered(project), pod("a", "gpu01", {"rail0": ("10.128.0.3", "")})])
    done = run("check", "cluster.routes", "--fabric", project.folder, "--cluster", file)
    assert "routes in pods were not read: give --pod-routes" in done.stdout
    assert_refused(run("check", "--fabric", project.folder, "--pod-routes"), "--pod-routes asks the pods of --cluster")


def test_a_missing_cluster_is_reported_only_if_the_fabric_has_one(project: Project, tmp_path: Path) -> None:
    plain = opened(tmp_path, intents.values())
    for fabric, wanted in ((project.fabric, 3), (plain.fabric, 0)):
        found = run_checks(CheckContext(fabric, Snapshot("small", 1.0, {})), catalog.select(shipped(), ["cluster"]))
        assert [one.text for one in found.findings] == ["no cluster was read: give --cluster"] * wanted


def test_drift_is_a_finding(project: Project, tmp_path: Path) -> None:
    objects = [one for one in rendered(project) if (one["kind"], one["metadata"]["name"]) != ("SriovNetwork", "rail1")]
    for one in objects:
        if (one["kind"], one["metadata"]["name"]) == ("SriovNetworkNodePolicy", "rail0"):
            one["spec"]["numVfs"] = 2
    file = saved(tmp_path / "live.json", objects)
    done = run("check", "cluster.objects", "--fabric", project.folder, "--cluster", file, "--format", "json")
    assert done.returncode == 1
    (result,) = json.loads(done.stdout)["results"]
    assert sorted((one["place"], one["text"]) for one in result["findings"]) == [
        ("SriovNetwork nvidia-network-operator/rail1", "does not exist"),
        ("SriovNetworkNodePolicy nvidia-network-operator/rail0", "differs: spec.numVfs: 2 → 8"),
    ]


SCALARS = st.none() | st.booleans() | st.integers(-2, 99) | st.text(max_size=5)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "kind", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(phases=[Phase.generate])  # shrinking a whole cluster takes minutes
@given(st.data())
def test_an_answer_of_any_form_gives_a_result_or_one_line(project: Project, data: st.DataObject) -> None:
    networks = {"rail0": ("10.128.0.3", "0000:18:00.2")}
    objects: list[Any] = [*lived_in(rendered(project)), copy.deepcopy(STATES), pod("a", "gpu01", networks)]
    document: Any = {"kind": "List", "items": objects}
    paths = [path for path in leaves(document) if len(path) > 1]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths))
        path = path[: data.draw(st.integers(1, len(path)))]
        holder = document
        for key in path[:-1]:
            try:
                holder = holder[key]
            except (TypeError, LookupError):
                break
        if isinstance(holder, dict | list) and path:
            with contextlib.suppress(TypeError, LookupError):
                holder[path[-1]] = data.draw(JSON)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "live.json"
        file.write_text(json.dumps(document))
        try:
            facts = cluster_facts(project, str(file))
        except CheckError:
            return
        assert facts.kind == "kubernetes"
        snapshot = Snapshot("small", 1.0, {}, cluster=facts)
        assert serial.load(serial.dump(snapshot), "file").cluster == facts
        assert (
            run_checks(CheckContext(project.fabric, snapshot), catalog.select(shipped(), ["cluster"])).count(
                Verdict.ERROR
            )
            == 0
        )

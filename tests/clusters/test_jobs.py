"""Acceptance jobs on a cluster: valid for their CRDs, and with the names of its networks, resources and queues."""

import copy
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit.design import Fabric
from netkit.errors import UsageError
from netkit.intent.model import KubernetesIntent
from netkit.project.project import Project
from netkit.project.rendering import cluster_files
from netkit.render import Engine
from netkit.render.job import acceptance_job, render_job
from netkit.render.render import render_clusters
from tests import intents
from tests.clusters import manifests
from tests.clusters.manifests import Manifest
from tests.clusters.test_kubernetes import CRDS, MODES, at
from tests.command import run

SCHEMA = Path(__file__).with_name("job_schema.yaml")
ENGINE = Engine()
UNITS = {"units": [{"unit": "1-2", "hosts": 4}]}
NAMES: dict[str, Any] = {
    "namespace": "train",
    "resource_prefix": "example.com",
    "resource": "nic{rail}",
    "network": "fabric-{rail}",
    "gpu_resource": "example.com/gpu",
    "label_prefix": "where.example.com",
    "queue": "big",
    "image": "registry.example.com/nccl:7",
}
KINDS = ("mpijob", "jobset", "trainjob", "gke")
VARIANTS: dict[str, dict[str, Any] | None] = {
    "none": None,
    **{mode: {"mode": mode} for mode in MODES},
    "names": NAMES,
    "volcano": {"scheduler": "volcano"},
}


@cache
def fabric(name: str) -> Fabric:
    settings = VARIANTS[name]
    return intents.fabric(intents.values(UNITS) if settings is None else manifests.values(UNITS, **settings))


def jobs(kind: str, built: Fabric, hosts: int = 8) -> list[Manifest]:
    return manifests.documents(render_job(kind, acceptance_job(kind, built, built.hosts[:hosts]), ENGINE))


def job(kind: str, built: Fabric, hosts: int = 8) -> Manifest:
    """The object with the pods of a job."""
    return jobs(kind, built, hosts)[0]


def placed(manifest: Manifest) -> Manifest:
    """A manifest in a namespace, as kubectl sends one that has none."""
    return {**manifest, "metadata": {"namespace": "default", **manifest["metadata"]}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VARIANTS)
def test_every_job_is_valid_for_its_schema(kind: str, name: str) -> None:
    found = [one for hosts in (2, 8) for one in jobs(kind, fabric(name), hosts)]
    assert [complaint for one in found for complaint in manifests.complaints(placed(one), SCHEMA)] == []


@pytest.mark.skipif(not CRDS, reason="NETKIT_CRDS names no folder")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VARIANTS)
def test_every_job_is_valid_for_the_crd_of_its_operator(kind: str, name: str) -> None:
    known = manifests.crds(Path(CRDS or ""))
    found = jobs(kind, fabric(name), 2)
    assert [complaint for one in found for complaint in manifests.real_complaints(known, placed(one))] == []


def test_every_kind_of_the_schema_is_emitted_and_no_other() -> None:
    found = {manifests.title(one) for kind in KINDS for one in jobs(kind, fabric("names"))}
    assert found == set(manifests.schema(SCHEMA))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["names", "volcano"])
def test_a_missing_or_an_unknown_field_is_detected(kind: str, name: str) -> None:
    for manifest in map(placed, jobs(kind, fabric(name), 2)):
        whole = manifests.schema(SCHEMA)[manifests.title(manifest)]
        for path in manifests.required({key: part for key, part in whole.items() if key != "scope"}, manifest):
            mutant = copy.deepcopy(manifest)
            del at(mutant, path[:-1])[path[-1]]
            assert manifests.complaints(mutant, SCHEMA), path
        for path in manifests.objects(manifest):
            if path[-1:] != ("limits",):  # keys of the user's own
                mutant = copy.deepcopy(manifest)
                at(mutant, path)["surprise"] = "x"
                assert manifests.complaints(mutant, SCHEMA), path


def worker(manifest: Manifest) -> dict[str, Any]:
    """The pod template of the workers."""
    spec: dict[str, Any] = manifest["spec"]
    if manifest["kind"] == "MPIJob":
        return dict(spec["mpiReplicaSpecs"]["Worker"]["template"])
    spec = spec if manifest["kind"] == "JobSet" else spec["template"]["spec"]
    return dict(spec["replicatedJobs"][0]["template"]["spec"]["template"])


@pytest.mark.parametrize("kind", ["mpijob", "jobset", "trainjob"])
@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "none"])
def test_a_job_names_networks_and_resources_of_the_cluster(kind: str, name: str) -> None:
    built = fabric(name)
    manifest, (cluster,) = job(kind, built), built.clusters
    (rendered,) = render_clusters(built, (cluster,), ENGINE)
    made = manifests.objects_of(dict(rendered.files))
    annotations, spec = worker(manifest)["metadata"]["annotations"], worker(manifest)["spec"]
    networks = annotations["k8s.v1.cni.cncf.io/networks"].split(",")
    if name == "spectrum-x":
        (pools,) = (one for one in made if one["kind"] == "SpectrumXRailPoolConfig")
        assert networks == [rail["name"] for rail in pools["spec"]["railTopology"]]
        assert manifest["metadata"]["namespace"] == pools["spec"]["networkNamespace"]
    else:
        found = [one for one in made if one["kind"].endswith(("Network", "NetworkAttachmentDefinition"))]
        assert networks == [one["metadata"]["name"] for one in found]
        namespaces = {one["spec"].get("networkNamespace") or one["metadata"]["namespace"] for one in found}
        assert namespaces == {manifest["metadata"]["namespace"]}
    settings = cluster.settings
    assert isinstance(settings, KubernetesIntent)
    (container,) = spec["containers"]
    rails = {f"{settings.resource_prefix}/{rail}": 1 for rail in (settings.resource.format(rail=n) for n in (0, 1))}
    assert container["resources"]["limits"] == {settings.gpu_resource: 2, **rails}
    labels = next(one["metadata"]["labels"] for one in made if one["kind"] == "Node")
    assert spec["nodeSelector"].items() <= labels.items()


@pytest.mark.parametrize("kind", ["mpijob", "jobset", "trainjob"])
def test_a_job_requests_its_kueue_queue_and_one_unit_if_its_hosts_fit(kind: str) -> None:
    topology = "kueue.x-k8s.io/podset-{}-topology"
    whole, part = job(kind, fabric("names")), job(kind, fabric("names"), 4)
    labels = {"kueue.x-k8s.io/queue-name": "big"}
    assert [one["metadata"].get("labels") for one in jobs(kind, fabric("names"))][-1] == labels
    for one, how in ((whole, "preferred"), (part, "required")):
        found = {key for key in worker(one)["metadata"]["annotations"] if key.startswith("kueue")}
        assert found == {topology.format(how)}
        assert worker(one)["metadata"]["annotations"][topology.format(how)] == "where.example.com/unit"
    assert "affinity" not in worker(whole)["spec"]
    required = worker(part)["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"][0]["matchExpressions"]
    assert term["values"] == ["gpu01", "gpu02", "gpu03", "gpu04"]


def test_volcano_has_its_own_queue_names() -> None:
    manifest = job("mpijob", fabric("volcano"))
    assert manifest["spec"]["runPolicy"]["schedulingPolicy"] == {"queue": "gpu"}
    template = worker(manifest)
    assert template["spec"]["schedulerName"] == "volcano"
    assert template["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "gpu"
    assert "labels" not in manifest["metadata"]


def test_gke_has_its_networks_and_no_setting_of_this_fabric() -> None:
    template = worker(job("gke", fabric("names")))
    assert template["metadata"]["annotations"] == {
        "networking.gke.io/default-interface": "eth0",
        "networking.gke.io/interfaces": (
            '[{"interfaceName": "eth0", "network": "default"}, {"interfaceName": "eth2", "network": "rdma-0"}, '
            '{"interfaceName": "eth3", "network": "rdma-1"}]'
        ),
        "kueue.x-k8s.io/podset-preferred-topology": "cloud.google.com/gce-topology-block",
    }
    assert "NCCL_IB" not in str(job("gke", fabric("names")))


@pytest.mark.parametrize(
    ("settings", "changed"),
    [(f"{key}={value}", {key: value}) for key, value in NAMES.items()] + [("scheduler", {"scheduler": "volcano"})],
)
def test_every_kubernetes_setting_used_by_jobs_changes_them(settings: str, changed: dict[str, Any]) -> None:
    plain, other = (intents.fabric(manifests.values(UNITS, **one)) for one in ({}, changed))
    assert job("jobset", plain) != job("jobset", other), settings


SLURM: dict[str, Any] = {"partition": "big", "container": "apptainer", "domain": "example.com"}


@pytest.mark.parametrize("key", SLURM)
def test_every_slurm_setting_used_by_jobs_changes_them(key: str) -> None:
    plain, other = (slurm(**given) for given in ({}, {key: SLURM[key]}))
    assert plain != other


def slurm(**settings: Any) -> str:
    built = intents.fabric(intents.values({**UNITS, "clusters": {"slurm": {"cpus": 64, **settings}}}))
    return render_job("slurm", acceptance_job("slurm", built, built.hosts), ENGINE)


@pytest.mark.parametrize(
    ("container", "image", "wanted"),
    [
        ("none", "nccl-tests:latest", "    env "),
        ("apptainer", "nccl-tests:latest", "    apptainer exec --nv docker://nccl-tests:latest env "),
        ("apptainer", "/images/nccl.sif", "    apptainer exec --nv /images/nccl.sif env "),
        ("pyxis", "nccl-tests:latest", " --container-image=nccl-tests:latest --container-name="),
        ("pyxis", "nvcr.io/nvidia/nccl:7", " --container-image='nvcr.io#nvidia/nccl:7' --container-name="),
        ("pyxis", "nvidia/nccl:7", " --container-image=nvidia/nccl:7 --container-name="),
        ("pyxis", "/images/nccl.sqsh", " --container-image=/images/nccl.sqsh --container-name="),
    ],
)
def test_a_container_starts_the_same_script(container: str, image: str, wanted: str) -> None:
    assert wanted in slurm(container=container, image=image)


def test_a_batch_script_names_its_nodes_in_one_short_line() -> None:
    (line,) = (one for one in slurm().splitlines() if one.startswith("#SBATCH --nodelist"))
    assert line == "#SBATCH --nodelist=gpu[01-08]"
    (line,) = (one for one in slurm(domain="example.com").splitlines() if one.startswith("#SBATCH --nodelist"))
    assert line == "#SBATCH --nodelist=" + ",".join(f"gpu{number:02}.example.com" for number in range(1, 9))


def test_hosts_that_are_not_nodes_are_refused() -> None:
    built = intents.fabric(manifests.values(UNITS, unit="1"))
    assert acceptance_job("mpijob", built, built.hosts).hosts == ("gpu01", "gpu02", "gpu03", "gpu04")
    with pytest.raises(UsageError) as caught:
        acceptance_job("mpijob", built, built.hosts[4:])
    assert str(caught.value.problems[0]) == (
        "0 of these hosts are nodes of clusters.kubernetes, and a test needs two or more; "
        "choose others with --limit, or change clusters in the intent"
    )


def test_the_number_of_steps_is_logarithmic_in_the_hosts() -> None:
    wide = {"ceilings": {"units": 32, "hosts_per_unit": 16}, "units": [{"unit": "1-32", "hosts": 16}]}
    built = intents.fabric(intents.values(wide))
    whole = acceptance_job("slurm", built, built.hosts)
    assert len(whole.hosts) == 512
    assert whole.minutes == (3 * 5 + 1 + 9 + 2 * 4) * 5
    script = render_job("slurm", whole, ENGINE)
    assert len(script) < 64 * 1024
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_ecmp_gets_several_queue_pairs_and_adaptive_routing_one() -> None:
    wanted = {False: "4", True: "1"}
    for is_adaptive, count in wanted.items():
        built = intents.fabric(intents.values({"adaptive_routing": is_adaptive}))
        found = {one.key: one.value for one in acceptance_job("slurm", built, built.hosts).settings}
        assert found["NCCL_IB_QPS_PER_CONNECTION"] == count
        assert all(one.why for one in acceptance_job("slurm", built, built.hosts).settings)


def test_a_train_job_references_its_runtime_and_has_all_workers() -> None:
    runtime, run = jobs("trainjob", fabric("names"))
    assert run["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert run["spec"]["runtimeRef"]["kind"] == runtime["kind"]
    assert run["spec"]["trainer"]["numNodes"] == 8


LONG = "-".join(["Fabric-of-the-third-hall"] * 3)[:63]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("AI1", "acceptance-ai1"),
        ("a" * 29, f"acceptance-{'a' * 29}"),
        (LONG, "acceptance-fabric-of-the-third-ha-e4b3e0"),
        ("x" * 21 + "-" + "y" * 41, f"acceptance-{'x' * 21}-1aa46c"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_names_of_objects_are_dns_labels_for_any_fabric_name(kind: str, name: str, wanted: str) -> None:
    built = intents.fabric(manifests.values({**UNITS, "name": name}))
    text = render_job(kind, acceptance_job(kind, built, built.hosts), ENGINE)
    found = manifests.documents(text)
    assert {one["metadata"]["name"] for one in found} == {wanted}
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", f"{wanted}-worker-0-511-abcde")
    assert set(re.findall(r"acceptance-(?!ssh)[A-Za-z0-9-]+", text)) <= {wanted, f"{wanted}-launcher-0"}
    assert [one["spec"]["runtimeRef"]["name"] for one in found if "runtimeRef" in one["spec"]] == (
        [wanted] if kind == "trainjob" else []
    )


def test_long_names_with_a_common_prefix_stay_different() -> None:
    names = {
        acceptance_job("jobset", built, built.hosts).name
        for end in "ab"
        for built in [intents.fabric(manifests.values({**UNITS, "name": "x" * 62 + end}))]
    }
    assert len(names) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VARIANTS)
def test_all_pods_tolerate_the_taint_of_nodes_with_gpus_and_no_other(kind: str, name: str) -> None:
    found = list(pod_specs(job(kind, fabric(name))))
    assert len(found) == 2
    wanted = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert [one.get("tolerations") for one in found] == [wanted] * 2


def pod_specs(given: Any) -> Iterator[dict[str, Any]]:
    if isinstance(given, dict):
        if "containers" in given:
            yield given
        for value in given.values():
            yield from pod_specs(value)
    elif isinstance(given, list):
        for value in given:
            yield from pod_specs(value)


def test_vertex_has_one_primary_and_a_worker_for_each_other_host() -> None:
    (found,) = jobs("vertex", fabric("names"), 5)
    assert set(found) == {"workerPoolSpecs", "scheduling"}
    pools = found["workerPoolSpecs"]
    assert [pool["replicaCount"] for pool in pools] == [1, 4]
    assert {frozenset(pool) for pool in pools} == {frozenset({"machineSpec", "replicaCount", "containerSpec"})}
    assert "NCCL_IB" not in str(found)
    assert found["scheduling"] == {"timeout": "4800s", "disableRetries": True}


def in_folder(built: Fabric) -> dict[str, str]:
    """The rendered jobs of a cluster."""
    (whole,), (plain,) = (render_clusters(built, built.clusters, ENGINE, jobs=jobs) for jobs in (True, False))
    assert plain.files.items() <= whole.files.items()
    return {name: text for name, text in whole.files.items() if name not in {*plain.files, "jobs/nccl-topo.xml"}}


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "none"])
def test_rendered_jobs_are_those_that_acceptance_emits_for_all_nodes(name: str) -> None:
    built = fabric(name)
    assert in_folder(built) == {
        f"jobs/{kind}.yaml": render_job(kind, acceptance_job(kind, built, built.hosts), ENGINE)
        for kind in ("mpijob", "jobset", "trainjob")
    }


@pytest.mark.parametrize("unit", [None, "2"])
def test_the_rendered_job_of_slurm_is_that_for_all_nodes(unit: str | None) -> None:
    built = intents.fabric(intents.values({**UNITS, "clusters": {"slurm": {"cpus": 64, "unit": unit}}}))
    text = render_job("slurm", acceptance_job("slurm", built, built.hosts), ENGINE)
    assert in_folder(built) == {"jobs/acceptance.sh": text}
    assert ("gpu01" in text) is (unit is None)


@pytest.mark.parametrize("kind", ["kubernetes", "slurm"])
def test_a_cluster_of_one_node_has_no_job(kind: str) -> None:
    values = intents.values({**manifests.ROOM, "units": [{"unit": 1, "hosts": 1}], "clusters": {kind: {}}})
    assert in_folder(intents.fabric(values)) == {}


def test_jobs_are_in_the_folder_and_the_manifest_and_use_templates_of_the_user(tmp_path: Path) -> None:
    own = tmp_path / "templates" / "job"
    own.mkdir(parents=True)
    (own / "jobset.yaml.j2").write_text("# {{ job.fabric }}\n")
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(manifests.values(UNITS)))
    out = tmp_path / "out"
    done = run("render", "--fabric", tmp_path, "--out", out, "--limit", "kubernetes")
    assert (done.returncode, done.stderr) == (0, "")
    found = {str(file.relative_to(out)) for file in out.rglob("*") if file.is_file() and file.name != "manifest.json"}
    listed = json.loads((out / "manifest.json").read_text())["devices"]["kubernetes"]["files"]
    assert {f"kubernetes/{name}" for name in listed} == found
    jobs = {"jobs/jobset.yaml", "jobs/mpijob.yaml", "jobs/trainjob.yaml", "jobs/nccl-topo.xml"}
    assert {name for name in listed if "/" in name} == jobs
    assert (out / "kubernetes/jobs/jobset.yaml").read_text() == "# small\n"
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(intents.values(UNITS)))
    assert run("render", "--fabric", tmp_path, "--out", out).returncode == 0
    assert not (out / "kubernetes").exists()


def test_jobs_are_not_required_in_a_running_cluster(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text(yaml.safe_dump(manifests.values(UNITS)))
    project = Project.open(tmp_path)
    kinds = {one["kind"] for one in manifests.objects_of(cluster_files(project)["kubernetes"])}
    assert not kinds & {"MPIJob", "JobSet", "TrainJob", "TrainingRuntime"}

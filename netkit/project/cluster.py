"""Compare a running cluster with what the intent renders for it, by the programs of the cluster."""

import shlex
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from netkit.design.clusters import Cluster, ClusterOwner, KubernetesCluster, SlurmCluster
from netkit.errors import CheckError, Problem, UsageError
from netkit.facts.cluster import ClusterFacts, ObjectDrift, Pod
from netkit.observe.kubernetes import (
    OF_PODS,
    ClusterReading,
    group_of,
    pod_routes,
    pods,
    read_cluster,
    reads,
    virtual_functions,
)
from netkit.plan.cluster_diff import (
    ClusterDiff,
    ObjectChange,
    ValueChange,
    compare_running,
    qualified,
    rendered_objects,
    title,
)
from netkit.plan.slurm_running import SlurmDifference, differences, parse_nodes, parse_topology
from netkit.private import without_secrets
from netkit.project.project import Project
from netkit.project.rendering import cluster_files

TIMEOUT_S = 60.0


def run_program(command: Sequence[str]) -> tuple[str, str]:
    """Run a program without netkit's secrets; return what it printed, and why it failed, empty if it did not."""
    try:
        done = subprocess.run(  # noqa: S603 (the words are netkit's own; no shell reads them)
            command, env=without_secrets(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        return "", f"there is no {command[0]} on this machine"
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{shlex.join(command[:3])} … did not run: {type(error).__name__}"
    if done.returncode == 0:
        return done.stdout, ""
    lines = (done.stderr or done.stdout).strip().splitlines()
    return done.stdout, lines[-1] if lines else f"{command[0]} ended with {done.returncode}"


Kind = TypeVar("Kind", KubernetesCluster, SlurmCluster)
SLURM = "slurm"
"""As a source: scontrol on this machine."""
OF_TOPOLOGY = ("SwitchName=", "BlockName=", "AggregatedBlock=", "No topology")
OF_SLURM = ("NodeName=", *OF_TOPOLOGY)
ALONE = 2
"""What Slurm has once: the partition, and the kind of its topology."""
ASKED_AT_ONCE = 8
ASKED = (("scontrol", "--oneliner", "show", "nodes"), ("scontrol", "show", "topology"))


@dataclass(frozen=True, slots=True)
class ComparedCluster:
    """A running cluster compared with its design."""

    cluster: Cluster
    diff: ClusterDiff | None
    """What applying the rendered files would change; None: nothing."""
    compared: int
    """How many objects were compared: those that are rendered, and those that the fabric has left in the cluster."""
    reading: ClusterReading = field(default_factory=ClusterReading)


def compared(project: Project, source: str, more: Sequence[str] = ()) -> ComparedCluster:
    """Compare a cluster, read from a kubeconfig, a saved file, or for `slurm` with scontrol; also read `more` kinds."""
    if source == SLURM and not Path(source).is_file():
        return _of_slurm(_cluster(project, SlurmCluster), _asked())
    file = Path(source)
    text = _beginning(file)
    if text.startswith(OF_SLURM):
        return _of_slurm(_cluster(project, SlurmCluster), file.read_text(encoding="utf-8", errors="replace"))
    cluster = _cluster(project, KubernetesCluster)
    files = cluster_files(project)[cluster.kind]
    rendered = rendered_objects(files)
    kinds = Counter((key.group or "", key.kind) for key in rendered)
    own = [kind for group, kind in kinds if reads(group, kind)]
    owner = ClusterOwner(project.fabric.name, cluster.settings.label_prefix)
    reading = read_cluster(file, [*own, *more], owner.labels)
    # The user's own files may have any kind; a saved file may hold those too.
    saved = {(group_of(one), one.get("kind")) for one in reading.objects}
    others = [(kind, group) for group, kind in kinds if not reads(group, kind) and (group, kind) not in saved]
    unread = {
        **reading.unread,
        **{qualified(*one): "the API server is not queried for it; save it with kubectl get -o json" for one in others},
    }
    nodes = tuple(node.name for node in cluster.nodes)
    diff = compare_running(reading.objects, files, nodes, unread=unread, owner=owner)
    titles = {title(key) for key in rendered}
    count = sum(
        count for (group, kind), count in kinds.items() if kind not in unread and qualified(kind, group) not in unread
    ) + sum(one.name not in titles for one in (diff.objects if diff else ()))
    return ComparedCluster(cluster, diff, count, replace(reading, unread=unread))


def cluster_facts(project: Project, source: str, *, has_routes: bool = False) -> ClusterFacts:
    """What checks judge about a cluster; with `has_routes`, ask running pods for their routes."""
    found = compared(project, source, OF_PODS)
    drift = tuple(map(_drift, found.diff.objects if found.diff else ()))
    if not isinstance(found.cluster, KubernetesCluster):
        return ClusterFacts(found.cluster.kind, drift, found.compared)
    networks = [f"{found.cluster.settings.namespace}/{rail.network}" for rail in found.cluster.rails]
    objects = found.reading.objects
    seen = tuple(pods(objects, networks))
    if has_routes:
        with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            seen = tuple(pool.map(partial(_with_routes, source), seen))
    unread = {**found.reading.unread, **found.reading.unsearched}
    return ClusterFacts(found.cluster.kind, drift, found.compared, seen, virtual_functions(objects), unread)


def _with_routes(kubeconfig: str, pod: Pod) -> Pod:
    """Add the routes of a pod, as its own `ip` shows them."""
    if pod.phase != "Running":
        return pod
    namespace, _, name = pod.name.partition("/")
    kubectl = ("kubectl", f"--kubeconfig={kubeconfig}", "--request-timeout=30s", f"--namespace={namespace}")
    text, failure = run_program((*kubectl, "exec", name, "--", "ip", "-json", "-4", "route", "show", "table", "all"))
    if failure:
        return replace(pod, routes_failure=failure)
    try:
        return replace(pod, routes=pod_routes(text))
    except CheckError as error:
        return replace(pod, routes_failure=error.problems[0].message)


def _drift(change: ObjectChange) -> ObjectDrift:
    values = tuple(f"{one.path}: {one.before or 'none'} → {one.after or 'none'}" for one in change.values)
    return ObjectDrift(change.name, change.action == "added", values, is_left=change.action == "removed")


def _cluster(project: Project, kind: type[Kind]) -> Kind:
    found = next((one for one in project.fabric.clusters if isinstance(one, kind)), None)
    if found is None:
        what = f"{project.fabric.name} has no cluster of kind {kind.kind}"
        raise UsageError(Problem(what, "describe it under clusters in fabric.yaml"))
    return found


def _beginning(file: Path) -> str:
    """The beginning of a file; empty if it cannot be read, which its reader reports."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(4096).lstrip()
    except OSError:
        return ""


def _asked() -> str:
    """What scontrol prints about nodes and topology."""
    printed = []
    for command in ASKED:
        text, failure = run_program(command)
        if failure:
            remedy = "run this where scontrol reaches slurmctld, or name a file with its output"
            raise CheckError(Problem(f"{' '.join(command)}: {failure}", remedy))
        printed.append(text)
    return "\n".join(printed)


def _of_slurm(cluster: SlurmCluster, text: str) -> ComparedCluster:
    lines = text.splitlines()
    topology = "\n".join(line for line in lines if line.startswith(OF_TOPOLOGY))
    nodes = "\n".join(line for line in lines if not line.startswith(OF_TOPOLOGY))
    changes = tuple(_changes(differences(cluster, parse_nodes(nodes), parse_topology(topology))))
    advice = ("take the rendered files over, then scontrol reconfigure",)
    diff = ClusterDiff(cluster.kind, changes, advice=advice) if changes else None
    designed = len(cluster.nodes) + len(cluster.units if cluster.settings.topology == "block" else cluster.switches)
    left = sum(one.action == "removed" for one in changes)
    return ComparedCluster(cluster, diff, designed + left + ALONE)


def _changes(found: Iterable[SlurmDifference]) -> Iterator[ObjectChange]:
    """Yield the differences, those of one node or switch together."""
    objects: dict[str, list[SlurmDifference]] = {}
    for one in found:
        objects.setdefault(f"{one.kind} {one.name}".strip(), []).append(one)
    for name, own in objects.items():
        first = own[0]
        if first.key in {"NodeName", "PartitionName", "SwitchName"}:
            yield ObjectChange(name, "removed" if first.running else "added")
        else:
            yield ObjectChange(name, "changed", tuple(ValueChange(one.key, one.running, one.intended) for one in own))

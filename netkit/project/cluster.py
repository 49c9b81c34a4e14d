"""Compare a running Kubernetes cluster with what the intent renders for it."""

from collections.abc import Mapping
from pathlib import Path

from netkit.design.clusters import KubernetesCluster
from netkit.errors import Problem, UsageError
from netkit.facts.cluster import ClusterFacts, ObjectDrift
from netkit.observe.kubernetes import PATHS, ClusterReading, pods, read_cluster, virtual_functions
from netkit.plan.cluster_diff import ClusterDiff, compare_running, rendered_kinds
from netkit.platforms.config import Files
from netkit.project.project import Project
from netkit.project.rendering import cluster_files


def cluster_diff(project: Project, source: Path) -> tuple[ClusterDiff | None, Mapping[str, str]]:
    """Return what applying the rendered files would change, and the kinds that could not be read."""
    cluster, files = _rendered(project)
    reading = _read(files, source)
    return _compared(cluster, files, reading), reading.unread


def cluster_facts(project: Project, source: Path) -> ClusterFacts:
    """Return what checks judge about a cluster."""
    cluster, files = _rendered(project)
    reading = _read(files, source)
    diff = _compared(cluster, files, reading)
    drift = tuple(
        ObjectDrift(
            one.name,
            one.action == "added",
            tuple(f"{value.path}: {value.before or 'none'} → {value.after or 'none'}" for value in one.values),
        )
        for one in (diff.objects if diff else ())
    )
    networks = [f"{cluster.settings.namespace}/{rail.network}" for rail in cluster.rails]
    return ClusterFacts(
        cluster.kind,
        drift,
        sum(count for kind, count in rendered_kinds(files).items() if kind not in reading.unread),
        tuple(pods(reading.objects, networks)),
        virtual_functions(reading.objects),
        reading.unread,
    )


def _rendered(project: Project) -> tuple[KubernetesCluster, Files]:
    found = next((one for one in project.fabric.clusters if isinstance(one, KubernetesCluster)), None)
    if found is None:
        what = f"{project.fabric.name} has no Kubernetes cluster"
        raise UsageError(Problem(what, "describe it under clusters in fabric.yaml"))
    return found, cluster_files(project)[found.kind]


def _read(files: Files, source: Path) -> ClusterReading:
    return read_cluster(source, [kind for kind in rendered_kinds(files) if kind in PATHS])


def _compared(cluster: KubernetesCluster, files: Files, reading: ClusterReading) -> ClusterDiff | None:
    nodes = tuple(node.name for node in cluster.nodes)
    return compare_running(reading.objects, files, nodes, unread=reading.unread)

"""Values for the manifests of a Kubernetes cluster: NIC policies, address pools, networks, nodes and queues."""

from collections.abc import Iterator

from netkit.design.clusters import KubernetesCluster, host_index
from netkit.design.fabric import Fabric
from netkit.render.artifact import Artifact


def artifacts(fabric: Fabric, cluster: KubernetesCluster) -> Iterator[Artifact]:
    """Yield the manifests of a cluster."""
    context = {"fabric": fabric, "cluster": cluster, "settings": cluster.settings, "rails": cluster.rails}
    yield Artifact(
        "pools.yaml", "kubernetes/pools.yaml.j2", {**context, "host_index": host_index(cluster.rails[0].links[0])}
    )

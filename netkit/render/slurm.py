"""Values for the files of a Slurm cluster: nodes, topology and GPUs."""

from collections.abc import Iterator

from netkit.design.clusters import SlurmCluster
from netkit.design.fabric import Fabric
from netkit.render.artifact import Artifact


def artifacts(fabric: Fabric, cluster: SlurmCluster) -> Iterator[Artifact]:
    """Yield the files of a cluster."""
    yield Artifact(
        "nodes.conf", "slurm/nodes.conf.j2", {"fabric": fabric, "nodes": cluster.nodes, "settings": cluster.settings}
    )

"""Jobs for acceptance tests, one description for every launcher.

Collectives over few and many hosts, each rail alone, halves of the hosts on each rail and pairs across units, so that
results name a slow NIC.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from shlex import quote

from netkit.design import Fabric, Host, Nic
from netkit.design.clusters import Cluster, ClusterNode, KubernetesCluster, SlurmCluster
from netkit.errors import Problem, UsageError
from netkit.platforms.linux.view_nic import Setting, nccl_settings, nccl_tuning, nearest_gpu
from netkit.render.engine import Engine
from netkit.render.kubernetes import POD_INTERFACE, pod_devices, pod_nccl_settings
from netkit.render.nccl_topology import nccl_topology
from netkit.render.output import Artifact
from netkit.render.slurm import fold

TEMPLATES = {
    "slurm": "job/slurm.sh.j2",
    "mpijob": "job/mpijob.yaml.j2",
    "jobset": "job/jobset.yaml.j2",
    "trainjob": "job/trainjob.yaml.j2",
    "gke": "job/jobset.yaml.j2",
    "vertex": "job/vertex.yaml.j2",
}
CLUSTERS = {
    "slurm": SlurmCluster,
    "mpijob": KubernetesCluster,
    "jobset": KubernetesCluster,
    "trainjob": KubernetesCluster,
}
"""The cluster in the intent that a kind of job runs on."""
FEWEST = 2
"""Hosts of a test of the network."""
COUNTS = (2, 8, 16, 32)
TESTS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf")
FOLDER = "/opt/nccl-tests/build"
IMAGE = "nccl-tests:latest"
ARGUMENTS = "-b 1G -e 8G -f 8 -g 1 -c 1 -n 20 -w 5 -a 3"
"""With -a 3 the slowest rank counts; the average over the rails would hide one that is slow."""
STEP_MINUTES, START_MINUTES = 5, 10
AT_ONCE = 64
"""Concurrent runs on different NICs."""
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
NAME_LENGTH, DIGEST_LENGTH = 29, 6
"""Of a fabric in names of objects: Kubernetes allows 63 characters, and pods add up to 20 (-worker-0-511-abcde)."""
GOOGLE = ("gke", "vertex")
"""Kinds that run on a fabric of Google, which the design does not have."""
GKE_BLOCK = "cloud.google.com/gce-topology-block"


@dataclass(frozen=True, slots=True)
class JobPods:
    """What the pods of workers need."""

    namespace: str = ""
    kueue_queue: str = ""
    volcano_queue: str = ""
    selector: str = ""
    """Label of the nodes of this fabric."""
    only_nodes: tuple[str, ...] = ()
    """Nodes, where they are not all of the cluster."""
    annotations: tuple[tuple[str, str], ...] = ()
    resources: tuple[tuple[str, int], ...] = ()
    is_designed: bool = True
    """Whether the intent has the cluster, and so the names of its networks and resources."""
    is_google: bool = False


@dataclass(frozen=True, slots=True)
class AcceptanceJob:
    """Values for the template of a job."""

    fabric: str
    hosts: tuple[str, ...]
    nodes: tuple[ClusterNode, ...]
    """The hosts and their names in the cluster; empty where the job only knows them when it runs."""
    gpus: int
    counts: tuple[int, ...]
    rail_devices: tuple[str, ...]
    rail_gpus: tuple[int, ...]
    pod_devices: tuple[str, ...]
    """RDMA devices of the rails in pods; empty where they are known in the pod only."""
    settings: tuple[Setting, ...]
    image: str
    pods: JobPods
    replicas: tuple[int, ...] = ()
    """Vertex AI: how many of the primary, and of workers."""
    partition: str = ""
    container_options: str = ""
    container_command: str = ""
    tests: tuple[str, ...] = TESTS
    folder: str = FOLDER
    arguments: str = ARGUMENTS
    step_minutes: int = STEP_MINUTES
    at_once: int = AT_ONCE
    start_s: int = START_MINUTES * 60

    @property
    def name(self) -> str:
        """Name of the job's objects in Kubernetes."""
        fabric = self.fabric.lower()
        if len(fabric) > NAME_LENGTH:
            digest = sha256(self.fabric.encode()).hexdigest()[:DIGEST_LENGTH]
            fabric = f"{fabric[: NAME_LENGTH - DIGEST_LENGTH - 1].rstrip('-')}-{digest}"
        return f"acceptance-{fabric}"

    @property
    def node_list(self) -> str:
        return fold(node.name for node in self.nodes)

    @property
    def minutes(self) -> int:
        """Time limit of all steps."""
        hosts, half = len(self.hosts), len(self.hosts) // 2
        halves = (hosts - 1).bit_length() * _batches(2 * len(self.rail_devices))
        pairs = min(2, half) * _batches(half) + 2 * (hosts % 2)
        return (len(self.tests) * len(self.counts) + 1 + halves + pairs) * self.step_minutes

    @property
    def seconds(self) -> int:
        return self.minutes * 60 + self.start_s


def _batches(runs: int) -> int:
    return -(-runs // AT_ONCE)


def render_job(kind: str, job: AcceptanceJob, engine: Engine) -> str:
    return engine.render(TEMPLATES[kind], {"job": job}, "")


def job_artifacts(fabric: Fabric, cluster: Cluster) -> Iterator[Artifact]:
    """Yield jobs for all nodes of a cluster, in a folder that `kubectl apply -f` does not descend into.

    NCCL's topology file is there too, where the host model has what it needs.
    """
    topology = nccl_topology([node.host for node in cluster.nodes])
    if topology is not None:
        yield Artifact("jobs/nccl-topo.xml", "job/nccl-topo.xml.j2", {"topology": topology})
    hosts = [node.host for node in cluster.nodes if node.host.nics]
    if len(hosts) < FEWEST:
        return
    for kind, of in CLUSTERS.items():
        if isinstance(cluster, of):
            file = "acceptance.sh" if kind == "slurm" else f"{kind}.yaml"
            yield Artifact(f"jobs/{file}", TEMPLATES[kind], {"job": acceptance_job(kind, fabric, hosts)})


def acceptance_job(kind: str, fabric: Fabric, hosts: Sequence[Host], image: str = "") -> AcceptanceJob:
    """Build a job for those of the hosts that are nodes of its cluster, or for all if the intent has no cluster."""
    cluster = next((one for one in fabric.clusters if isinstance(one, CLUSTERS.get(kind, ()))), None)
    nodes = _nodes(hosts, cluster)
    names, first = tuple(node.host.name for node in nodes), nodes[0].host
    gpus = min(len(node.host.nics) for node in nodes)
    shared = frozenset.intersection(*(frozenset(nic.rail for nic in node.host.nics) for node in nodes))
    nics = [nic for nic in first.nics if nic.rail in shared]
    image = image or (cluster.settings.image if cluster else IMAGE)
    options, command = _container(cluster, image)
    return AcceptanceJob(
        fabric=fabric.name,
        hosts=names,
        nodes=() if kind in GOOGLE else nodes,
        gpus=gpus,
        counts=tuple(sorted({count for count in (*COUNTS, len(names)) if count <= len(names)})),
        rail_devices=_rail_devices(kind, nics),
        rail_gpus=tuple(range(len(nics))) if kind in GOOGLE else tuple(nearest_gpu(first, nic.rail) for nic in nics),
        pod_devices=_pod_devices(kind, cluster, tuple(nic.rdma for nic in nics)),
        settings=tuple(_settings(kind, fabric, cluster, first)),
        image=image,
        pods=_google_pods(fabric, gpus) if kind in GOOGLE else _pods(fabric, cluster, nodes, gpus),
        replicas=(1, len(names) - 1) if kind == "vertex" else (),
        partition=cluster.settings.partition if isinstance(cluster, SlurmCluster) else "",
        container_options=options,
        container_command=command,
    )


def _rail_devices(kind: str, nics: Sequence[Nic]) -> tuple[str, ...]:
    """Name the NIC of each rail as results have it: on Google by its network, since GPU N is next to rdma-N there."""
    return tuple(f"rdma-{number}" for number in range(len(nics))) if kind in GOOGLE else tuple(nic.rdma for nic in nics)


def _nodes(hosts: Sequence[Host], cluster: Cluster | None) -> tuple[ClusterNode, ...]:
    if cluster is None:
        return tuple(ClusterNode(host.name, host) for host in hosts)
    wanted = {host.name for host in hosts}
    nodes = tuple(ClusterNode(node.name, node.host) for node in cluster.nodes if node.host.name in wanted)
    if len(nodes) < FEWEST:
        message = f"{len(nodes)} of these hosts are nodes of clusters.{cluster.kind}, and a test needs two or more"
        raise UsageError(Problem(message, "choose others with --limit, or change clusters in the intent"))
    return nodes


def _container(cluster: Cluster | None, image: str) -> tuple[str, str]:
    """What srun gets to run in a container: options, and a command before the program."""
    if not isinstance(cluster, SlurmCluster):
        return "", ""
    is_file = image.startswith("/") or image.endswith((".sif", ".sqsh"))
    if cluster.settings.container == "apptainer":
        return "", f"apptainer exec --nv {quote(image if is_file or '://' in image else f'docker://{image}')} "
    if cluster.settings.container == "pyxis":
        registry, slash, rest = image.partition("/")
        is_registry = slash and not is_file and ({".", ":"} & set(registry) or registry == "localhost")
        name = '--container-name="acceptance-$SLURM_JOB_ID"'  # steps after the first import no image
        return f" --container-image={quote(f'{registry}#{rest}' if is_registry else image)} {name}", ""
    return "", ""


def _pods(fabric: Fabric, cluster: Cluster | None, nodes: Sequence[ClusterNode], gpus: int) -> JobPods:
    if not isinstance(cluster, KubernetesCluster):
        rails = [f"rail{rail.number}" for rail in fabric.rails]
        resources = (("nvidia.com/gpu", gpus), *((f"nvidia.com/{rail}", 1) for rail in rails))
        return JobPods(annotations=(_networks(rails),), resources=resources, is_designed=False)
    settings, chosen = cluster.settings, tuple(node.name for node in nodes)
    is_kueue = settings.scheduler == "kueue"
    return JobPods(
        namespace=settings.namespace,
        kueue_queue=settings.queue if is_kueue else "",
        volcano_queue="" if is_kueue else settings.queue,
        selector=f"{settings.label_prefix}/fabric",
        only_nodes=() if len(chosen) == len(cluster.nodes) else chosen,
        annotations=(
            _networks([rail.network for rail in cluster.rails]),
            _topology(settings.label_prefix, nodes) if is_kueue else (VOLCANO_QUEUE, settings.queue),
        ),
        resources=(
            (settings.gpu_resource, gpus),
            *((f"{settings.resource_prefix}/{rail.resource}", 1) for rail in cluster.rails),
        ),
    )


def _networks(names: Sequence[str]) -> tuple[str, str]:
    return "k8s.v1.cni.cncf.io/networks", ",".join(names)


def _topology(prefix: str, nodes: Sequence[ClusterNode]) -> tuple[str, str]:
    """Ask Kueue for one unit, which hosts of several units can only prefer."""
    units = {(node.host.pod, node.host.unit) for node in nodes}
    return f"kueue.x-k8s.io/podset-{'preferred' if len(units) > 1 else 'required'}-topology", f"{prefix}/unit"


def _google_pods(fabric: Fabric, gpus: int) -> JobPods:
    """Build pods for GKE, whose networks are rdma-0 and so on; the first interfaces are its own."""
    ours = [{"interfaceName": f"eth{rail.number + 2}", "network": f"rdma-{rail.number}"} for rail in fabric.rails]
    networks = json.dumps([{"interfaceName": "eth0", "network": "default"}, *ours])
    cluster = next((one for one in fabric.clusters if isinstance(one, KubernetesCluster)), None)
    queue = cluster.settings.queue if cluster and cluster.settings.scheduler == "kueue" else ""
    return JobPods(
        namespace=cluster.settings.namespace if cluster else "",
        kueue_queue=queue,
        annotations=(
            ("networking.gke.io/default-interface", "eth0"),
            ("networking.gke.io/interfaces", networks),
            *((("kueue.x-k8s.io/podset-preferred-topology", GKE_BLOCK),) if queue else ()),
        ),
        resources=(("nvidia.com/gpu", gpus),),
        is_google=True,
    )


def _pod_devices(kind: str, cluster: Cluster | None, devices: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(cluster, KubernetesCluster):
        return tuple(filter(None, pod_devices(cluster.rails).split(",")))
    return () if kind in GOOGLE else devices


def _settings(kind: str, fabric: Fabric, cluster: Cluster | None, host: Host) -> Iterator[Setting]:
    """Yield NCCL's environment: the usual settings, and those that make a result reflect the network."""
    interface = host.management_interface if kind == "slurm" else POD_INTERFACE
    if kind not in GOOGLE:  # Google's own script has what its networks need
        if isinstance(cluster, KubernetesCluster):
            yield from pod_nccl_settings(fabric, cluster, host)
        else:
            own = {"NCCL_SOCKET_IFNAME": f"={interface}"}
            yield from (replace(one, value=own.get(one.key, one.value)) for one in nccl_settings(fabric, host))
        priority = fabric.lossless.roce.priority
        yield Setting(
            "NCCL_IB_SL", str(priority), "the same class, for components that use the service level instead of the DSCP"
        )
        yield from nccl_tuning(fabric)
    yield Setting("NCCL_ALGO", "Ring", "trees and NVLink SHARP would report more bandwidth than the network carries")
    yield Setting("UCX_NET_DEVICES", interface, "MPI itself does not use the rails")

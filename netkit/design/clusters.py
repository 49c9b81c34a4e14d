"""The clusters on a fabric: which hosts are their nodes, how pods are attached to rails, and with which addresses."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, ClassVar

from netkit.errors import Path, Problem
from netkit.intent.model import ClusterIntent, Clusters, Intent, KubernetesIntent, RailMode, SlurmIntent
from netkit.intent.scalars import DNS_NAME
from netkit.platforms import version_key

if TYPE_CHECKING:
    from netkit.design.fabric import Fabric, Host, Nic
    from netkit.design.hosts import RoutePlan

KINDS = tuple(Clusters.model_fields)
BLOCKS, UNEQUAL_BLOCKS = (23, 11), (24, 5)
"""The first releases of Slurm with topology/block, and with blocks of different sizes."""
OLDEST_OPERATOR, WITH_ECN = (26, 4), (26, 7)
"""The first releases of the NVIDIA Network Operator with NicNodePolicy, and with fields for ECN and global pause."""
MANAGED_BY, PART_OF = "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of"
NODE_LABEL = re.compile(r"fabric|pod|unit|rack|rail\d+")
"""What `node_labels` makes, without the prefix."""
RESERVED = {"all", "default"}
"""Names of nodes and partitions that Slurm reads as keywords."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A host, and its name in the cluster."""

    name: str
    host: "Host"


@dataclass(frozen=True, slots=True)
class PodLink:
    """The addresses of a node's pods on one rail: a prefix, without its gateway and the host's own address."""

    node: str
    prefix: str
    gateway: str
    host_address: str


@dataclass(frozen=True, slots=True)
class PodRail:
    """How pods are attached to a rail."""

    number: int
    mode: RailMode
    pods: int
    """How many pods may share a NIC."""
    network: str
    resource: str
    prefix: str
    pci: str
    interface: str
    rdma: str
    label: str
    """Label of the nodes that have a NIC on this rail."""
    routes: tuple[str, ...]
    """The prefixes that a pod reaches through the gateway of its node."""
    links: tuple[PodLink, ...]


@dataclass(frozen=True, slots=True)
class KubernetesCluster:
    """A Kubernetes cluster on hosts of the fabric."""

    kind: ClassVar[str] = "kubernetes"
    settings: KubernetesIntent
    addresses_per_nic: int
    """The host's own, then those of its pods."""
    nodes: tuple[ClusterNode, ...]
    rails: tuple[PodRail, ...]


@dataclass(frozen=True, slots=True)
class SlurmNode(ClusterNode):
    """A node of Slurm."""

    unit: str
    """The unit, as the topology and the features call it."""
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopologySwitch:
    """A group of nodes, or of groups, as Slurm's topology counts them: a unit, a pod or the fabric, not one switch."""

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SlurmCluster:
    """A Slurm cluster on hosts of the fabric."""

    kind: ClassVar[str] = "slurm"
    settings: SlurmIntent
    nodes: tuple[SlurmNode, ...]
    switches: tuple[TopologySwitch, ...]
    """Lowest tier first; the last is the root."""
    block_sizes: tuple[int, ...]
    """Nodes that any unit has, and nodes of a pod where Slurm can count them in units."""

    @property
    def units(self) -> tuple[TopologySwitch, ...]:
        return tuple(switch for switch in self.switches if switch.nodes)

    @property
    def release(self) -> tuple[int, ...]:
        return version_key(self.settings.version)


Cluster = KubernetesCluster | SlurmCluster


def members(hosts: "Sequence[Host]", cluster: ClusterIntent) -> "tuple[Host, ...]":
    """The hosts of the units that a cluster names."""
    return tuple(
        host
        for host in hosts
        if (cluster.pod is None or host.pod in cluster.pod) and (cluster.unit is None or host.unit in cluster.unit)
    )


def clusters(fabric: "Fabric", plan: "RoutePlan", intent: Intent) -> Iterator[Cluster]:
    """Yield the clusters of a fabric."""
    wanted = intent.clusters
    if wanted.kubernetes:
        # Kubernetes accepts lower case only; kubelet registers a host's name that way.
        nodes = tuple(replace(node, name=node.name.lower()) for node in _nodes(fabric, wanted.kubernetes))
        rails = tuple(_rails(fabric, plan, wanted.kubernetes, nodes))
        yield KubernetesCluster(wanted.kubernetes, intent.ceilings.addresses_per_nic, nodes, rails)
    if wanted.slurm:
        yield _slurm_cluster(fabric, wanted.slurm)


def _nodes(fabric: "Fabric", cluster: ClusterIntent) -> tuple[ClusterNode, ...]:
    domain = f".{cluster.domain}" if cluster.domain else ""
    return tuple(ClusterNode(f"{host.name}{domain}", host) for host in members(fabric.hosts, cluster))


def _slurm_cluster(fabric: "Fabric", settings: SlurmIntent) -> SlurmCluster:
    nodes = tuple(
        SlurmNode(node.name, node.host, _unit_name(fabric, node.host), tuple(_features(fabric, node.host)))
        for node in _nodes(fabric, settings)
    )
    return SlurmCluster(settings, nodes, tuple(_tree(fabric, nodes)), tuple(_block_sizes(nodes)))


def _unit_name(fabric: "Fabric", host: "Host") -> str:
    return f"pod{host.pod}-unit{host.unit}" if fabric.topology == "three-tier" else f"unit{host.unit}"


def _features(fabric: "Fabric", host: "Host") -> Iterator[str]:
    if fabric.topology == "three-tier":
        yield f"pod{host.pod}"
    yield _unit_name(fabric, host)
    if host.rack:
        yield f"rack-{_word(host.rack)}"


def _word(name: str) -> str:
    """Write the name of a rack as Kubernetes and Slurm accept it in a label."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")


def _tree(fabric: "Fabric", nodes: Sequence[SlurmNode]) -> Iterator[TopologySwitch]:
    """Yield units, pods and the fabric. A host has a NIC on every leaf of its unit, so the unit is the lowest tier.

    A tier above with a single child adds nothing for the scheduler and is left out.
    """
    pods: dict[int, dict[str, list[str]]] = {}
    for node in nodes:
        pods.setdefault(node.host.pod, {}).setdefault(node.unit, []).append(node.name)
    for units in pods.values():
        yield from (TopologySwitch(unit, tuple(names)) for unit, names in units.items())
    top = tuple(unit for units in pods.values() for unit in units)
    if fabric.topology == "three-tier" and len(top) > 1:
        yield from (TopologySwitch(f"pod{pod}", switches=tuple(units)) for pod, units in pods.items())
        top = tuple(f"pod{pod}" for pod in pods)
    if len(top) > 1:
        yield TopologySwitch("fabric", switches=top)


def _block_sizes(nodes: Sequence[ClusterNode]) -> Iterator[int]:
    """Yield the sizes that blocks are planned in. A larger one must be the smallest times a power of two."""
    units = _unit_sizes(nodes)
    smallest = min(size for pod in units for size in pod)
    yield smallest
    *others, last = map(len, units)
    if len(set(others)) == 1 and last <= others[0] and others[0].bit_count() == 1 < others[0]:
        yield smallest * others[0]


def _unit_sizes(nodes: Sequence[ClusterNode]) -> list[list[int]]:
    """Count the nodes of the units of each pod."""
    pods: dict[int, Counter[int]] = {}
    for node in nodes:
        pods.setdefault(node.host.pod, Counter())[node.host.unit] += 1
    return [[*units.values()] for units in pods.values()]


def _rails(
    fabric: "Fabric", plan: "RoutePlan", settings: KubernetesIntent, nodes: Sequence[ClusterNode]
) -> Iterator[PodRail]:
    """Yield the rails that nodes have a NIC on."""
    for rail in fabric.rails:
        nics = [(node.name, nic) for node in nodes for nic in node.host.nics if nic.rail == rail.number]
        if not nics:
            continue
        mode = settings.rail_modes.get(rail.number, settings.mode)
        yield PodRail(
            number=rail.number,
            mode=mode,
            pods=_pods(mode, settings),
            network=settings.network.format(rail=rail.number),
            resource=settings.resource.format(rail=rail.number),
            prefix=rail.prefix,
            pci=nics[0][1].pci,
            interface=nics[0][1].interface,
            rdma=nics[0][1].rdma,
            label=rail_label(settings, rail.number),
            routes=tuple(_routes(plan, settings, rail.number, rail.prefix, [nic for _, nic in nics])),
            links=tuple(PodLink(name, plan.connected(nic), nic.gateway, nic.address) for name, nic in nics),
        )


def _routes(
    plan: "RoutePlan", settings: KubernetesIntent, rail: int, whole: str, nics: "Sequence[Nic]"
) -> Iterator[str]:
    """Yield the routes of pods on a rail. All nodes share them, so none may be the prefix that a node is connected to.

    Where nodes are connected to different ones, the prefix of the whole rail leads to the same addresses.
    """
    connected = {plan.connected(nic) for nic in nics}
    own = plan.prefixes(rail)
    if len(connected) == 1 or connected.isdisjoint(own):
        yield from (prefix for prefix in own if prefix not in connected)
    elif whole not in connected:
        yield whole
    if settings.pod_routes == "by-source":
        yield from plan.other_rails(nics[0])


def problems(fabric: "Fabric", intent: Intent) -> Iterator[Problem]:
    """Yield the reasons to refuse the clusters of an intent."""
    owners: dict[str, str] = {}
    for kind in KINDS:
        cluster: ClusterIntent | None = getattr(intent.clusters, kind)
        if cluster is None:
            continue
        path: Path = ("clusters", kind)
        found = members(fabric.hosts, cluster)
        for key in ("pod", "unit"):
            installed = {getattr(host, key) for host in fabric.hosts}
            missing = sorted(set(getattr(cluster, key) or ()) - installed)
            if missing:
                yield Problem(f"{key} {missing[0]} has no hosts", "name those of units", (*path, key))
        if not found:
            yield Problem("no host is a node", "change pod and unit", (*path, "unit"))
        shared = next((host.name for host in found if host.name in owners), None)
        if shared:
            message = f"{shared} is a node of {owners[shared]} too"
            yield Problem(message, "list different units for each cluster", (*path, "unit"))
        owners |= dict.fromkeys((host.name for host in found), kind)
    if intent.clusters.kubernetes:
        yield from _of_kubernetes(fabric, intent, intent.clusters.kubernetes)
    if intent.clusters.slurm:
        yield from _of_slurm(fabric, intent.clusters.slurm)


def _of_kubernetes(fabric: "Fabric", intent: Intent, cluster: KubernetesIntent) -> Iterator[Problem]:
    path: Path = ("clusters", "kubernetes")
    for key in ("resource", "network"):
        if intent.rails > 1 and "{rail" not in getattr(cluster, key):
            yield Problem("all rails would share this name", "put {rail} into it", (*path, key))
    for rail in sorted(set(cluster.rail_modes) - set(range(intent.rails))):
        yield Problem(f"there is no rail {rail}", f"use 0 to {intent.rails - 1}", (*path, "rail_modes", rail))
    there, wanted = intent.ceilings.addresses_per_nic, 1 + pods_per_nic(cluster)
    if there < wanted:
        yield Problem(
            f"{wanted - 1} pods share a rail NIC and need an address each, and there is room for {there - 1}",
            f"set ceilings.addresses_per_nic: {wanted} (which renumbers), or lower vfs",
            (*path, "vfs" if "vfs" in cluster.model_fields_set else "mode"),
        )
    if version_key(cluster.operator_version) < OLDEST_OPERATOR:
        message = (
            f"the operator of release {cluster.operator_version} does not know all objects and fields that are rendered"
        )
        yield Problem(message, "use 26.4 or later", (*path, "operator_version"))
    if cluster.network != cluster.network.lower():
        yield Problem("names of networks are lower-case in Kubernetes", "write it in lower case", (*path, "network"))
    names = (host.name for host in members(fabric.hosts, cluster))
    odd = next((name for name in names if not re.fullmatch(DNS_NAME, name.lower())), None)
    if odd:
        message = f"{odd} cannot be the name of a node: Kubernetes takes letters, digits, inner hyphens and dots"
        yield Problem(message, "rename the host, or name units without such hosts", (*path, "unit"))
    if cluster.nic_qos == "operator":
        yield from _of_operator(fabric, cluster)
    if "spectrum-x" in {cluster.mode, *cluster.rail_modes.values()}:
        yield from _of_spectrum_x(fabric, cluster)
    yield from _of_one_model(fabric, cluster, path)
    units = {(host.pod, host.unit) for host in members(fabric.hosts, cluster)}
    if fabric.attachment == "vlan" and len(units) > 1:
        yield Problem(
            f"each of {len(units)} units has its own subnet on a rail, but an address pool has one gateway",
            "use attachment: p2p, where each node has its own, or name one unit",
            (*path, "unit"),
        )


def _of_one_model(fabric: "Fabric", cluster: ClusterIntent, path: Path) -> Iterator[Problem]:
    """Refuse nodes of several models: devices, GPUs and NICs are written once for all nodes of a cluster."""
    models = sorted({host.model.name for host in members(fabric.hosts, cluster)})
    if len(models) > 1:
        message = f"its nodes are of {len(models)} models: {', '.join(models)}"
        yield Problem(message, "name units whose hosts are of one model", (*path, "unit"))


def _of_slurm(fabric: "Fabric", cluster: SlurmIntent) -> Iterator[Problem]:
    path: Path = ("clusters", "slurm")
    if cluster.partition.lower() in RESERVED:
        yield Problem(f"{cluster.partition} is a keyword of Slurm", "choose another name", (*path, "partition"))
    nodes = _nodes(fabric, cluster)
    yield from _of_one_model(fabric, cluster, path)
    for node in nodes:
        if node.name.lower() in RESERVED:
            message = f"a node is called {node.name}, which is a keyword of Slurm"
            yield Problem(message, "rename the host, or set domain", (*path, "domain"))
    if not re.fullmatch(r"\d\d\.\d\d([.~-].*)?", cluster.version):
        message = f"{cluster.version!r} is not a version of Slurm: its features are unknown"
        yield Problem(message, "write what slurmctld -V prints, such as 23.11.4", (*path, "version"))
    elif cluster.topology == "block" and version_key(cluster.version) < BLOCKS:
        message = f"Slurm {cluster.version} has no topology/block, which came with 23.11"
        yield Problem(message, "use topology: tree, or a later version", (*path, "topology"))
    elif cluster.topology == "block" and version_key(cluster.version) < UNEQUAL_BLOCKS:
        sizes = sorted({size for pod in _unit_sizes(nodes) for size in pod})
        if len(sizes) > 1:
            message = f"Slurm {cluster.version} needs blocks of one size, and units have {sizes[0]} to {sizes[-1]}"
            yield Problem(message, "use topology: tree, or version 24.05 or later", (*path, "topology"))


def notes(intent: Intent) -> Iterator[Problem]:
    """Yield the warnings about the clusters of a valid intent."""
    slurm = intent.clusters.slurm
    if slurm and slurm.cpus is None:
        yield Problem(
            "Slurm counts one CPU in a node whose CPUs are not given: a job with a task for each GPU never starts",
            "set cpus to what slurmd -C prints on a node",
            ("clusters", "slurm", "cpus"),
            severity="warning",
        )
    kubernetes = intent.clusters.kubernetes
    if kubernetes and kubernetes.nic_qos == "operator":
        lacking = ["the shares of traffic classes"]
        if not sets_ecn(kubernetes):
            lacking.append("ECN and global pause (26.7 has)")
        if intent.adaptive_routing:
            lacking.append("forcing adaptive routing on NICs")
        yield Problem(
            f"the operator has no setting for {', for '.join(lacking)}",
            "set them at each boot by other means, or use nic_qos: netkit",
            ("clusters", "kubernetes", "nic_qos"),
            severity="warning",
        )


def _of_operator(fabric: "Fabric", cluster: KubernetesIntent) -> Iterator[Problem]:
    """Yield what the NIC configuration operator cannot set."""
    path: Path = ("clusters", "kubernetes", "nic_qos")
    remedy = "use nic_qos: netkit"
    nics = {host.model.nic for host in members(fabric.hosts, cluster) if not host.model.nic_pci_id}
    if nics:
        message = f"the PCI device ID of {min(nics)} is not known"
        yield Problem(message, f"add nic_pci_id to the host model, or {remedy}", path)
    for traffic in (fabric.lossless.roce, fabric.lossless.cnp):
        strange = next((dscp for dscp in traffic.dscps if dscp >> 3 != traffic.priority), None)
        if strange is not None:
            first = traffic.priority * 8
            message = (
                f"the operator leaves NICs their own map, in which DSCP {strange} has priority {strange >> 3},"
                f" not {traffic.priority}"
            )
            yield Problem(message, f"use DSCPs from {first} to {first + 7}, or {remedy}", path)


SPECTRUM_X_DSCP = 24
"""The Spectrum-X operator marks all RDMA of pods with it, and has no setting for it."""


def _of_spectrum_x(fabric: "Fabric", cluster: KubernetesIntent) -> Iterator[Problem]:
    """Yield what the Spectrum-X operator cannot set."""
    path: Path = ("clusters", "kubernetes")
    if cluster.resource != cluster.network:
        message = "with mode spectrum-x, network and resource of a rail have one name"
        yield Problem(message, f"write {cluster.network} here too", (*path, "resource"))
    if cluster.pod_routes == "by-source":
        message = "with mode spectrum-x, routes of pods are in the main table"
        yield Problem(message, "use pod_routes: main, or another mode", (*path, "pod_routes"))
    if SPECTRUM_X_DSCP not in fabric.lossless.roce.dscps:
        message = f"mode spectrum-x marks RoCE data with DSCP {SPECTRUM_X_DSCP}, which is not lossless here"
        yield Problem(message, f"add {SPECTRUM_X_DSCP} to lossless.roce.dscp, or use another mode", (*path, "mode"))


def pods_per_nic(cluster: KubernetesIntent) -> int:
    """How many pods at most share a rail NIC."""
    return max(_pods(mode, cluster) for mode in (cluster.mode, *cluster.rail_modes.values()))


def _pods(mode: RailMode, cluster: KubernetesIntent) -> int:
    return 1 if mode == "host-device" else cluster.vfs


def rail_label(cluster: KubernetesIntent, rail: int) -> str:
    return f"{cluster.label_prefix}/rail{rail}"


def node_labels(fabric: "Fabric", cluster: KubernetesIntent, host: "Host") -> dict[str, str]:
    """The labels of a node: its place in the fabric, and the rails it has a NIC on.

    The unit is the lowest tier: a host has a NIC on each of its leaves. Its value is unique in the fabric.
    """
    is_tiered = fabric.topology == "three-tier"
    labels = {"fabric": fabric.name}
    if is_tiered:
        labels["pod"] = str(host.pod)
    labels["unit"] = f"{host.pod}-{host.unit}" if is_tiered else str(host.unit)
    if host.rack:
        labels["rack"] = _word(host.rack)
    return {f"{cluster.label_prefix}/{key}": value for key, value in labels.items()} | {
        rail_label(cluster, nic.rail): "true" for nic in host.nics
    }


@dataclass(frozen=True, slots=True)
class ClusterOwner:
    """How the objects of a fabric, and the labels of its nodes, are recognised in a running cluster."""

    fabric: str
    label_prefix: str

    @property
    def labels(self) -> dict[str, str]:
        """The labels of every object that netkit renders. They stay the same when `label_prefix` changes."""
        return {MANAGED_BY: "netkit", PART_OF: self.fabric}

    @property
    def of_fabric(self) -> str:
        """The label of the nodes of a fabric."""
        return f"{self.label_prefix}/fabric"

    def has_node_label(self, key: str) -> bool:
        """Report whether this is a label of `node_labels`; others with the prefix belong to steering or to the site."""
        prefix, _, name = key.rpartition("/")
        return prefix == self.label_prefix and NODE_LABEL.fullmatch(name) is not None


def sets_ecn(cluster: KubernetesIntent) -> bool:
    """Whether the NIC configuration operator has fields for ECN and global pause."""
    return version_key(cluster.operator_version) >= WITH_ECN


def operated(fabric: "Fabric") -> frozenset[str]:
    """The hosts whose NICs get their QoS and firmware settings from the NIC configuration operator."""
    return frozenset(
        node.host.name
        for cluster in fabric.clusters
        if isinstance(cluster, KubernetesCluster) and cluster.settings.nic_qos == "operator"
        for node in cluster.nodes
    )


def index_in(prefix: str, address: str) -> int:
    """The position of an address within a prefix."""
    return int(IPv4Address(address)) - int(IPv4Network(prefix).network_address)

"""The clusters on a fabric: which hosts are their nodes, how pods are attached to rails, and with which addresses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, ClassVar

from netkit.errors import Path, Problem
from netkit.intent.model import ClusterIntent, Clusters, Intent, KubernetesIntent, RailMode, SlurmIntent

if TYPE_CHECKING:
    from netkit.design.fabric import Fabric, Host, Nic
    from netkit.design.hosts import RoutePlan

KINDS = tuple(Clusters.model_fields)


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
    network: str
    resource: str
    prefix: str
    pci: str
    interface: str
    routes: tuple[str, ...]
    """The prefixes that a pod reaches through the gateway of its node."""
    links: tuple[PodLink, ...]


@dataclass(frozen=True, slots=True)
class KubernetesCluster:
    """A Kubernetes cluster on hosts of the fabric."""

    kind: ClassVar[str] = "kubernetes"
    settings: KubernetesIntent
    nodes: tuple[ClusterNode, ...]
    rails: tuple[PodRail, ...]


@dataclass(frozen=True, slots=True)
class SlurmCluster:
    """A Slurm cluster on hosts of the fabric."""

    kind: ClassVar[str] = "slurm"
    settings: SlurmIntent
    nodes: tuple[ClusterNode, ...]


Cluster = KubernetesCluster | SlurmCluster


def members(hosts: "Sequence[Host]", cluster: ClusterIntent) -> "tuple[Host, ...]":
    """Return the hosts of the units that a cluster names."""
    return tuple(
        host
        for host in hosts
        if (cluster.pod is None or host.pod in cluster.pod) and (cluster.unit is None or host.unit in cluster.unit)
    )


def clusters(fabric: "Fabric", plan: "RoutePlan", wanted: Clusters) -> Iterator[Cluster]:
    """Yield the clusters of a fabric."""
    if wanted.kubernetes:
        nodes = _nodes(fabric, wanted.kubernetes)
        yield KubernetesCluster(wanted.kubernetes, nodes, tuple(_rails(fabric, plan, wanted.kubernetes, nodes)))
    if wanted.slurm:
        yield SlurmCluster(wanted.slurm, _nodes(fabric, wanted.slurm))


def _nodes(fabric: "Fabric", cluster: ClusterIntent) -> tuple[ClusterNode, ...]:
    domain = f".{cluster.domain}" if cluster.domain else ""
    return tuple(ClusterNode(f"{host.name}{domain}", host) for host in members(fabric.hosts, cluster))


def _rails(
    fabric: "Fabric", plan: "RoutePlan", settings: KubernetesIntent, nodes: Sequence[ClusterNode]
) -> Iterator[PodRail]:
    """Yield the rails that nodes have a NIC on."""
    for rail in fabric.rails:
        nics = [(node.name, nic) for node in nodes for nic in node.host.nics if nic.rail == rail.number]
        if not nics:
            continue
        yield PodRail(
            number=rail.number,
            mode=settings.rail_modes.get(rail.number, settings.mode),
            network=settings.network.format(rail=rail.number),
            resource=settings.resource.format(rail=rail.number),
            prefix=rail.prefix,
            pci=nics[0][1].pci,
            interface=nics[0][1].interface,
            routes=tuple(_routes(plan, settings, rail.number, rail.prefix, [nic for _, nic in nics])),
            links=tuple(PodLink(name, plan.connected(nic), nic.gateway, nic.address) for name, nic in nics),
        )


def _routes(
    plan: "RoutePlan", settings: KubernetesIntent, rail: int, whole: str, nics: "Sequence[Nic]"
) -> Iterator[str]:
    """Yield the routes of pods on a rail. All nodes share them, so none may be the prefix that a node is connected to.

    The prefix of the whole rail leads to the same addresses.
    """
    connected = {plan.connected(nic) for nic in nics}
    own = plan.prefixes(rail)
    if connected.isdisjoint(own):
        yield from own
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
            yield Problem(message, "give each cluster units of its own", (*path, "unit"))
        owners |= dict.fromkeys((host.name for host in found), kind)
    if intent.clusters.kubernetes:
        yield from _of_kubernetes(fabric, intent, intent.clusters.kubernetes)


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
    units = {(host.pod, host.unit) for host in members(fabric.hosts, cluster)}
    if fabric.attachment == "vlan" and len(units) > 1:
        yield Problem(
            f"each of {len(units)} units has a subnet of its own on a rail, and a pool of addresses has one gateway",
            "use attachment: p2p, where each node has its own, or name one unit",
            (*path, "unit"),
        )


def pods_per_nic(cluster: KubernetesIntent) -> int:
    """Return how many pods at most share a rail NIC."""
    return cluster.vfs if "sriov" in {cluster.mode, *cluster.rail_modes.values()} else 1


def host_index(link: PodLink) -> int:
    """Return the position of the host's own address within the prefix of a link."""
    return int(IPv4Address(link.host_address)) - int(IPv4Network(link.prefix).network_address)

"""Values for the manifests of a Kubernetes cluster: NIC policies, address pools, networks, nodes and queues."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, get_args

from netkit.design.clusters import (
    ClusterNode,
    ClusterOwner,
    KubernetesCluster,
    PodRail,
    index_in,
    node_labels,
    sets_ecn,
)
from netkit.design.fabric import Fabric, Host
from netkit.intent.model import RailMode
from netkit.platforms.linux.view_nic import PRIORITIES, Setting, nccl_settings, nv_settings
from netkit.render.output import Artifact

SUFFIXES = {
    "": Fraction(1),
    **{
        suffix: Fraction(1000) ** power
        for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
    },
    **{suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
QUANTITY = re.compile(
    r"([+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40}))(?:([eE][+-]?\d{1,2})|([numkMGTPE]?|[KMGTPE]i))", re.ASCII
)


def parse_quantity(value: Any) -> Fraction | None:
    """The amount; None if it is not a quantity."""
    found = QUANTITY.fullmatch(str(value))
    if found is None or isinstance(value, bool):
        return None
    number, exponent, suffix = found.groups()
    return Fraction(f"{number}{exponent or ''}") * SUFFIXES[suffix or ""]


def canonical(number: int, unit: str = "") -> str:
    """Format an amount as the API stores it: with the largest suffix that leaves a whole number."""
    if not number:
        return "0"
    known = [suffix for suffix in SUFFIXES if suffix.endswith("i") == unit.endswith("i")]
    amount = number * SUFFIXES[unit]
    whole = [suffix for suffix in known if (amount / SUFFIXES[suffix]).denominator == 1]
    best = max(whole, key=lambda suffix: SUFFIXES[suffix])
    return f"{amount / SUFFIXES[best]}{best}"


POD_INTERFACE = "eth0"
"""The interface of a pod's own network."""
HOST_DEVICE_PREFIX = "nvidia.com"
"""HostDeviceNetwork has no other prefix of resources; neither has it, nor MacvlanNetwork, meta plugins before 26.7."""
BY_LINK_TYPE = "LINK_TYPE_P1"
"""The firmware setting that a NicConfigurationTemplate has a field for."""
CPUS_PER_NODE, MEMORY_PER_NODE_TI = 1024, 64
"""More than a node has: Kueue admits no pod that requests a resource without a quota, and counts what nodes have."""


@dataclass(frozen=True, slots=True)
class OperatorImages:
    """Where the images of the operator's components are, and their tag."""

    registry: str
    tag: str


@dataclass(frozen=True, slots=True)
class NicConfiguration:
    """Settings that the NIC configuration operator makes on the NICs with the same number of virtual functions."""

    name: str
    vfs: int
    nic_type: str
    pci: tuple[str, ...]
    pfc: str
    tos: int
    ecn_priority: int | None
    """None: the operator has no fields for ECN and global pause, and leaves them on and off, as drivers do."""
    firmware: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node and its labels."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PodSubnet:
    """The subnet that all nodes share on a rail with vlan attachment, and its SVI."""

    rail: PodRail
    subnet: str
    gateway: str


@dataclass(frozen=True, slots=True)
class NetworkAttachment:
    """A network with its own CNI configuration, and the resource that goes with it, if any."""

    name: str
    resource: str | None
    config: str


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of a resource a queue may use."""

    resource: str
    amount: str


@dataclass(frozen=True, slots=True)
class HyperNodeView:
    """A part of the fabric for Volcano: nodes by label, or smaller parts by name."""

    name: str
    tier: int
    labels: Mapping[str, str]
    parts: tuple[str, ...]


def artifacts(fabric: Fabric, cluster: KubernetesCluster) -> Iterator[Artifact]:
    """Yield the manifests of a cluster."""
    settings, nodes = cluster.settings, cluster.nodes
    owner = ClusterOwner(fabric.name, settings.label_prefix)
    labels = [node_labels(fabric, settings, node.host) for node in nodes]
    modes = {mode: tuple(rail for rail in cluster.rails if rail.mode == mode) for mode in get_args(RailMode)}
    context: dict[str, Any] = {
        "fabric": fabric,
        "cluster": cluster,
        "settings": settings,
        "rails": cluster.rails,
        "nodes": tuple(NodeView(node.name, own) for node, own in zip(nodes, labels, strict=True)),
        "selector": owner.of_fabric,
        "owner": owner.labels,
        "host": nodes[0].host,
        "vendor": nodes[0].host.model.nic_pci_id.partition(":")[0],
        "sriov": modes["sriov"],
        "spectrum_x": modes["spectrum-x"],
        "pool_type": "cidrpool" if fabric.attachment == "p2p" else "ippool",
        "meta_plugins": '{"type": "sbr"}' if settings.pod_routes == "by-source" else "",
    }
    yield Artifact("nodes.yaml", "kubernetes/nodes.yaml.j2", context)
    policy = {**context, **_policy(fabric, cluster)}
    yield Artifact("nic-policy.yaml", "kubernetes/nic-policy.yaml.j2", policy)
    if settings.nic_qos == "operator":
        yield Artifact("nic-config.yaml", "kubernetes/nic-config.yaml.j2", policy)
    if modes["sriov"]:
        yield Artifact("sriov.yaml", "kubernetes/sriov.yaml.j2", context)
    yield Artifact("pools.yaml", "kubernetes/pools.yaml.j2", {**context, **_pools(cluster)})
    yield Artifact("networks.yaml", "kubernetes/networks.yaml.j2", {**context, **_networks(cluster, context)})
    yield _queues(fabric, cluster, context)
    yield Artifact(
        "nccl.yaml",
        "kubernetes/nccl.yaml.j2",
        {**context, "nccl": tuple(pod_nccl_settings(fabric, cluster, nodes[0].host))},
    )


def _pools(cluster: KubernetesCluster) -> dict[str, Any]:
    """What pools are made from; a gateway and a host have the same positions within all prefixes of nodes."""
    link = cluster.rails[0].links[0]
    return {
        "gateway_index": index_in(link.prefix, link.gateway),
        "host_index": index_in(link.prefix, link.host_address),
        "subnets": tuple(PodSubnet(rail, rail.links[0].prefix, rail.links[0].gateway) for rail in cluster.rails),
    }


def _networks(cluster: KubernetesCluster, context: Mapping[str, Any]) -> dict[str, Any]:
    """The rails whose networks an operator makes, and the networks that its objects have no fields for."""
    settings = cluster.settings
    is_plain = settings.pod_routes == "main"
    host_devices = [rail for rail in cluster.rails if rail.mode == "host-device"]
    macvlans = [rail for rail in cluster.rails if rail.mode == "macvlan"]
    has_objects = is_plain and settings.resource_prefix == HOST_DEVICE_PREFIX
    attachments = [
        *(() if has_objects else (_host_device(rail, cluster, context) for rail in host_devices)),
        *(() if is_plain else (_macvlan(rail, context) for rail in macvlans)),
    ]
    return {
        "host_devices": tuple(host_devices) if has_objects else (),
        "macvlans": tuple(macvlans) if is_plain else (),
        "attachments": tuple(attachments),
    }


def _host_device(rail: PodRail, cluster: KubernetesCluster, context: Mapping[str, Any]) -> NetworkAttachment:
    resource = f"{cluster.settings.resource_prefix}/{rail.resource}"
    return NetworkAttachment(rail.network, resource, _cni(rail, {"type": "host-device"}, context))


def _macvlan(rail: PodRail, context: Mapping[str, Any]) -> NetworkAttachment:
    plugin = {"type": "macvlan", "master": rail.interface, "mode": "bridge", "mtu": context["host"].mtu_bytes}
    return NetworkAttachment(rail.network, None, _cni(rail, plugin, context))


def _cni(rail: PodRail, plugin: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    """Build the CNI configuration of a network."""
    ipam = {"type": "nv-ipam", "poolName": rail.network, "poolType": context["pool_type"]}
    meta = [json.loads(context["meta_plugins"])] if context["meta_plugins"] else []
    return json.dumps(
        {"cniVersion": "0.3.1", "name": rail.network, "plugins": [{**plugin, "ipam": ipam}, *meta]}, indent=2
    )


def _policy(fabric: Fabric, cluster: KubernetesCluster) -> dict[str, Any]:
    settings = cluster.settings
    is_operated = settings.nic_qos == "operator"
    by_name = any(rail.mode in {"macvlan", "spectrum-x"} for rail in cluster.rails)
    return {
        "images": OperatorImages(settings.image_registry, f"network-operator-v{settings.operator_version}"),
        "device_plugin": _device_plugin(cluster) if any(rail.mode == "host-device" for rail in cluster.rails) else "",
        "shared_plugin": _shared_plugin(cluster) if any(rail.mode == "macvlan" for rail in cluster.rails) else "",
        "configurations": tuple(_configurations(fabric, cluster)) if is_operated else (),
        "rail_pci": tuple(_rail_pci(cluster)) if is_operated and by_name else (),
    }


def _device_plugin(cluster: KubernetesCluster) -> str:
    """Build the configuration of the SR-IOV device plugin, which also hands out whole NICs."""
    resources = [
        {
            "resourcePrefix": cluster.settings.resource_prefix,
            "resourceName": rail.resource,
            "selectors": {"pciAddresses": [rail.pci], "isRdma": True},
        }
        for rail in cluster.rails
        if rail.mode == "host-device"
    ]
    return json.dumps({"resourceList": resources}, indent=2)


def _shared_plugin(cluster: KubernetesCluster) -> str:
    """Build the configuration of the RDMA shared device plugin."""
    resources = [
        {
            "resourcePrefix": cluster.settings.resource_prefix,
            "resourceName": rail.resource,
            "rdmaHcaMax": rail.pods,
            "selectors": {"ifNames": [rail.interface]},
        }
        for rail in cluster.rails
        if rail.mode == "macvlan"
    ]
    return json.dumps({"configList": resources}, indent=2)


def _configurations(fabric: Fabric, cluster: KubernetesCluster) -> Iterator[NicConfiguration]:
    """Yield a template for each number of virtual functions; a NIC may match one template only."""
    lossless = fabric.lossless
    pauses = ",".join(str(int(priority in lossless.lossless_priorities)) for priority in PRIORITIES)
    vfs = {rail.pci: rail.pods if rail.mode in {"sriov", "spectrum-x"} else 0 for rail in cluster.rails}
    for count in sorted(set(vfs.values())):
        yield NicConfiguration(
            name=f"rails-{count}-vfs",
            vfs=count,
            nic_type=cluster.nodes[0].host.model.nic_pci_id.partition(":")[2],
            pci=tuple(pci for pci, own in vfs.items() if own == count),
            pfc=pauses,
            tos=lossless.tos,
            ecn_priority=lossless.roce.priority if sets_ecn(cluster.settings) else None,
            firmware=tuple(one for one in nv_settings(fabric) if one.key != BY_LINK_TYPE),
        )


def _rail_pci(cluster: KubernetesCluster) -> Iterator[str]:
    """Yield the PCI address of each rail by its number; empty for rails without a NIC."""
    known = {rail.number: rail.pci for rail in cluster.rails}
    yield from (known.get(number, "") for number in range(max(known) + 1))


def _queues(fabric: Fabric, cluster: KubernetesCluster, context: Mapping[str, Any]) -> Artifact:
    nodes, settings = cluster.nodes, cluster.settings
    present = Counter(nic.rail for node in nodes for nic in node.host.nics)
    gpus = Quota(settings.gpu_resource, canonical(sum(node.host.model.gpus for node in nodes)))
    rails = (
        Quota(f"{settings.resource_prefix}/{rail.resource}", canonical(present[rail.number] * rail.pods))
        for rail in cluster.rails
    )
    quotas = (gpus, *rails)
    if settings.scheduler == "volcano":
        parts = tuple(_hyper_nodes(fabric, cluster))
        return Artifact("queues.yaml", "kubernetes/volcano.yaml.j2", {**context, "quotas": quotas, "parts": parts})
    cpus, memory = canonical(len(nodes) * CPUS_PER_NODE), canonical(len(nodes) * MEMORY_PER_NODE_TI, "Ti")
    node = (Quota("cpu", cpus), Quota("memory", memory))
    levels = tuple(
        f"{settings.label_prefix}/{key}" for key in (("pod", "unit") if fabric.topology == "three-tier" else ("unit",))
    )
    return Artifact(
        "queues.yaml", "kubernetes/kueue.yaml.j2", {**context, "quotas": (*quotas, *node), "levels": levels}
    )


def _hyper_nodes(fabric: Fabric, cluster: KubernetesCluster) -> Iterator[HyperNodeView]:
    """Yield the parts of the fabric from the smallest: units, pods where there are several tiers, and all of it."""
    settings = cluster.settings
    prefix, queue = settings.label_prefix, settings.queue
    found = {_unit_label(fabric, cluster, node): node.host.pod for node in cluster.nodes}
    for unit in found:
        labels = {f"{prefix}/fabric": fabric.name, f"{prefix}/unit": unit}
        yield HyperNodeView(f"{queue}-unit-{unit}", 1, labels, ())
    names = [f"{queue}-unit-{unit}" for unit in found]
    if fabric.topology == "three-tier":
        pods = sorted(set(found.values()))
        for pod in pods:
            parts = tuple(f"{queue}-unit-{unit}" for unit, own in found.items() if own == pod)
            yield HyperNodeView(f"{queue}-pod-{pod}", 2, {}, parts)
        names = [f"{queue}-pod-{pod}" for pod in pods]
    yield HyperNodeView(queue, 3 if fabric.topology == "three-tier" else 2, {}, tuple(names))


def _unit_label(fabric: Fabric, cluster: KubernetesCluster, node: ClusterNode) -> str:
    return node_labels(fabric, cluster.settings, node.host)[f"{cluster.settings.label_prefix}/unit"]


def pod_nccl_settings(fabric: Fabric, cluster: KubernetesCluster, host: Host) -> Iterator[Setting]:
    """Yield NCCL's environment in pods, where it differs from that of a host."""
    devices = pod_devices(cluster.rails)
    for one in nccl_settings(fabric, host):
        if one.key == "NCCL_IB_HCA":
            if devices:
                yield replace(one, value=f"={devices}")
        elif one.key == "NCCL_SOCKET_IFNAME":
            yield Setting(one.key, f"={POD_INTERFACE}", "bootstrap over the pod's own network, never over a rail")
        elif one.key != "NCCL_CROSS_NIC":
            yield one
    if fabric.cross_rail == "blocked":
        yield Setting("NCCL_CROSS_NIC", "0", "no way leads from rail to rail: rings and trees stay on one")
    elif cluster.settings.pod_routes == "main":
        yield Setting("NCCL_CROSS_NIC", "0", "pods have routes within each rail only: rings and trees stay on one")


def pod_devices(rails: Sequence[PodRail]) -> str:
    """List the RDMA devices in pods; empty where virtual functions get theirs from the kernel."""
    if any(rail.mode == "sriov" for rail in rails):
        return ""
    return ",".join(f"rdma_{rail.network}" if rail.mode == "spectrum-x" else rail.rdma for rail in rails)

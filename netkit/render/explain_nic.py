"""Every number of a rail NIC, with its reason: addresses, traffic classes, firmware, and NCCL on host and in pods."""

from collections.abc import Iterator

from netkit.design import Fabric, Host, Nic
from netkit.design.clusters import KubernetesCluster
from netkit.design.explain import Number
from netkit.design.hosts import RoutePlan
from netkit.errors import Problem, UsageError
from netkit.platforms.linux.view import has_firmware_settings
from netkit.platforms.linux.view_nic import nccl_settings, nccl_tuning, nearest_gpu, nv_settings
from netkit.render.kubernetes import pod_nccl_settings
from netkit.render.nccl_topology import lacking

ECT0 = 2
"""The ECN bits of packets that may be marked."""


def find_nic(host: Host, interface: str) -> Nic:
    """A NIC of a host by its interface."""
    for nic in host.nics:
        if nic.interface == interface:
            return nic
    known = ", ".join(nic.interface for nic in host.nics) or "none"
    raise UsageError(Problem(f"{host.name} has no NIC {interface!r}", f"it has {known}"))


def explain_nic(fabric: Fabric, host: Host, nic: Nic) -> Iterator[Number]:
    """Yield the numbers of a NIC, and of the software that uses it."""
    plan = RoutePlan(fabric)
    yield Number("speed", f"{host.model.speed_gbps} Gb/s", f"{host.model.nic} at {nic.pci}", "")
    yield Number("mtu", f"{host.mtu_bytes} B", "hosts.mtu_bytes in the intent", "")
    yield Number("address", f"{nic.address}/{nic.prefix_length}", f"slot {host.slot} in {plan.connected(nic)}", "")
    gateway = f"the SVI of {nic.leaf}" if fabric.attachment == "vlan" else f"{nic.leaf}:{nic.leaf_port}"
    yield Number("gateway", nic.gateway, gateway, "")
    yield Number("routing table", str(nic.table), f"hosts.table_base + rail {nic.rail}; chosen by source address", "")
    main, own = len(plan.own_rail(nic)), len(plan.own_rail(nic)) + len(plan.other_rails(nic))
    yield Number("routes", f"{main} in main, {own} in its table", f"host_routes: {fabric.host_routes}", "")
    yield from _classes(fabric)
    for setting in nv_settings(fabric, host) if has_firmware_settings(host) else ():
        yield Number(setting.key, setting.value, f"firmware: {setting.why}", "")
    for setting in (*nccl_settings(fabric, host), *nccl_tuning(fabric)):
        yield Number(setting.key, setting.value, setting.why, "")
    gid = "NCCL 2.21 and later finds the RoCE v2 address; its index shifts with addresses and network namespaces"
    yield Number("NCCL_IB_GID_INDEX", "not set", gid, "")
    yield _topology_file(fabric, host, nic)
    for cluster in fabric.clusters:
        if isinstance(cluster, KubernetesCluster) and any(node.host is host for node in cluster.nodes):
            yield from _pods(fabric, cluster, host, nic)


def _topology_file(fabric: Fabric, host: Host, nic: Nic) -> Number:
    why = lacking(host)
    if not why and not any(node.host is host for cluster in fabric.clusters for node in cluster.nodes):
        why = "the host is not a node of a cluster"
    if why:
        reason = f"{why}; NCCL reads PCIe switches from /sys, which bare metal and pods on it show"
        return Number("NCCL_TOPO_FILE", "no file", reason, "")
    number = nearest_gpu(host, nic.rail)
    gpu = f"GPU {number} at {host.model.gpu_map[number].pci}"
    reason = f"only if /sys shows no PCIe switches: {gpu} is next to the NIC"
    return Number("NCCL_TOPO_FILE", "jobs/nccl-topo.xml", reason, "")


def _classes(fabric: Fabric) -> Iterator[Number]:
    lossless = fabric.lossless
    formula = f"DSCP {lossless.tos >> 2} × 4 + ECT(0), {ECT0}: packets that switches may mark"
    yield Number("traffic class", str(lossless.tos), formula, "")
    roce, cnp = lossless.roce, lossless.cnp
    yield Number("PFC", f"priority {roce.priority}", "the class that switches keep lossless", "")
    yield Number("CNPs", f"DSCP {lossless.cnp_dscp}, priority {cnp.priority}", "the strict class of the switches", "")


def _pods(fabric: Fabric, cluster: KubernetesCluster, host: Host, nic: Nic) -> Iterator[Number]:
    """Yield what pods on the node have of the rail, where it is not what the host has."""
    rail = next(one for one in cluster.rails if one.number == nic.rail)
    link = next(one for one in rail.links if one.host_address == nic.address)
    yield Number("pods", f"{rail.pods} of {link.prefix}", f"mode {rail.mode}, network {rail.network}", "")
    yield Number("pod routes", ", ".join(rail.routes) or "none", f"pod_routes: {cluster.settings.pod_routes}", "")
    own = {(one.key, one.value) for one in nccl_settings(fabric, host)}
    for setting in pod_nccl_settings(fabric, cluster, host):
        if (setting.key, setting.value) not in own:
            yield Number(f"{setting.key} in pods", setting.value, setting.why, "")

"""Cluster: what runs on the nodes agrees with the fabric: objects as rendered, and pods on the right rails."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from netkit.design.clusters import KubernetesCluster, PodLink, PodRail
from netkit.facts.cluster import ClusterFacts, Pod, PodNic
from netkit.judge import PASSED, CheckContext, Finding, fabric_check, fail, skip

MOST_SHOWN = 3
LONG_S = 300
"""Pulling an image may keep a pod waiting that long."""
VIRTUAL = {"sriov", "spectrum-x"}
"""Modes in which pods get virtual functions."""
Owners = dict[str, tuple[str, str]]
"""Address → the pod or node that has it, and its interface."""
RESTART = "delete the pod, once the networks are as rendered: netkit check cluster.objects"
DELETE = "netkit plan --cluster prints the command that deletes it"
APPLY = "netkit plan --cluster shows the difference; apply the rendered files"


@fabric_check(layer="qos", follows=[], reads=[])
def objects(context: CheckContext) -> Iterator[Finding]:
    """The objects of the cluster are those that the intent renders to.

    An object is missing, or a value of it was changed: render, and apply the file again; a change that is to stay
    belongs in the intent. An object of this fabric that the intent does not have any more was left in the cluster:
    `netkit plan --cluster` prints the command that deletes it.
    """
    facts = context.snapshot.cluster
    if facts is None:
        yield from _not_read(context)
        return
    for one in facts.drift:
        if one.is_missing:
            yield fail(one.name, "does not exist", APPLY)
        elif one.is_left:
            yield fail(one.name, "exists, but is not part of the intent any more", DELETE)
        else:
            more = f" and {len(one.values) - MOST_SHOWN} more" if len(one.values) > MOST_SHOWN else ""
            yield fail(one.name, f"differs: {', '.join(one.values[:MOST_SHOWN])}{more}", APPLY)
    yield from [PASSED] * (facts.compared - len(facts.drift))
    for kind, why in facts.unread.items():
        yield skip(kind, f"was not read: {why}")


@fabric_check(layer="application", follows=["cluster.objects"], reads=[])
def pods(context: CheckContext) -> Iterator[Finding]:
    """Every pod has an interface on each rail that it asks for, with the right device and an address of its node.

    Without it, RDMA fails only when the first queue pair connects, and the job hangs. Delete the pod once the networks
    and pools are as rendered.
    """
    facts, cluster = context.snapshot.cluster, _kubernetes(context)
    if facts is None or cluster is None:
        yield from _not_read(context) if cluster else ()
        return
    rails = {f"{cluster.settings.namespace}/{rail.network}": rail for rail in cluster.rails}
    names = {node.name: node.host.name for node in cluster.nodes}
    taken: Owners = {link.host_address: (link.node, "") for rail in cluster.rails for link in rail.links}
    for pod in facts.pods:
        if pod.node not in names:
            yield skip(pod.name, f"runs on {pod.node or 'no node'}, which is not in the fabric")
        elif pod.phase == "Running":
            for network in dict.fromkeys(pod.wanted):
                yield from _on_rail(facts, pod, network, rails[network], names[pod.node], taken)
        elif not pod.since_s or context.snapshot.taken_s - pod.since_s >= LONG_S:
            why = f": {pod.waiting}" if pod.waiting else ""
            yield skip(pod.name, f"does not run yet on {pod.node}{why}", device=names[pod.node])


@fabric_check(layer="application", follows=["cluster.pods"], reads=[])
def routes(context: CheckContext) -> Iterator[Finding]:
    """Every pod reaches each rail through its interface there, by the gateway of its node.

    A route that is missing, or leads through another interface, sends RDMA out of the wrong NIC, or nowhere. A pod gets
    its routes from the address pool when it starts: delete the pod once the pools are as rendered.
    """
    facts, cluster = context.snapshot.cluster, _kubernetes(context)
    if facts is None or cluster is None:
        yield from _not_read(context) if cluster else ()
        return
    running = [pod for pod in facts.pods if pod.phase == "Running"]
    if running and not any(pod.routes is not None or pod.routes_failure for pod in running):
        yield skip("", "routes in pods were not read: give --pod-routes")
    rails = {f"{cluster.settings.namespace}/{rail.network}": rail for rail in cluster.rails}
    names = {node.name: node.host.name for node in cluster.nodes}
    for pod in (pod for pod in running if pod.node in names):
        if pod.routes_failure:
            yield skip(pod.name, f"its routes were not read: {pod.routes_failure}", device=names[pod.node])
        for nic in pod.nics if pod.routes is not None else ():
            yield from _routed(pod, nic, rails[nic.network], names[pod.node])


def _routed(pod: Pod, nic: PodNic, rail: PodRail, host: str) -> Iterator[Finding]:
    """Judge the routes of a pod on a rail."""
    link = next((link for link in rail.links if link.node == pod.node), None)
    for prefix in rail.routes if link else ():
        found = [route for route in pod.routes or () if route.prefix == prefix]
        if link and any((one.gateway, one.interface) == (link.gateway, nic.interface) for one in found):
            yield PASSED
            continue
        gateway = link.gateway if link else ""
        others = ", ".join(f"{one.gateway} on {one.interface}" for one in found)
        wrong = f"reaches {prefix} by {others}" if found else f"has no route to {prefix}"
        yield fail(f"{pod.name} {rail.network}", f"{wrong}, not by {gateway} on {nic.interface}", RESTART, device=host)


def _not_read(context: CheckContext) -> Iterator[Finding]:
    """Skip a cluster of the fabric that was not read; a fabric without one has nothing to judge."""
    if context.fabric.clusters:
        yield skip("", "no cluster was read: give --cluster")


def _kubernetes(context: CheckContext) -> KubernetesCluster | None:
    return next((one for one in context.fabric.clusters if isinstance(one, KubernetesCluster)), None)


def _on_rail(facts: ClusterFacts, pod: Pod, network: str, rail: PodRail, host: str, taken: Owners) -> Iterator[Finding]:
    """Judge the interfaces of a pod on a rail, as many as it asks for; `taken` collects the owner of each address."""
    nics = [nic for nic in pod.nics if nic.network == network]
    link = next((link for link in rail.links if link.node == pod.node), None)
    for number in range(pod.wanted.count(network)):
        wrong, remedy = "", RESTART
        if number >= len(nics):
            wrong = f"has no interface on the rail, though it asks for {network}"
        elif link is None:
            wrong, remedy = f"{pod.node} has no NIC on this rail", "change the networks of the pod"
        elif not (wrong := _wrong_device(facts, pod, nics[number], rail)):
            wrong, remedy = (
                _wrong_addresses(nics[number], pod, link, taken),
                "see the pools: netkit check cluster.objects",
            )
        again = f" ({number + 1})" if number else ""
        yield fail(f"{pod.name} {rail.network}{again}", wrong, remedy, device=host) if wrong else PASSED


def _wrong_addresses(nic: PodNic, pod: Pod, link: PodLink, taken: Owners) -> str:
    for address in nic.addresses:
        if wrong := _wrong_address(address, link):
            return wrong
        owner, interface = taken.setdefault(address, (pod.name, nic.interface))
        if (owner, interface) != (pod.name, nic.interface):
            return f"has {address}, as {f'its {interface}' if owner == pod.name else owner} has"
    return "" if nic.addresses else "has no address"


def _wrong_device(facts: ClusterFacts, pod: Pod, nic: PodNic, rail: PodRail) -> str:
    """How the device behind an interface is wrong; empty if it is right, or not reported."""
    functions: Mapping[str, str] | None = facts.virtual.get(pod.node)
    if not nic.pci or (rail.mode in VIRTUAL and functions is None):
        return ""
    behind = (functions or {}).get(nic.pci)
    if behind is None and rail.mode in VIRTUAL:
        return f"is on {nic.pci}, which is not a virtual function of {pod.node}"
    behind = behind or nic.pci
    return "" if behind == rail.pci else f"is on {nic.pci} of the NIC {behind}, not on that of the rail, {rail.pci}"


def _wrong_address(address: str, link: PodLink) -> str:
    try:
        known = IPv4Address(address)
    except ValueError:
        return f"has {address}, which is not an IPv4 address"
    if known not in IPv4Network(link.prefix):
        return f"has {address}, outside {link.prefix} of {link.node}"
    return f"has {address}, the address of the gateway" if address == link.gateway else ""

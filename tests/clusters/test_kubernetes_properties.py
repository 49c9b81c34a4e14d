"""Random fabrics with a Kubernetes cluster: pools, routes and labels agree with the design, to the last address."""

from collections import Counter
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, collapse_addresses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.design.clusters import KubernetesCluster
from netkit.design.fabric import Nic
from netkit.design.hosts import RoutePlan
from netkit.render import Engine
from netkit.render.render import render_clusters
from tests import intents
from tests.clusters import manifests
from tests.clusters.manifests import Manifest
from tests.random_intents import Values
from tests.random_intents import intents as random_intents

ENGINE = Engine()


@st.composite
def with_cluster(draw: st.DrawFn) -> Values:
    """A random intent with a cluster on some of its units, and enough addresses for its pods."""
    values = draw(random_intents())
    vfs = draw(st.integers(1, 20))
    settings: Values = {
        "vfs": vfs,
        "mode": draw(st.sampled_from(["sriov", "host-device", "macvlan", "spectrum-x"])),
        "scheduler": draw(st.sampled_from(["kueue", "volcano"])),
        "nic_qos": draw(st.sampled_from(["netkit", "operator"])),
    }
    if settings["mode"] != "spectrum-x":
        settings["pod_routes"] = draw(st.sampled_from(["main", "by-source"]))
    entries = values["units"]
    chosen = entries[:1] if values["attachment"] == "vlan" else entries[: draw(st.integers(1, len(entries)))]
    if values["attachment"] == "vlan" or draw(st.booleans()):
        settings |= {"pod": sorted({one["pod"] for one in chosen}), "unit": sorted({one["unit"] for one in chosen})}
    values["ceilings"]["addresses_per_nic"] = draw(st.sampled_from([vfs + 1, vfs + 2, 33]))
    return {**values, "clusters": {"kubernetes": settings}}


@given(with_cluster())
def test_pools_routes_and_labels_agree_with_the_design(values: Values) -> None:
    built = intents.fabric(values)
    (cluster,) = built.clusters
    assert isinstance(cluster, KubernetesCluster)
    (rendered,) = render_clusters(built, built.clusters, ENGINE)
    found = manifests.objects_of(rendered.files)
    assert [complaint for one in found for complaint in manifests.complaints(one)] == []
    pools = [one for one in found if one["kind"] in {"CIDRPool", "IPPool"}]
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in found if one["kind"] == "Node"}
    check_labels(built, cluster, labels)
    taken = Counter(addresses_of_switches_and_hosts(built))
    for rail, pool in zip(cluster.rails, pools, strict=True):
        nics = {node.name: nic for node in cluster.nodes for nic in node.host.nics if nic.rail == rail.number}
        assert [name for name, own in labels.items() if rail.label in own] == list(nics)
        given_out = dict(leases(pool, nics))
        assert given_out.keys() == nics.keys()
        for name, addresses in given_out.items():
            check_addresses(built, nics[name], addresses)
            assert len(addresses) >= rail.pods
            taken.update(addresses)
        check_routes(built, cluster, pool, nics)
    assert [address for address, count in taken.items() if count > 1] == []


def check_labels(built: Fabric, cluster: KubernetesCluster, labels: Mapping[str, Mapping[str, str]]) -> None:
    """Nodes have one unit if and only if they share their leaves, and one pod where there are pods."""
    units: dict[str, set[tuple[int, int]]] = {}
    for node in cluster.nodes:
        own = labels[node.name]
        assert own["fabric.netkit/fabric"] == built.name
        assert own.get("fabric.netkit/pod") == (str(node.host.pod) if built.topology == "three-tier" else None)
        units.setdefault(own["fabric.netkit/unit"], set()).add((node.host.pod, node.host.unit))
    assert all(len(places) == 1 for places in units.values())
    assert len(units) == len({(node.host.pod, node.host.unit) for node in cluster.nodes})


def addresses_of_switches_and_hosts(built: Fabric) -> Iterator[IPv4Address]:
    yield from (IPv4Address(nic.address) for host in built.hosts for nic in host.nics)
    yield from (IPv4Address(switch.loopback) for switch in built.switches)
    yield from set(gateways(built).values())


def gateways(built: Fabric) -> dict[tuple[str, str], IPv4Address]:
    """The address of each port towards a host, or of the SVI behind it, by leaf and port."""
    return {
        (switch.name, port.name): IPv4Address((switch.vlan.gateway if switch.vlan else port.address).partition("/")[0])
        for switch in built.tier("leaf")
        for port in switch.host_ports
    }


def leases(pool: Manifest, nics: Mapping[str, Nic]) -> Iterator[tuple[str, set[IPv4Address]]]:
    """Yield each node with the addresses that nv-ipam may give to its pods."""
    spec = pool["spec"]
    if pool["kind"] == "CIDRPool":
        yield from _of_prefixes(spec)
        return
    subnet, size = IPv4Network(spec["subnet"]), spec["perNodeBlockSize"]
    first = subnet.network_address + 1
    # Blocks go to nodes in any order; here in the order of the nodes.
    for index, name in enumerate(nics):
        block = [first + index * size + offset for offset in range(size)]
        assert block[-1] in subnet
        assert block[-1] != subnet.broadcast_address
        yield name, _left(block, 0, spec, IPv4Address(spec["gateway"]))


def _of_prefixes(spec: Mapping[str, Any]) -> Iterator[tuple[str, set[IPv4Address]]]:
    whole = IPv4Network(spec["cidr"])
    for one in spec["staticAllocations"]:
        prefix = IPv4Network(one["prefix"])
        assert prefix.subnet_of(whole)
        assert prefix.prefixlen == spec["perNodeNetworkPrefix"]
        gateway = IPv4Address(one["gateway"])
        assert prefix[spec["gatewayIndex"]] == gateway
        yield one["nodeName"], _left(list(prefix.hosts()), 1, spec, gateway)


def _left(block: list[IPv4Address], start: int, spec: Mapping[str, Any], gateway: IPv4Address) -> set[IPv4Address]:
    """Remove the gateway and the exclusions from a block, whose first address has the index `start`."""
    excluded = {index for one in spec["perNodeExclusions"] for index in range(one["startIndex"], one["endIndex"] + 1)}
    return {one for index, one in enumerate(block, start) if index not in excluded and one != gateway}


def check_addresses(built: Fabric, nic: Nic, addresses: set[IPv4Address]) -> None:
    """The gateway is that of the leaf's port, and the leaf advertises the addresses."""
    leaf = built.switch(nic.leaf)
    assert IPv4Address(nic.gateway) == gateways(built)[nic.leaf, nic.leaf_port]
    announced = [IPv4Network(prefix) for prefix in leaf.aggregates or (leaf.leaf_prefix,)]
    assert all(any(address in prefix for prefix in announced) for address in addresses)
    connected = IPv4Network(RoutePlan(built).connected(nic))
    assert all(address in connected for address in addresses)


def check_routes(built: Fabric, cluster: KubernetesCluster, pool: Manifest, nics: Mapping[str, Nic]) -> None:
    """Pods reach the NICs that their host reaches from this rail, and no others."""
    plan, gateway = RoutePlan(built), pool["spec"].get("gateway")
    routes = [IPv4Network(one["dst"]) for one in pool["spec"].get("routes", [])]
    everyone = [IPv4Address(nic.address) for host in built.hosts for nic in host.nics]
    for nic in nics.values():
        assert gateway in {None, nic.gateway}
        others = plan.other_rails(nic) if cluster.settings.pod_routes == "by-source" else ()
        connected = plan.connected(nic)
        wanted = reach([connected, *plan.own_rail(nic), *others], everyone)
        assert reach([connected, *map(str, routes)], everyone) == wanted
        # A route to the on-link prefix would lead to neighbors through the gateway.
        assert IPv4Network(connected) not in routes


def reach(prefixes: list[str], addresses: list[IPv4Address]) -> set[IPv4Address]:
    merged = list(collapse_addresses(map(IPv4Network, prefixes)))
    return {one for one in addresses if any(one in prefix for prefix in merged)}

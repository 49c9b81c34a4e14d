"""The routing of a design, without its files: for devices that run what is intended, or were not read.

`tests/platforms/test_routing.py` holds it against what each platform reads from the rendered files.
"""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Interface, IPv4Network

from netkit.design.fabric import Fabric, Host, Nic, Switch
from netkit.design.hosts import RoutePlan
from netkit.design.policy import announced, prefix_lists
from netkit.platforms.routing import (
    Aggregate,
    BgpNeighbor,
    Clause,
    HostRail,
    HostRoute,
    HostRoutes,
    PrefixListEntry,
    Router,
    RouterRoute,
)

IN, OUT, CONNECTED, LOOPBACK, VLAN = "IN", "OUT", "CONNECTED", "loopback", "vlan"


def router_of(fabric: Fabric, switch: Switch) -> Router:
    lists: dict[str, tuple[PrefixListEntry, ...]] = {
        found.name: tuple(
            PrefixListEntry(rule.number, True, _network(rule.prefix), rule.length, rule.length) for rule in found.rules
        )
        for found in prefix_lists(fabric, switch)
        if found.version == 4
    }
    outbound = announced(fabric, switch)
    return Router(
        asn=switch.asn,
        router_id=switch.loopback,
        addresses=tuple(_addresses(switch)),
        members=tuple((port.name, VLAN) for port in switch.host_ports) if switch.vlan else (),
        prefix_lists=lists,
        route_maps={
            CONNECTED: (Clause(10, is_permit=True, prefix_lists=("CONNECTED",)),),
            IN: (Clause(10, is_permit=True, prefix_lists=("FABRIC",)),),
            OUT: (Clause(10, is_permit=True, prefix_lists=(outbound,)),),
            **{
                name: (Clause(10, is_permit=True, prefix_lists=(name,)),)
                for port in switch.external
                for name in (port.inbound, port.outbound)
            },
        },
        neighbors=tuple(
            BgpNeighbor(
                port.name,
                port.peer_asn,
                IN,
                OUT,
                allowas_in=int(fabric.routing.allowas_in),
                is_drained=port.peer in switch.drain_neighbors,
            )
            for port in switch.fabric_ports
            if not port.peer_address
        ),
        external=tuple(sorted(_by_address(fabric, switch), key=lambda one: one.interface)),
        redistributed=CONNECTED,
        aggregates=(
            *(Aggregate(_network(prefix), is_summary_only=True) for prefix in switch.aggregates),
            *(Aggregate(_network(prefix), is_summary_only=False) for prefix in switch.summaries),
        ),
        static=tuple(
            RouterRoute(_network(route.prefix), via) for route in switch.static for via in sorted(route.vias) or [""]
        ),
        max_paths=fabric.routing.max_paths,
        is_drained=switch.drain,
    )


def _by_address(fabric: Fabric, switch: Switch) -> Iterator[BgpNeighbor]:
    for outside in switch.external:
        yield BgpNeighbor(outside.peer, outside.peer_asn, outside.inbound, outside.outbound)
    for port in switch.fabric_ports:
        if port.peer_address:
            is_drained = port.peer in switch.drain_neighbors
            allowed = int(fabric.routing.allowas_in)
            yield BgpNeighbor(port.peer_address, port.peer_asn, IN, OUT, allowas_in=allowed, is_drained=is_drained)


def host_of(plan: RoutePlan, host: Host) -> HostRoutes:
    return HostRoutes(tuple(_rail(plan, nic) for nic in host.nics))


def _rail(plan: RoutePlan, nic: Nic) -> HostRail:
    address = _interface(f"{nic.address}/{nic.prefix_length}")
    routes = tuple(
        HostRoute(_network(route.prefix), route.via, route.table, is_unreachable=route.kind == "unreachable")
        for route in plan.routes(nic)
    )
    return HostRail(nic.interface, (address,), routes, ((_network(nic.address), nic.table),))


def _addresses(switch: Switch) -> list[tuple[str, IPv4Interface]]:
    found = [(LOOPBACK, _interface(f"{switch.loopback}/32"))]
    if switch.vlan:
        length = switch.vlan.subnet.partition("/")[2]
        found.append((VLAN, _interface(f"{switch.vlan.gateway.partition('/')[0]}/{length}")))
    found += [(port.name, _interface(port.address)) for port in switch.ports if port.address]
    return [*found, *((port.name, _interface(port.address)) for port in switch.external)]


@lru_cache(maxsize=4096)
def _network(prefix: str) -> IPv4Network:
    return IPv4Network(prefix)


@lru_cache(maxsize=4096)
def _interface(address: str) -> IPv4Interface:
    return IPv4Interface(address)

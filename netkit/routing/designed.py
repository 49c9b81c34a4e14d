"""The routing of a design, without its files: for devices that run what is intended, or were not read.

`tests/platforms/test_routing.py` holds it against what each platform reads from the rendered files.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_interface, ip_network

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
    IpInterface,
    IpNetwork,
    PrefixListEntry,
    Router,
    RouterRoute,
)

IN, OUT, CONNECTED, LOOPBACK, VLAN = "IN", "OUT", "CONNECTED", "loopback", "vlan"


def prefixes_of(fabric: Fabric) -> tuple[IpNetwork, ...]:
    """The prefixes of rails and loopbacks: static routes to others are no concern of the fabric."""
    pools = [fabric.host_pool, fabric.host_pool_v6, fabric.loopback_pool, fabric.loopback_pool_v6]
    pools += (prefix for rail in fabric.rails for prefix in (rail.prefix, rail.prefix_v6))
    return tuple(_network(pool) for pool in dict.fromkeys(pools) if pool)


def router_of(fabric: Fabric, switch: Switch) -> Router:
    found = _router_of_v4(fabric, switch)
    return replace(found, v6=_v6_of(found, fabric, switch)) if switch.loopback_v6 else found


def _v6_of(found: Router, fabric: Fabric, switch: Switch) -> Router:
    """The IPv6 routing: the same sessions by interface, with lists of its own."""
    addresses = [(port.name, port.address_v6) for port in switch.host_ports if port.address_v6]
    if switch.vlan and switch.vlan.gateway_v6:
        addresses.append((VLAN, switch.vlan.gateway_v6))
    return replace(
        found,
        addresses=(
            (LOOPBACK, _interface(f"{switch.loopback_v6}/128")),
            *((name, _interface(one)) for name, one in addresses),
        ),
        prefix_lists=_lists(fabric, switch, 6),
        route_maps={
            name: tuple(replace(one, prefix_lists=tuple(f"{each}-V6" for each in one.prefix_lists)) for one in clauses)
            for name, clauses in found.route_maps.items()
            if name in {CONNECTED, IN, OUT}
        },
        external=(),
        aggregates=tuple(Aggregate(_network(prefix), is_summary_only=True) for prefix in switch.aggregates_v6),
        static=(),
    )


def _lists(fabric: Fabric, switch: Switch, version: int) -> dict[str, tuple[PrefixListEntry, ...]]:
    return {
        found.name: tuple(
            PrefixListEntry(rule.number, True, _network(rule.prefix), rule.length, rule.length) for rule in found.rules
        )
        for found in prefix_lists(fabric, switch)
        if found.version == version
    }


def _router_of_v4(fabric: Fabric, switch: Switch) -> Router:
    outbound = announced(fabric, switch)
    return Router(
        asn=switch.asn,
        router_id=switch.loopback,
        addresses=tuple(_addresses(switch)),
        members=tuple((port.name, VLAN) for port in switch.host_ports) if switch.vlan else (),
        speeds={port.name: port.speed_gbps for port in switch.fabric_ports},
        prefix_lists=_lists(fabric, switch, 4),
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


def host_of(plan: RoutePlan, plan_v6: RoutePlan, host: Host) -> HostRoutes:
    """The routing of a host; the second plan is that of IPv6."""
    rails = [_rail(plan, nic, nic.address, nic.prefix_length) for nic in host.nics]
    own = (nic for nic in host.nics if nic.address_v6)
    rails_v6 = [_rail(plan_v6, nic, nic.address_v6, nic.prefix_length_v6) for nic in own]
    return HostRoutes(tuple(rails), v6=HostRoutes(tuple(rails_v6)) if rails_v6 else None)


def _rail(plan: RoutePlan, nic: Nic, ip: str, length: int) -> HostRail:
    address = _interface(f"{ip}/{length}")
    routes = tuple(
        HostRoute(_network(route.prefix), route.via, route.table, is_unreachable=route.kind == "unreachable")
        for route in plan.routes(nic)
    )
    return HostRail(nic.interface, (address,), routes, ((_network(ip), nic.table),))


def _addresses(switch: Switch) -> list[tuple[str, IpInterface]]:
    found = [(LOOPBACK, _interface(f"{switch.loopback}/32"))]
    if switch.vlan:
        length = switch.vlan.subnet.partition("/")[2]
        found.append((VLAN, _interface(f"{switch.vlan.gateway.partition('/')[0]}/{length}")))
    found += [(port.name, _interface(port.address)) for port in switch.ports if port.address]
    return [*found, *((port.name, _interface(port.address)) for port in switch.external)]


@lru_cache(maxsize=4096)
def _network(prefix: str) -> IpNetwork:
    return ip_network(prefix)


@lru_cache(maxsize=4096)
def _interface(address: str) -> IpInterface:
    return ip_interface(address)

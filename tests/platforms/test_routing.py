"""Routing parsed from rendered configurations equals the design, with lines added by hand."""

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface, ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netkit import design, intent
from netkit.design import Fabric, Host, Switch, policy
from netkit.design.fabric import Nic
from netkit.design.hosts import RoutePlan
from netkit.errors import DesignError
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.platforms.compare import MODELS, ConfigModel
from netkit.platforms.config import Files
from netkit.platforms.routing import (
    Aggregate,
    BgpNeighbor,
    Clause,
    HostRail,
    HostRoute,
    HostRoutes,
    PrefixListEntry,
    RetainedRouting,
    Router,
    RouterRoute,
)
from netkit.render import Engine, render
from tests import intents as small
from tests.lanes import examples
from tests.random_intents import Values, intents

ROOT = Path(__file__).parent.parent.parent
CATALOG, ENGINE = Catalog(), Engine()
SWITCHES = ("eos", "frr", "nvue", "sonic")
MANY = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
# By platform: the names of the loopback and of a VLAN's interface.
NAMES = {
    "eos": ("Loopback0", "Vlan{}"),
    "frr": ("lo", "vlan{}"),
    "nvue": ("lo", "vlan{}"),
    "sonic": ("Loopback0", "Vlan{}"),
}
OWN_AS_TIMES = {"eos": 1, "frr": 3, "nvue": 3, "sonic": 3}
# These only select a source address, for routes that exist anyway.
SONIC_SOURCES = ("RM_SET_SRC", "RM_SET_SRC6")
VERSIONS = {
    "nvue": ("5.9.0", "5.14.0", "5.16.1"),
    "sonic": ("202411", "202511", "unified"),
    "eos": ("4.32.3F", "4.35.1F"),
    "frr": ("8.4.4", "10.2", "10.6.0"),
}


def model_of(device: Switch | Host) -> ConfigModel:
    return MODELS[device.platform if isinstance(device, Switch) else "linux"]


def files_of(fabric: Fabric, *devices: Switch | Host) -> Iterator[tuple[Switch | Host, Files]]:
    wanted = devices or (*fabric.switches, *fabric.hosts)
    for device, found in zip(wanted, render(fabric, wanted, ENGINE), strict=True):
        assert found.device == device.name
        yield device, {name: text for name, text in found.files.items() if model_of(device).reads(name)}


def router_of(platform: str, files: Files) -> Router:
    model = MODELS[platform]
    assert model.router is not None
    return model.router(model.parse(files))


def rules(found: policy.PrefixList) -> tuple[PrefixListEntry, ...]:
    return tuple(
        PrefixListEntry(rule.number, True, ip_network(rule.prefix), rule.length, rule.length) for rule in found.rules
    )


def with_rules(router: Router) -> dict[str, tuple[tuple[Clause, tuple[tuple[PrefixListEntry, ...], ...]], ...]]:
    """Each route map with the rules of the lists it names, so that names of lists do not matter."""
    return {
        name: tuple(
            (replace(one, prefix_lists=()), tuple(router.prefix_lists[each] for each in one.prefix_lists))
            for one in clauses
        )
        for name, clauses in router.route_maps.items()
    }


def expected_maps(fabric: Fabric, switch: Switch, version: int) -> dict[str, Any]:
    """Expected filters: into BGP, and for each kind of neighbor in and out; `-DRAINED` for a drain by route maps."""
    lists = {
        found.name.removesuffix("-V6"): rules(found)
        for found in policy.prefix_lists(fabric, switch)
        if found.version == version
    }
    through = {"in": lists["FABRIC"], "out": lists[policy.announced(fabric, switch)]}
    plain = Clause(10, is_permit=True)
    maps: dict[str, Any] = {"connected": ((plain, (lists["CONNECTED"],)),)}
    maps |= {way: ((plain, (found,)),) for way, found in through.items()}
    maps["in drained"] = ((replace(plain, local_preference=0), (through["in"],)),)
    for outside in switch.external if version == 4 else ():
        maps |= {name: ((plain, (lists[name],)),) for name in (outside.inbound, outside.outbound)}
    maps["out drained"] = ((replace(plain, has_graceful_shutdown=True), (through["out"],)),)
    return maps


def drains_by_route_map(switch: Switch) -> bool:
    return switch.platform == "sonic" or (switch.platform == "frr" and not switch.version.startswith("10.6"))


def check(fabric: Fabric, switch: Switch, files: Files) -> None:
    found = router_of(switch.platform, files)
    has_ipv6 = bool(switch.loopback_v6) and bool(switch.fabric_ports or switch.platform == "nvue")
    assert (found.v6 is not None) == has_ipv6
    check_family(fabric, switch, replace(found, v6=None), 4)
    if found.v6:
        check_family(fabric, switch, found.v6, 6)


def check_family(fabric: Fabric, switch: Switch, found: Router, version: int) -> None:
    is_ipv4 = version == 4
    loopback, svi = NAMES[switch.platform]
    maps = with_rules(found)
    maps = {name: clauses for name, clauses in maps.items() if name not in SONIC_SOURCES}
    has_bgp = bool(switch.fabric_ports) or switch.platform == "nvue"
    wanted = expected_maps(fabric, switch, version)
    by_address = {port.peer_address: port for port in switch.fabric_ports if port.peer_address and is_ipv4}
    outside_of = {port.peer: port for port in switch.external if is_ipv4}
    for neighbor in (*found.neighbors, *(one for one in found.external if one.interface in by_address)):
        port = next(port for port in switch.fabric_ports if port.neighbor == neighbor.interface)
        is_drained = port.peer in switch.drain_neighbors
        drained = " drained" if is_drained and drains_by_route_map(switch) else ""
        assert maps[neighbor.inbound] == wanted[f"in{drained}"]
        assert maps[neighbor.outbound] == wanted[f"out{drained}"]
    for outside in (one for one in found.external if one.interface not in by_address):
        meant = outside_of[outside.interface]
        assert (maps[outside.inbound], maps[outside.outbound]) == (wanted[meant.inbound], wanted[meant.outbound])
    if found.redistributed:
        assert maps[found.redistributed] == wanted["connected"]
    assert all(clauses in wanted.values() for clauses in maps.values() if clauses != gshut())
    policies = {one.interface: (one.inbound, one.outbound) for one in (*found.neighbors, *found.external)}
    sessions = [
        BgpNeighbor(
            port.neighbor,
            port.peer_asn,
            *policies[port.neighbor],
            is_active=True,
            allowas_in=OWN_AS_TIMES[switch.platform] if fabric.routing.allowas_in else 0,
            is_drained=port.peer in switch.drain_neighbors and not drains_by_route_map(switch),
        )
        for port in sorted(switch.fabric_ports, key=lambda port: port.neighbor)
        if is_ipv4 or not port.peer_address
    ]
    texts = [(loopback, f"{switch.loopback}/32" if is_ipv4 else f"{switch.loopback_v6}/128")]
    texts += [(port.name, port.address if is_ipv4 else port.address_v6) for port in switch.ports]
    texts += [(svi.format(vlan.number), vlan.gateway if is_ipv4 else vlan.gateway_v6) for vlan in [switch.vlan] if vlan]
    texts += [(one.name, one.address) for one in switch.external if is_ipv4]
    addresses = [(name, ip_interface(text)) for name, text in texts if text]
    assert found.down.isdisjoint(port.name for port in switch.ports)
    assert found.down.isdisjoint(port.name for port in switch.external)
    if switch.platform in {"eos", "sonic"}:
        speeds = {port.name: port.split.speed_gbps for port in switch.ports}
        assert {name: found.speeds.get(name) for name in speeds} == speeds
    assert replace(found, prefix_lists={}, route_maps={}, down=frozenset(), speeds={}) == Router(
        asn=switch.asn if has_bgp else 0,
        router_id=switch.loopback if has_bgp else "",
        addresses=tuple(sorted(addresses, key=lambda one: (one[0], int(one[1].ip)))),
        members=tuple(sorted((port.name, svi.format(switch.vlan.number)) for port in switch.host_ports if switch.vlan)),
        prefix_lists={},
        route_maps={},
        neighbors=tuple(one for one in sessions if one.interface not in by_address),
        external=tuple(
            sorted(
                [one for one in sessions if one.interface in by_address]
                + [
                    replace(one, remote_asn=outside_of[one.interface].peer_asn, is_active=True)
                    for one in found.external
                    if one.interface in outside_of
                ],
                key=lambda one: one.interface,
            )
        ),
        redistributed=found.redistributed if has_bgp else None,
        aggregates=(
            *(
                Aggregate(ip_network(prefix), True)
                for prefix in (switch.aggregates if is_ipv4 else switch.aggregates_v6)
                if has_bgp
            ),
            *(Aggregate(IPv4Network(prefix), False) for prefix in switch.summaries if is_ipv4),
        ),
        static=tuple(
            RouterRoute(IPv4Network(route.prefix), via)
            for route in switch.static
            for via in route.vias or ("",)
            if is_ipv4
        ),
        max_paths=fabric.routing.max_paths if has_bgp else found.max_paths,
        is_drained=(switch.drain and has_bgp) or (switch.drain and switch.platform == "eos"),
        requires_policy=found.requires_policy if not switch.fabric_ports else switch.platform != "nvue",
        unknown=(),
    )
    assert found.redistributed is not None or not has_bgp


def gshut() -> Any:
    return ((Clause(10, is_permit=True, has_graceful_shutdown=True, local_preference=0), ()),)


def check_host(fabric: Fabric, host: Host, files: Files) -> None:
    plan, plan_v6, read = RoutePlan(fabric), RoutePlan(fabric, 6), MODELS["linux"].host_routes
    assert read is not None
    nics = sorted(host.nics, key=lambda nic: nic.interface)
    rails = [rail(plan, nic, IPv4Interface(f"{nic.address}/{nic.prefix_length}")) for nic in nics]
    rails_v6 = [
        rail(plan_v6, nic, IPv6Interface(f"{nic.address_v6}/{nic.prefix_length_v6}")) for nic in nics if nic.address_v6
    ]
    v6 = HostRoutes(tuple(rails_v6)) if rails_v6 else None
    assert read(MODELS["linux"].parse(files)) == HostRoutes(tuple(rails), v6=v6)


def rail(plan: RoutePlan, nic: Nic, address: IPv4Interface | IPv6Interface) -> HostRail:
    routes = [
        HostRoute(ip_network(route.prefix), route.via, route.table, route.kind == "unreachable")
        for route in plan.routes(nic)
    ]
    return HostRail(
        nic.interface,
        (address,),
        tuple(sorted(routes, key=lambda one: (one.table, int(one.prefix[0]), one.prefix.prefixlen, one.gateway))),
        ((ip_network(address.ip), nic.table),),
        nic.table,
    )


def check_all(fabric: Fabric) -> None:
    for device, files in files_of(fabric):
        if isinstance(device, Switch):
            check(fabric, device, files)
        else:
            check_host(fabric, device, files)


@st.composite
def drained_intents(draw: st.DrawFn) -> Values:
    """Random intents on random releases, with drained switches and sessions, and routes that may pass a leaf."""
    values: Values = draw(intents())
    for tier in values["switches"].values():
        tier["version"] = draw(st.sampled_from(VERSIONS[tier["platform"]]))
        if tier["version"] == "unified":
            tier.update(version="202511", routing_mode="unified")
    values["routing"] |= {"allowas_in": draw(st.booleans()), "max_paths": draw(st.integers(2, 128))}
    values["hosts"]["backend"] = draw(st.sampled_from(["netplan", "networkd"]))
    try:
        plain = design.build(Intent.model_validate(values), CATALOG)
    except DesignError:  # routes that return through their own AS make a valley
        values["routing"]["allowas_in"] = False
        plain = design.build(Intent.model_validate(values), CATALOG)
    overrides: dict[str, Values] = {}
    for switch in plain.switches:
        peers = sorted({port.peer for port in switch.fabric_ports})
        if draw(st.integers(0, 3)) == 0 and peers:
            overrides[switch.name] = {"drain_neighbors": sorted(draw(st.sets(st.sampled_from(peers), min_size=1)))}
        elif draw(st.integers(0, 5)) == 0:
            overrides[switch.name] = {"drain": True}
    return {**values, "overrides": overrides}


@MANY
@given(drained_intents())
def test_what_is_read_is_what_was_designed(values: Values) -> None:
    check_all(design.build(Intent.model_validate(values), CATALOG))


@pytest.mark.parametrize("drains", [{}, {"leaf01": ["spine01"], "spine01": ["leaf01"]}], ids=["in use", "drained"])
@pytest.mark.parametrize("platform", SWITCHES)
def test_sessions_by_address_are_read_as_designed(platform: str, drains: dict[str, list[str]]) -> None:
    overrides = {name: {"drain_neighbors": peers} for name, peers in drains.items()}
    changes = {"pools": {"links": "10.8.0.0/14"}, "overrides": overrides}
    fabric = small.fabric(small.on_platform(platform, VERSIONS[platform][1], changes))
    assert all(port.peer_address for switch in fabric.switches for port in switch.fabric_ports)
    check_all(fabric)


@pytest.mark.parametrize("name", ["mixed", "reference", "internet-edge", "brownfield"])
def test_parsed_routing_of_the_shipped_fabrics_equals_the_design(name: str) -> None:
    check_all(design.build(intent.load(ROOT / "inventory" / name).intent, CATALOG))


@pytest.mark.parametrize("platform", sorted(MODELS))
def test_every_platform_parses_routing(platform: str) -> None:
    model = MODELS[platform]
    is_host = platform == "linux"
    assert [model.router is None, model.host_routes is None, model.keeping is None] == [is_host, not is_host, is_host]


def test_a_device_without_configuration_routes_nothing() -> None:
    for platform in SWITCHES:
        found = router_of(platform, {})
        assert (found.asn, found.neighbors, found.addresses, found.unknown) == (0, (), (), ())
    host = MODELS["linux"]
    assert host.host_routes is not None
    assert host.host_routes({}) == HostRoutes()


BY_HAND = """
network:
  ethernets:
    rail0:
      addresses: [10.1.0.1/31]
      routes:
        - {to: 10.0.0.0/8, via: 10.1.0.2, metric: 200}
        - {to: 10.0.0.0/8, via: 10.1.0.0, metric: 100, from: 10.1.0.1}
        - {to: 10.9.0.0/16, via: 10.1.0.0, congestion-window: 20}
        - {to: "2001:db8::/32", via: "2001:db8:1::", metric: 512}
        - {to: "2001:db8::/32", via: "2001:db8:1::2"}
      routing-policy:
        - {from: 10.1.0.0/24, table: 7, priority: 200}
        - {from: 10.1.0.1, table: 9, priority: soon}
        - {from: 10.1.0.1, table: 9, priority: 40000}
    rail1:
      addresses: ["2001:db8:1::1/127"]
      gateway4: 10.2.0.0
      gateway6: "2001:db8:1::"
      routes:
        - {to: 10.0.0.0/8, via: 10.2.0.0, metric: 150}
      routing-policy:
        - {from: 10.1.0.1, table: 8, priority: 100}
  bonds:
    bond0:
      addresses: [10.3.0.1/31]
      routes:
        - {to: 10.0.0.0/8, via: 10.3.0.0}
"""


def test_routes_and_rules_of_a_host_by_hand_are_read_in_the_order_of_the_kernel() -> None:
    host = MODELS["linux"]
    assert host.host_routes is not None
    found = host.host_routes(host.parse({"netplan.yaml": BY_HAND}))
    tables = (IPv4Network("10.1.0.1/32"), 8), (IPv4Network("10.1.0.0/24"), 7)
    routes = (HostRoute(IPv4Network("10.0.0.0/8"), "10.1.0.0"),)
    assert replace(found, v6=None) == HostRoutes(
        (
            HostRail("rail0", (IPv4Interface("10.1.0.1/31"),), routes, tables),
            HostRail("rail1", (), (HostRoute(IPv4Network("0.0.0.0/0"), "10.2.0.0"),)),
        ),
        (
            "bond0: routes to=10.0.0.0/8 via=10.3.0.0",
            "rail0: routes to=10.9.0.0/16 congestion-window=20 via=10.1.0.0",
            "rail0: routing-policy from=10.1.0.1 priority=40000 table=9",
            "rail0: routing-policy from=10.1.0.1 priority=soon table=9",
        ),
    )
    assert found.v6
    assert found.v6.rails[0].routes == (HostRoute(IPv6Network("2001:db8::/32"), "2001:db8:1::"),)
    assert found.v6.rails[1].routes == (HostRoute(IPv6Network("::/0"), "2001:db8:1::"),)


def test_the_gateway_of_a_unit_by_hand_is_the_default_route() -> None:
    host = MODELS["linux"]
    assert host.host_routes is not None
    unit = (
        "[Match]\nName=rail0\n[Network]\nAddress=10.1.0.1/31\nGateway=10.1.0.0\n[Route]\nGateway=10.1.0.2\nMetric=9\n"
    )
    assert host.host_routes(host.parse({"10-netkit-rail0.network": unit})).rails[0].routes == (
        HostRoute(IPv4Network("0.0.0.0/0"), "10.1.0.0"),
    )


def test_a_gateway_by_hand_that_is_not_an_address_is_unknown() -> None:
    host = MODELS["linux"]
    assert host.host_routes is not None
    unit = "[Match]\nName=rail0\n[Network]\nGateway=_dhcp4\n[Route]\nGateway=_ipv6ra\nMetric=9\n"
    netplan = "network:\n  ethernets:\n    rail1:\n      routes:\n        - {to: 10.0.0.0/8, via: gateway}\n"
    found = host.host_routes(host.parse({"10-netkit-rail0.network": unit, "netplan.yaml": netplan}))
    assert found == HostRoutes(
        (),
        (
            "10-netkit-rail0.network: Gateway=_dhcp4",
            "10-netkit-rail0.network: [Route]; Gateway=_ipv6ra; Metric=9",
            "rail1: routes to=10.0.0.0/8 via=gateway",
        ),
    )


def written(platform: str, version: str, role: str = "leaf") -> Files:
    """The files of a switch of the small fabric; the mode of SONiC stands for its version."""
    is_unified = version == "unified"
    changes = {"switches": {role: {"routing_mode": "unified"} for role in ("leaf", "spine")}} if is_unified else {}
    fabric = small.fabric(small.on_platform(platform, "202511" if is_unified else version, changes))
    return next(files for _, files in files_of(fabric, fabric.tier("leaf" if role == "leaf" else "spine")[0]))


EVERY_WRITTEN = [(platform, version) for platform in SWITCHES for version in VERSIONS[platform]]


@st.composite
def kept_routing(draw: st.DrawFn, lists: tuple[str, ...]) -> RetainedRouting:
    """Rules with unused numbers and prefixes, and aggregates."""
    numbers = st.lists(st.integers(21, 900), unique=True, max_size=4)
    found = []
    for number in draw(numbers):
        length = draw(st.integers(8, 32))
        shortest = draw(st.integers(length, 32))
        longest = draw(st.integers(shortest, 32))
        prefix = IPv4Network((draw(st.integers(0, 2**32 - 1)), length), strict=False)
        found.append(
            (draw(st.sampled_from(lists)), PrefixListEntry(number, draw(st.booleans()), prefix, shortest, longest))
        )
    prefixes = draw(st.sets(st.integers(0, 255), max_size=3))
    return RetainedRouting(
        tuple(found),
        tuple(Aggregate(IPv4Network(f"172.16.{third}.0/28"), draw(st.booleans())) for third in sorted(prefixes)),
    )


def entries_of(platform: str, kept: RetainedRouting) -> int:
    """The number of entries that a platform needs for the kept routing."""
    if platform == "nvue":  # an action and two bounds
        return 3 * len(kept.rules) + len(kept.aggregates)
    return len(kept.rules) + len(kept.aggregates)


@pytest.mark.parametrize("role", ["leaf", "spine"])
@pytest.mark.parametrize(("platform", "version"), EVERY_WRITTEN)
@given(data=st.data())
@settings(MANY, max_examples=examples(12))
def test_kept_routing_is_added_and_nothing_else_changes(
    platform: str, version: str, role: str, data: st.DataObject
) -> None:
    model, files = MODELS[platform], written(platform, version, role)
    assert model.keeping is not None
    before = router_of(platform, files)
    kept = data.draw(kept_routing(tuple(sorted(before.prefix_lists))))
    longer = model.keeping(files, kept)
    plain, config = model.parse(files), model.parse(longer)
    assert {path: config[path] for path in plain if path in config} == {
        path: value for path, value in plain.items() if path in config
    }
    assert all(value == "" for path, value in plain.items() if path not in config)
    assert len(config.keys() - plain.keys()) == entries_of(platform, kept)
    rows = {file: text.splitlines() for file, text in longer.items()}
    for file, text in files.items():
        left = iter(rows[file])
        assert all(any(line == other for other in left) for line in text.splitlines()), file
    after = router_of(platform, longer)
    lists = {name: list(found) for name, found in before.prefix_lists.items()}
    for name, rule in kept.rules:
        lists[name].append(rule)
    assert after == replace(
        before,
        prefix_lists={name: tuple(sorted(found, key=lambda rule: rule.number)) for name, found in lists.items()},
        aggregates=tuple(sorted({*before.aggregates, *kept.aggregates}, key=lambda one: one.prefix)),
    )

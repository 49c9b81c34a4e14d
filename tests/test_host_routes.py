"""Egress NICs of a GPU host: by longest prefix on random fabrics, and in real routing tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.design.fabric import Fabric, Host
from netkit.design.hosts import MAIN_TABLE, OIF_RULE_PRIORITY, RULE_PRIORITY, Route, RoutePlan
from tests.intents import fabric, values
from tests.lanes import examples
from tests.namespace import Answer, Lookup, needs_root, rails_up, run

CHOICES: list[dict[str, Any]] = [
    {"attachment": attachment, "host_routes": routes, "cross_rail": cross}
    for attachment in ("p2p", "vlan")
    for routes in ("per-leaf", "supernet")
    for cross in ("routed", "blocked")
]
# One unit whose leaf prefix is the whole rail prefix, and one rail whose prefix is the whole pool.
ONE_UNIT = {"ceilings": {"units": 1, "hosts_per_unit": 4}, "units": [{"unit": 1, "hosts": 3}]}
LEAF_IS_RAIL = {**ONE_UNIT, "pools": {"hosts": "10.128.0.0/27"}}
LEAF_IS_POOL = {**ONE_UNIT, "pools": {"hosts": "10.128.0.0/29"}, "rails": 1}
VARIANTS = [pytest.param(choice, id="-".join(choice.values())) for choice in CHOICES]
TIGHT = [
    pytest.param({**choice, **changes}, id="-".join((*choice.values(), name)))
    for choice in CHOICES
    for name, changes in (("leaf-is-rail", LEAF_IS_RAIL), ("leaf-is-pool", LEAF_IS_POOL))
]


def wanted(built: Fabric, host: Host) -> Iterator[tuple[Lookup, Answer]]:
    """Every lookup towards another host, and its expected egress."""
    for nic in host.nics:
        bound = (Lookup("", nic.address, nic.interface), Lookup("", nic.address), Lookup("", oif=nic.interface))
        for far in (far for other in built.hosts if other != host for far in other.nics):
            by_gateway = Answer(nic.interface, nic.gateway)
            if far.rail == nic.rail:
                is_on_link = built.attachment == "vlan" and far.leaf == nic.leaf
                way = Answer(nic.interface, "") if is_on_link else by_gateway
                yield Lookup(far.address), way
                yield from ((Lookup(far.address, ask.source, ask.oif), way) for ask in bound)
            elif built.cross_rail == "routed":
                yield from ((Lookup(far.address, ask.source, ask.oif), by_gateway) for ask in bound)
            else:
                yield from ((Lookup(far.address, ask.source, ask.oif), refused(ask)) for ask in bound)


def refused(ask: Lookup) -> Answer:
    """The kernel's answer for an unreachable route: with a NIC given, it treats the address as on-link there."""
    return Answer(ask.oif, "")


def nowhere(built: Fabric, host: Host) -> Iterator[tuple[Lookup, Answer]]:
    """Yield bound lookups of addresses that the fabric may use later, but no leaf has yet."""
    last = IPv4Network(built.host_pool)[-1]
    if (
        not any(last in IPv4Network(leaf.leaf_prefix) for leaf in built.tier("leaf"))
        and built.host_routes == "per-leaf"
    ):
        for nic in host.nics:
            for ask in (Lookup(str(last), nic.address), Lookup(str(last), oif=nic.interface)):
                yield ask, refused(ask)


@dataclass(frozen=True)
class Simulated:
    """A host's routing tables and rules evaluated as by the kernel: rules in order, longest prefix, error or route."""

    host: Host
    routes: list[tuple[str, Route]]

    @classmethod
    def of(cls, plan: RoutePlan, host: Host) -> "Simulated":
        on_link = [(nic.interface, Route(plan.connected(nic), "link", "", MAIN_TABLE)) for nic in host.nics]
        return cls(host, on_link + [(nic.interface, route) for nic in host.nics for route in plan.routes(nic)])

    def tables(self, lookup: Lookup) -> Iterator[int]:
        yield from (nic.table for nic in self.host.nics if nic.address == lookup.source)
        yield from (nic.table for nic in self.host.nics if nic.interface == lookup.oif)
        yield MAIN_TABLE

    def answer(self, lookup: Lookup) -> Answer:
        to = IPv4Address(lookup.to)
        for table in self.tables(lookup):
            fitting = [
                (IPv4Network(route.prefix).prefixlen, nic, route)
                for nic, route in self.routes
                if route.table == table
                and to in IPv4Network(route.prefix)
                and (route.kind == "unreachable" or lookup.oif in {"", nic})
            ]
            if fitting:
                _, nic, route = max(fitting, key=lambda found: found[0])
                return refused(lookup) if route.kind == "unreachable" else Answer(nic, route.via)
        return refused(lookup)


@st.composite
def intents(draw: st.DrawFn) -> dict[str, Any]:
    rails, units, hosts = (draw(st.integers(1, limit)) for limit in (8, 5, 6))
    installed = draw(st.lists(st.integers(1, units), min_size=1, max_size=3, unique=True))
    attachment = draw(st.sampled_from(["p2p", "vlan"]))
    leaf_length = 32 - ((2 * hosts - 1) if attachment == "p2p" else hosts + 2).bit_length()
    spare = draw(st.integers(0, 2))
    rail_length = min(leaf_length - (units - 1).bit_length() - spare, 30)
    return values(
        {
            "rails": rails,
            "attachment": attachment,
            "host_routes": draw(st.sampled_from(["per-leaf", "supernet"])),
            "cross_rail": draw(st.sampled_from(["routed", "blocked"])),
            "ceilings": {"units": units, "hosts_per_unit": hosts},
            "units": [{"unit": unit, "hosts": draw(st.integers(1, hosts))} for unit in installed],
            "pools": {"hosts": f"10.128.0.0/{rail_length - (rails - 1).bit_length()}"},
        }
    )


@settings(max_examples=examples(40))
@given(intents())
def test_bound_or_not_every_host_of_a_rail_is_reached_by_the_rails_own_nic(intent: dict[str, Any]) -> None:
    built = fabric(intent)
    plan = RoutePlan(built)
    for host in built.hosts[:3]:
        simulated = Simulated.of(plan, host)
        for lookup, answer in (*wanted(built, host), *nowhere(built, host)):
            assert simulated.answer(lookup) == answer, lookup


@settings(max_examples=examples(40))
@given(intents())
def test_no_table_has_two_routes_to_one_prefix(intent: dict[str, Any]) -> None:
    built = fabric(intent)
    plan = RoutePlan(built)
    for host in built.hosts:
        seen = [(MAIN_TABLE, plan.connected(nic)) for nic in host.nics]
        seen += [(route.table, route.prefix) for nic in host.nics for route in plan.routes(nic)]
        assert len(seen) == len(set(seen))


def commands(built: Fabric, host: Host) -> Iterator[str]:
    """Yield a host's plan as iproute2 commands; `add` fails for existing entries."""
    plan = RoutePlan(built)
    for nic in host.nics:
        yield f"ip addr add {nic.address}/{nic.prefix_length} dev {nic.interface}"
        yield f"ip link set {nic.interface} up"
    for nic in host.nics:
        for route in plan.routes(nic):
            yield {
                "via": f"ip route add {route.prefix} via {route.via} dev {nic.interface} table {route.table}",
                "link": f"ip route add {route.prefix} dev {nic.interface} scope link table {route.table}",
                "unreachable": f"ip route add unreachable {route.prefix} table {route.table}",
            }[route.kind]
        yield f"ip rule add from {nic.address} table {nic.table} priority {RULE_PRIORITY}"
        yield f"ip rule add oif {nic.interface} table {nic.table} priority {OIF_RULE_PRIORITY}"


@needs_root
@pytest.mark.parametrize("changes", [*VARIANTS, *TIGHT])
def test_the_kernel_sends_every_flow_out_of_the_right_nic(changes: dict[str, Any], tmp_path: Path) -> None:
    built = fabric(values({"rails": 4, **changes}))
    host = built.hosts[1]
    expected = dict((*wanted(built, host), *nowhere(built, host)))
    kernel = run(tmp_path, [*rails_up(nic.interface for nic in host.nics), *commands(built, host)], expected)
    assert kernel.answers == expected


@needs_root
def test_without_the_rules_the_kernel_would_choose_the_wrong_nic(tmp_path: Path) -> None:
    built = fabric(values({"cross_rail": "routed"}))
    host, far = built.hosts[0], built.hosts[1].nics[1]
    own = host.nics[0]
    bare = [line for line in commands(built, host) if "ip rule" not in line]
    by_source, by_nic = Lookup(far.address, own.address), Lookup(far.address, oif=own.interface)
    kernel = run(tmp_path, [*rails_up(nic.interface for nic in host.nics), *bare], [by_source, by_nic])
    assert kernel.answers == {by_source: Answer("rail1", host.nics[1].gateway), by_nic: Answer("rail0", "")}

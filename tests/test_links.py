"""BGP by address between switches: link addresses, the configuration of each NOS, and the routing model."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

import pytest
from hypothesis import assume, given

from netkit.design import Fabric, Switch
from netkit.design.hosts import RoutePlan
from netkit.design.numbering import renumbered
from netkit.design.tables import cables
from netkit.observe import subject, target
from netkit.platforms.compare import MODELS
from netkit.platforms.routing import Router
from netkit.render import Engine, render
from netkit.routing import Cabling, Network, NetworkState
from netkit.routing.designed import host_of, router_of
from tests import intents
from tests.platforms.test_routing import MANY
from tests.random_intents import Values, grown
from tests.test_ipv6 import RELEASES, values

LINKS = {"pools": {"links": "10.9.0.0/22"}}
ENGINE = Engine()


def fabric(name: str, **changes: Any) -> Fabric:
    return intents.fabric(values(name, LINKS, changes))


def addresses(designed: Fabric) -> dict[tuple[str, str], tuple[str, str]]:
    """The addresses of both ends of each link, by its switches."""
    return {
        (switch.name, port.peer): (port.address, port.peer_address)
        for switch in designed.switches
        for port in switch.fabric_ports
    }


def read(switch: Switch, designed: Fabric) -> Router:
    model = MODELS[switch.platform]
    files = next(iter(render(designed, [switch], ENGINE))).files
    assert model.router is not None
    return model.router(model.parse({name: text for name, text in files.items() if model.reads(name)}))


@MANY
@given(grown())
def test_growth_moves_no_address_of_a_link(pair: tuple[Values, Values]) -> None:
    assume(pair[0]["topology"] != "rail-only")
    first, second = (
        intents.fabric(
            {**one, "pools": {"loopbacks": "10.255.0.0/20", "hosts": "10.128.0.0/12", "links": "10.8.0.0/14"}}
        )
        for one in pair
    )
    assert not [one for one in renumbered(first, second) if one.quantity == "port address"]
    for designed in (first, second):
        networks = [
            IPv4Interface(port.address).network
            for switch in designed.switches
            for port in switch.fabric_ports
            if port.role == "up"
        ]
        assert len(set(networks)) == len(networks)
        assert all(one.prefixlen == 31 and one.subnet_of(IPv4Network("10.8.0.0/14")) for one in networks)


def test_more_units_and_spines_below_the_ceilings_move_nothing() -> None:
    before = fabric("frr")
    after = fabric("frr", units=[{"unit": "1-4", "hosts": 4}], switches={"spine": {"slots": 4}})
    assert addresses(before).items() < addresses(after).items()
    assert addresses(before)["leaf01", "spine02"] == ("10.9.0.3/31", "10.9.0.2")
    assert addresses(before)["spine02", "leaf01"] == ("10.9.0.2/31", "10.9.0.3")


@pytest.mark.parametrize("name", RELEASES)
def test_every_nos_has_the_addresses_and_sessions(name: str) -> None:
    designed = fabric(name)
    for switch in designed.switches:
        found = read(switch, designed)
        assert found.neighbors == ()
        assert {(one.interface, one.address, one.remote_asn) for one in found.sessions} == {
            (port.name, port.peer_address, port.peer_asn) for port in switch.fabric_ports
        }
        assert found.unknown == ()
        assert set(found.addresses) >= {(port.name, IPv4Interface(port.address)) for port in switch.fabric_ports}


@pytest.mark.parametrize("name", RELEASES)
def test_one_link_has_addresses_and_the_others_none(name: str) -> None:
    row = {"device": "leaf01", "peer": "spine01", "address": "198.18.7.1/31", "peer_address": "198.18.7.0"}
    allowed = {"management": {"pool": "192.0.2.0/24", "gateway": "192.0.2.1", "allow": ["192.0.2.0/24"]}}
    designed = intents.fabric(values(name, {"tables": {"cables": [row]}, **allowed}))
    by_address = {("leaf01", "198.18.7.0"), ("spine01", "198.18.7.1")}
    for switch in designed.switches:
        found = read(switch, designed)
        assert {(switch.name, one.address) for one in found.sessions if one.address} == {
            ends for ends in by_address if ends[0] == switch.name
        }
        assert {(one.interface, one.remote_asn) for one in found.sessions} == {
            (port.name, port.peer_asn) for port in switch.fabric_ports
        }
        assert found.unknown == ()


@pytest.mark.parametrize("name", ["nvue", "sonic", "eos", "frr"])
def test_addresses_of_links_are_not_advertised(name: str) -> None:
    designed = fabric(name)
    for switch in designed.switches:
        found = read(switch, designed)
        listed = [row.prefix for rows in found.prefix_lists.values() for row in rows]
        assert not any(prefix.overlaps(IPv4Network("10.9.0.0/22")) for prefix in listed)


def test_a_table_sets_link_addresses() -> None:
    row = {"device": "spine02", "peer": "leaf01", "address": "198.18.7.9/30", "peer_address": "198.18.7.10"}
    found = addresses(fabric("frr", tables={"cables": [row]}))
    assert found["leaf01", "spine02"] == ("198.18.7.10/30", "198.18.7.9")
    assert found["spine02", "leaf01"] == ("198.18.7.9/30", "198.18.7.10")
    others = {ends: value for ends, value in addresses(fabric("frr")).items() if set(ends) != {"spine02", "leaf01"}}
    assert others.items() < found.items()


def test_the_exported_tables_of_a_fabric_give_the_same_design() -> None:
    row = {"device": "spine02", "peer": "leaf01", "address": "198.18.7.9/30", "peer_address": "198.18.7.10"}
    designed = fabric("frr", tables={"cables": [row]})
    rows = [{key: value for key, value in row.items() if value} for row in cables(designed)]
    assert addresses(fabric("frr", tables={"cables": rows})) == addresses(designed)


def network(*designs: Fabric) -> Network:
    plan, plan_v6 = RoutePlan(designs[0]), RoutePlan(designs[0], 6)
    routers = {
        switch.name: tuple(router_of(one, one.switch(switch.name)) for one in designs) for switch in designs[0].switches
    }
    return Network(
        Cabling.of(designs), routers, {host.name: (host_of(plan, plan_v6, host),) for host in designs[0].hosts}
    )


def test_the_model_of_routing_expects_the_paths_of_unnumbered_sessions() -> None:
    by_address, by_port = network(fabric("frr")), network(intents.fabric(values("frr")))
    assert by_address.outlook(NetworkState()) == by_port.outlook(NetworkState())
    assert set(by_address.outlook(NetworkState()).widths.values()) == {2}
    assert by_address.speaking(NetworkState(), "leaf01") == by_port.speaking(NetworkState(), "leaf01")


def test_a_session_needs_the_address_of_the_other_end() -> None:
    plain = fabric("frr")
    leaf = plain.switch("leaf01")
    wrong = replace(
        leaf,
        ports=tuple(
            replace(port, peer_address="10.9.3.1") if port.peer_address == "10.9.0.0" else port for port in leaf.ports
        ),
    )
    other = replace(plain, switches=tuple(wrong if one.name == "leaf01" else one for one in plain.switches))
    found = network(plain, other)
    changed = NetworkState({"leaf01": 1})
    assert len(found.speaking(NetworkState(), "leaf01")) == 2
    assert len(found.speaking(changed, "leaf01")) == 1


def test_sessions_come_up_once_both_ends_have_addresses() -> None:
    found = network(intents.fabric(values("frr")), fabric("frr"))
    half = NetworkState({"leaf01": 1})
    assert found.speaking(half, "leaf01") == frozenset()
    assert len(found.speaking(NetworkState({"leaf01": 1, "spine01": 1}), "leaf01")) == 1


def test_sessions_are_observed_by_port() -> None:
    designed = fabric("frr")
    leaf = designed.switch("leaf01")
    views = [view for view in target("frr", subject(designed, leaf)).views if "sessions" in view.yields]
    shown = '{"peers": {"10.9.0.0": {"state": "Established", "remoteAs": 4200000001}, "192.0.2.7": {"state": "Idle"}}}'
    (view,) = views
    found = view.parse(shown)
    assert isinstance(found.sessions, dict)
    assert sorted(found.sessions) == ["192.0.2.7", leaf.fabric_ports[0].name]
    assert IPv4Address(leaf.fabric_ports[0].peer_address) == IPv4Address("10.9.0.0")

"""IPv6 beside IPv4: the addresses, that IPv4 does not change, and that each NOS has equal routing for both."""

from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given

from netkit.design import Fabric, Host, Switch
from netkit.design.hosts import RoutePlan
from netkit.platforms.compare import MODELS
from netkit.render import Engine, render
from tests import intents
from tests.platforms.test_routing import MANY, check_all
from tests.random_intents import Values, grown
from tests.random_intents import intents as random_intents

ENGINE = Engine()
RELEASES = {
    "nvue-old": "5.9.0",
    "nvue": "5.16.1",
    "sonic": "202411",
    "sonic-unified": "202511",
    "eos": "4.35.1F",
    "frr": "10.2",
}
LOOPBACKS, MANAGEMENT = "2001:db8:255::/64", "2001:db8:1::/64"
V6: dict[str, Any] = {
    "pools": {"loopbacks_v6": LOOPBACKS, "hosts_v6": "2001:db8:128::/48"},
    "management": {"pool_v6": MANAGEMENT, "gateway_v6": "2001:db8:1::1"},
}
SERVICES = {
    "services": {
        "ntp": ["192.0.2.2", "2001:db8:1::2"],
        "dns": ["2001:db8:1::3", "192.0.2.3"],
        "syslog": [{"address": "2001:db8:1::4"}, {"address": "2001:db8:1::5", "port": 6514, "protocol": "tcp"}],
    }
}


def values(name: str, *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    found = dict(more)
    for change in changes:
        intents.merge(found, change)
    if name.endswith("unified"):
        intents.merge(found, {"switches": {role: {"routing_mode": "unified"} for role in ("leaf", "spine")}})
    return intents.on_platform(name.partition("-")[0], RELEASES[name], found)


def numbers(fabric: Fabric) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for switch in fabric.switches:
        managed = switch.management.address_v6 if switch.management else ""
        gateways = {port.peer: port.address_v6 for port in switch.host_ports}
        found[switch.name] = switch.loopback_v6, managed, switch.leaf_prefix_v6
        found |= {f"{switch.name} to {peer}": (gateway,) for peer, gateway in gateways.items()}
    for host in fabric.hosts:
        found |= {f"{host.name} {nic.interface}": (nic.address_v6, nic.gateway_v6) for nic in host.nics}
    return found


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize(
    "more", [{}, {"attachment": "vlan"}, {"overrides": {"leaf01": {"drain_neighbors": ["spine01"]}}}]
)
def test_each_nos_has_the_routing_of_ipv4(name: str, more: dict[str, Any]) -> None:
    check_all(intents.fabric(values(name, V6, **more)))


@pytest.mark.parametrize("name", RELEASES)
def test_servers_may_have_ipv6_addresses(name: str) -> None:
    designed = intents.fabric(values(name, V6, SERVICES))
    check_all(designed)
    for one in render(designed, designed.switches, ENGINE):
        text = "".join(one.files.values())
        assert all(f"2001:db8:1::{number}" in text for number in range(2, 6)), one.device


@pytest.mark.parametrize("name", RELEASES)
def test_ipv6_adds_to_a_configuration_and_changes_nothing_in_it(name: str) -> None:
    plain, designed = intents.fabric(values(name)), intents.fabric(values(name, V6))
    before = {one.device: one.files for one in render(plain, [*plain.switches, *plain.hosts], ENGINE)}
    after = {one.device: one.files for one in render(designed, [*designed.switches, *designed.hosts], ENGINE)}
    devices: tuple[Switch | Host, ...] = (*designed.switches, *designed.hosts)
    for device in devices:
        model = MODELS[device.platform if isinstance(device, Switch) else "linux"]
        old, new = (
            model.parse({file: text for file, text in files[device.name].items() if model.reads(file)})
            for files in (before, after)
        )
        gone = {path for path in old if path not in new or new[path] != old[path]}
        assert all("link-local" in path for path in gone), gone
        text = [" ".join((*path, value)) for path, value in new.items() if path not in old]
        assert not [line for line in text if not any(word in line for word in ("v6", "V6", "SRC6", ":"))]
        owned = device.loopback_v6 if isinstance(device, Switch) else device.nics[0].address_v6
        assert owned in "".join(text)
    assert not numbers(plain)["leaf01"][0]


@MANY
@given(random_intents())
def test_a_switch_has_the_same_index_in_both_pools(drawn: Values) -> None:
    fabric = intents.fabric(drawn)
    pools = [(drawn["pools"].get("loopbacks_v6"), drawn["pools"]["loopbacks"], _loopbacks)]
    if drawn["management"]:
        pools.append((drawn["management"].get("pool_v6"), drawn["management"]["pool"], _managed))
    for wide, narrow, addresses in pools:
        for switch in fabric.switches:
            old, new = addresses(switch)
            if not wide:
                assert not new
            else:
                places = [int(ip_address(one)) - int(ip_network(pool)[0]) for one, pool in ((old, narrow), (new, wide))]
                assert places[0] == places[1]


def _loopbacks(switch: Switch) -> tuple[str, str]:
    return switch.loopback, switch.loopback_v6


def _managed(switch: Switch) -> tuple[str, str]:
    assert switch.management
    return switch.management.address, switch.management.address_v6


@MANY
@given(random_intents())
def test_hosts_have_the_same_routes_as_those_of_ipv4(drawn: Values) -> None:
    fabric = intents.fabric(drawn)
    if not fabric.host_pool_v6:
        assert not any(nic.address_v6 for host in fabric.hosts for nic in host.nics)
        return
    plan, other = RoutePlan(fabric), RoutePlan(fabric, 6)
    twins = {fabric.host_pool: fabric.host_pool_v6, **{rail.prefix: rail.prefix_v6 for rail in fabric.rails}}
    twins |= {leaf.leaf_prefix: leaf.leaf_prefix_v6 for leaf in fabric.tier("leaf")}
    for nic in (nic for host in fabric.hosts for nic in host.nics):
        twins[plan.connected(nic)] = other.connected(nic)
        wanted = [
            replace(route, prefix=twins[route.prefix], via=nic.gateway_v6 if route.via else "")
            for route in plan.routes(nic)
        ]
        found = list(other.routes(nic))
        if drawn["attachment"] == "p2p" and fabric.leaf_prefix_length == fabric.link_length:
            # The link to the only host is the whole prefix of a leaf, which is larger in IPv6.
            found = [route for route in found if route.prefix != fabric.switch(nic.leaf).leaf_prefix_v6]
            wanted = [route for route in wanted if route.prefix != other.connected(nic)]
            found = [route for route in found if route.prefix != other.connected(nic)]
        assert found == wanted
        assert ip_address(nic.address_v6) in ip_network(fabric.switch(nic.leaf).leaf_prefix_v6)
        assert ip_address(nic.gateway_v6) in ip_network(other.connected(nic))


@MANY
@given(grown())
def test_growth_renumbers_nothing(pair: tuple[Values, Values]) -> None:
    before, after = (numbers(intents.fabric(one)) for one in pair)
    kept = before.keys() & after.keys()
    assert {name: before[name] for name in kept} == {name: after[name] for name in kept}

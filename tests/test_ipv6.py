"""IPv6 beside IPv4: the numbers, that IPv4 stays as it is, and that each NOS reads back the routing of IPv4."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given

from netkit.design import Fabric, Switch
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
    "pools": {"loopbacks_v6": LOOPBACKS},
    "management": {"pool_v6": MANAGEMENT, "gateway_v6": "2001:db8:1::1"},
}


def values(name: str, *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    found = dict(more)
    for change in changes:
        intents.merge(found, change)
    if name.endswith("unified"):
        intents.merge(found, {"switches": {role: {"routing_mode": "unified"} for role in ("leaf", "spine")}})
    return intents.on_platform(name.partition("-")[0], RELEASES[name], found)


def numbers(fabric: Fabric) -> dict[str, tuple[str, str]]:
    found = {}
    for switch in fabric.switches:
        found[switch.name] = switch.loopback_v6, switch.management.address_v6 if switch.management else ""
    return found


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize(
    "more", [{}, {"attachment": "vlan"}, {"overrides": {"leaf01": {"drain_neighbors": ["spine01"]}}}]
)
def test_each_nos_reads_back_the_routing_of_ipv4(name: str, more: dict[str, Any]) -> None:
    check_all(intents.fabric(values(name, V6, **more)))


@pytest.mark.parametrize("name", RELEASES)
def test_ipv6_adds_to_a_configuration_and_changes_nothing_in_it(name: str) -> None:
    plain, designed = intents.fabric(values(name)), intents.fabric(values(name, V6))
    before = {one.device: one.files for one in render(plain, plain.switches, ENGINE)}
    after = {one.device: one.files for one in render(designed, designed.switches, ENGINE)}
    for switch in designed.switches:
        model = MODELS[switch.platform]
        old, new = (
            model.parse({file: text for file, text in files[switch.name].items() if model.reads(file)})
            for files in (before, after)
        )
        gone = {path for path in old if path not in new or new[path] != old[path]}
        assert all("link-local" in path for path in gone), gone
        text = [" ".join((*path, value)) for path, value in new.items() if path not in old]
        assert not [line for line in text if not any(word in line for word in ("v6", "V6", "SRC6", ":"))]
        assert switch.loopback_v6 in "".join(text)
    assert not numbers(plain)["leaf01"][0]


@MANY
@given(random_intents())
def test_a_switch_has_the_same_place_in_both_pools(drawn: Values) -> None:
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
@given(grown())
def test_growth_renumbers_nothing(pair: tuple[Values, Values]) -> None:
    before, after = (numbers(intents.fabric(one)) for one in pair)
    kept = before.keys() & after.keys()
    assert {name: before[name] for name in kept} == {name: after[name] for name in kept}

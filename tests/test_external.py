"""Peers outside the fabric: what is accepted and advertised, and that the rest of the fabric does not change."""

from dataclasses import replace
from typing import Any

import pytest

from netkit.design import Fabric
from netkit.design.hosts import RoutePlan
from netkit.render import Engine, render
from netkit.routing import Cabling, Network, NetworkState
from netkit.routing.designed import host_of, router_of
from tests import intents
from tests.platforms.test_routing import check_all

ENGINE = Engine()
RELEASES = {
    "nvue": ("5.9.0", "swp60s0"),
    "nvue-new": ("5.16.1", "swp60s0"),
    "sonic": ("202411", "Ethernet472"),
    "sonic-unified": ("202511", "Ethernet472"),
    "eos": ("4.35.1F", "Ethernet60/1"),
    "frr": ("10.2", "swp60s0"),
}


def peer(port: str, **given: Any) -> dict[str, Any]:
    return {
        "name": "isp-a",
        "device": "spine01",
        "port": port,
        "address": "203.0.113.1/31",
        "peer": "203.0.113.0",
        "asn": 64512,
        "accept": ["0.0.0.0/0", "198.51.100.0/24"],
        "announce": ["10.128.0.0/16"],
        "bfd": True,
        **given,
    }


def fabric(name: str, *peers: dict[str, Any], **changes: Any) -> Fabric:
    platform = name.partition("-")[0]
    if name.endswith("unified"):
        tier = {"routing_mode": "unified"}
        changes = {**changes, "switches": {"leaf": tier, "spine": tier}}
    return intents.fabric(intents.on_platform(platform, RELEASES[name][0], {"external": list(peers), **changes}))


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("attachment", ["p2p", "vlan"])
def test_each_nos_parses_its_rendered_peers(name: str, attachment: str) -> None:
    port = RELEASES[name][1]
    other = peer(port, name="isp-b", device="spine02", address="203.0.113.3/31", peer="203.0.113.2", bfd=False)
    check_all(fabric(name, peer(port), other, attachment=attachment))


def test_accepted_routes_are_propagated_and_only_the_summary_is_advertised() -> None:
    designed = fabric("frr", peer("swp60s0"))
    routers = {switch.name: router_of(designed, switch) for switch in designed.switches}
    outside = [str(rule.prefix) for rule in routers["spine01"].prefix_lists["EXTERNAL-OUT-isp-a"]]
    assert outside == ["10.128.0.0/16"]
    for name, router in routers.items():
        taken = [(str(rule.prefix), rule.longest) for rule in router.prefix_lists["FABRIC"]]
        assert taken[2:] == [("0.0.0.0/0", 0), ("198.51.100.0/24", 24)], name
        assert bool(router.external) == (name == "spine01")
    leaf = routers["leaf01"].prefix_lists["LOCAL"]
    assert all(str(rule.prefix) != "0.0.0.0/0" for rule in leaf)


def test_hosts_reach_each_other_as_without_a_peer() -> None:
    rows = []
    for designed in (fabric("frr"), fabric("frr", peer("swp60s0"))):
        plan, plan_v6 = RoutePlan(designed), RoutePlan(designed, 6)
        network = Network(
            Cabling.of([designed]),
            {switch.name: (router_of(designed, switch),) for switch in designed.switches},
            {host.name: (host_of(plan, plan_v6, host),) for host in designed.hosts},
        )
        rows.append(network.outlook(NetworkState()))
    assert rows[0] == rows[1]
    assert all(rows[0].rows)


def test_hosts_and_switches_without_a_peer_keep_their_files() -> None:
    plain, designed = fabric("nvue-new"), fabric("nvue-new", peer("swp60s0"))
    assert plain.hosts == designed.hosts
    before = {one.device: one.files for one in render(plain, plain.switches, ENGINE)}
    after = {one.device: one.files for one in render(designed, designed.switches, ENGINE)}
    rule = "'30':", "'40':"
    for name in ("leaf01", "spine02"):
        added = set(after[name]["startup.yaml"].splitlines()) - set(before[name]["startup.yaml"].splitlines())
        assert {line.strip() for line in added} == {
            *rule,
            "0.0.0.0/0:",
            "198.51.100.0/24:",
            *(f"{end}-prefix-len: {length}" for end in ("max", "min") for length in (0, 24)),
        }, name


def test_an_external_port_is_never_lossless() -> None:
    designed = fabric("sonic", peer("Ethernet472"))
    spine = designed.switch("spine01")
    files = next(iter(render(designed, [spine], ENGINE))).files
    without = replace(spine, external=())
    assert '"Ethernet472": "0m"' in files["config_db.json"]
    assert '"Ethernet472|3"' not in files["config_db.json"]
    assert {port.name for port in spine.ports} == {port.name for port in without.ports}

"""Which ports are drained, by the running configuration of FRR."""

import pytest

from netkit.lab import live
from tests import intents

FABRIC = intents.fabric(intents.values())
LEAF, SPINE = FABRIC.switch("leaf01"), FABRIC.switch("spine01")
UPLINKS = [port.name for port in LEAF.fabric_ports]
MAPS = """route-map LEAVE permit 10
 match ip address prefix-list OWN
 set community graceful-shutdown additive
exit
!
route-map STAY permit 10
 set community 65000:1
exit
!
route-map ALSO deny 10
exit
"""


def names(device: str) -> dict[str, str]:
    return {port.name: port.name for port in FABRIC.switch(device).ports}


def session(port: str, map_name: str, *, group: str = "SPINES") -> str:
    return f" neighbor {port} interface peer-group {group}\n  neighbor {port} route-map {map_name} out\n"


def test_a_spine_that_shuts_down_drains_every_port() -> None:
    config = "router bgp 65001\n bgp graceful-shutdown\nexit\n"
    assert live.drained_ports(config, SPINE, names("spine01")) == frozenset(names("spine01"))
    assert live.drained_ports(config, LEAF, names("leaf01")) == frozenset()


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        (session(UPLINKS[0], "LEAVE") + session(UPLINKS[1], "STAY"), {UPLINKS[0]}),
        (session(UPLINKS[0], "STAY") + session(UPLINKS[1], "STAY"), set()),
        ("".join(session(port, "LEAVE") for port in UPLINKS), set()),
        (session(UPLINKS[0], "ALSO"), set()),
    ],
)
def test_a_leaf_drains_single_sessions_but_never_all(sessions: str, expected: set[str]) -> None:
    assert live.drained_ports(f"{MAPS}router bgp 65002\n{sessions}exit\n", LEAF, names("leaf01")) == expected


def test_a_group_drains_its_members_and_an_inbound_map_drains_nothing() -> None:
    ports = list(names("spine01"))
    config = f"{MAPS}router bgp 1\n neighbor {ports[0]} interface peer-group LEAVES\n"
    config += "  neighbor LEAVES route-map LEAVE out\n"
    config += f" neighbor {ports[1]} interface remote-as external\n  neighbor {ports[1]} route-map LEAVE in\n"
    assert live.drained_ports(config, SPINE, names("spine01")) == {ports[0]}

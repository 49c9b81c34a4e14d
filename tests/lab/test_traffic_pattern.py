"""The flows of a fabric."""

from collections import Counter

import pytest

from netkit.errors import LabError
from netkit.lab.traffic.flow import MOST_TOTAL_PPS, FlowEnd, NicAddress, addresses, incast, steady
from tests import intents

FABRIC = intents.fabric(intents.values())
LARGE = intents.fabric(intents.values({"units": [{"unit": "1-4", "hosts": 4}]}))
NICS = {FlowEnd(host.name, nic.interface): nic for host in FABRIC.hosts for nic in host.nics}
RAIL_OF = {end: nic.rail for end, nic in NICS.items()}


def test_the_steady_exchange_sends_and_receives_once_on_every_nic() -> None:
    flows = steady(FABRIC)
    every = Counter(dict.fromkeys(NICS, 1))
    assert Counter(flow.source for flow in flows) == every
    assert Counter(flow.destination for flow in flows) == every


def test_the_steady_exchange_stays_on_its_rail_and_crosses_leaves() -> None:
    for flow in steady(FABRIC):
        assert RAIL_OF[flow.source] == RAIL_OF[flow.destination]
    leaves = [(NICS[flow.source].leaf, NICS[flow.destination].leaf) for flow in steady(FABRIC)]
    assert all(one != other for one, other in leaves)


def test_names_of_flows_differ() -> None:
    flows = steady(LARGE) + incast(LARGE, FlowEnd("gpu01", LARGE.hosts[0].nics[0].interface), 5)
    assert len({flow.name for flow in flows}) == len(flows)


def test_a_large_fabric_leaves_room_for_congestion_on_demand() -> None:
    target = FlowEnd(LARGE.hosts[0].name, LARGE.hosts[0].nics[0].interface)
    flows = steady(LARGE) + incast(LARGE, target, 1000)
    assert sum(flow.rate_pps for flow in flows) <= MOST_TOTAL_PPS


def test_a_fabric_too_large_for_the_usual_rate_gets_a_lower_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netkit.lab.traffic.flow.MOST_TOTAL_PPS", 100)
    target = FlowEnd(LARGE.hosts[0].name, LARGE.hosts[0].nics[0].interface)
    assert sum(flow.rate_pps for flow in steady(LARGE)) == pytest.approx(20)
    assert sum(flow.rate_pps for flow in incast(LARGE, target, 1000)) == pytest.approx(80)


def test_incast_comes_over_the_spines_first() -> None:
    host = FABRIC.hosts[0]
    target = FlowEnd(host.name, host.nics[1].interface)
    flows = incast(FABRIC, target, 2)
    assert {flow.destination for flow in flows} == {target}
    assert {RAIL_OF[flow.source] for flow in flows} == {1}
    assert {NICS[flow.source].leaf for flow in flows}.isdisjoint({host.nics[1].leaf})
    assert {flow.rate_pps for flow in flows} == {200.0}


@pytest.mark.parametrize(("host", "senders"), [("nobody", 3), ("gpu01", 0)])
def test_incast_on_an_unknown_target_is_refused(host: str, senders: int) -> None:
    with pytest.raises(LabError, match="no incast of"):
        incast(FABRIC, FlowEnd(host, FABRIC.hosts[0].nics[0].interface), senders)


def test_all_nics_of_a_host_are_attached_by_their_rail_addresses() -> None:
    host = FABRIC.hosts[0]
    assert addresses(host) == tuple(NicAddress(nic.interface, nic.address) for nic in host.nics)

"""Which hosts ping each other while a change is rolled out."""

from dataclasses import replace

from netkit.design import Fabric
from netkit.prove.proof import ACROSS, SAME_LEAF, SAME_UNIT, SCOPES, cut, flows
from tests import intents

FABRIC = intents.fabric(intents.BASE)


def test_every_scope_is_pinged_and_no_more_often_than_allowed() -> None:
    found = flows(FABRIC, FABRIC, most_per_scope=3)
    assert [flow.scope for flow in found] == [scope for scope in SCOPES for _ in range(3)]
    assert len({flow.call.name for flow in found}) == 9


def test_flows_are_between_nics_that_existed_before() -> None:
    before = cut(FABRIC, {*FABRIC.names} - {"gpu06"})
    hosts = {flow.call.name.partition(":")[0] for flow in flows(before, FABRIC, 1000)}
    assert hosts == {"gpu01", "gpu02", "gpu05"}


def test_nics_whose_address_changes_are_not_pinged() -> None:
    moved = intents.fabric(intents.values({"pools": {"loopbacks": "10.255.0.0/24", "hosts": "10.64.0.0/16"}}))
    assert flows(FABRIC, moved) == ()


def test_both_families_are_pinged_where_their_addresses_stay() -> None:
    pools = {"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"}
    both, other = (
        intents.fabric(intents.values({"pools": one})) for one in (pools, {**pools, "hosts_v6": "2001:db8:200::/48"})
    )
    of_ipv4 = {flow.call for flow in flows(FABRIC, FABRIC, 1000)}
    for sides in ((FABRIC, both), (both, FABRIC), (both, other)):
        assert {flow.call for flow in flows(*sides, 1000)} == of_ipv4
    v6 = {nic.address: nic.address_v6 for host in both.hosts for nic in host.nics}
    of_ipv6 = {
        replace(one, name=f"{one.name} over IPv6", source=v6[one.source], destination=v6[one.destination])
        for one in of_ipv4
    }
    assert {flow.call for flow in flows(both, both, 1000)} == of_ipv4 | of_ipv6
    some = [flow.call.name.endswith(" over IPv6") for flow in flows(both, both, 3)]
    assert some == [False, True] * 9


def drained(**overrides: bool) -> Fabric:
    return replace(
        FABRIC, switches=tuple(replace(one, drain=overrides.get(one.name, False)) for one in FABRIC.switches)
    )


def test_a_remaining_spine_is_crossed_whichever_side_is_drained() -> None:
    every = {flow.call.name for flow in flows(FABRIC, FABRIC, 1000)}
    for sides in ((FABRIC, drained(spine01=True)), (drained(spine01=True), FABRIC)):
        assert {flow.call.name for flow in flows(*sides, 1000)} == every


def test_without_a_remaining_spine_pings_stay_on_their_leaf() -> None:
    for sides in ((FABRIC, drained(spine01=True, spine02=True)), (drained(spine01=True, spine02=True), FABRIC)):
        assert {flow.scope for flow in flows(*sides, 1000)} == {SAME_LEAF}


def test_isolated_rails_do_not_ping_each_other() -> None:
    blocked = intents.fabric(intents.values({"cross_rail": "blocked"}))
    found = flows(FABRIC, blocked, 1000)
    assert {flow.scope for flow in found} == {SAME_LEAF, ACROSS}
    assert SAME_UNIT in {flow.scope for flow in flows(FABRIC, FABRIC, 1000)}

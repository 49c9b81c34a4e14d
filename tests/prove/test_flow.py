"""Who calls whom while a change is rolled."""

from netkit.prove.flow import ACROSS, SAME_LEAF, SAME_UNIT, SCOPES, flows
from netkit.prove.part import cut
from tests import intents

FABRIC = intents.fabric(intents.BASE)


def test_every_scope_is_called_and_no_more_often_than_allowed() -> None:
    found = flows(FABRIC, FABRIC, most_per_scope=3)
    assert [flow.scope for flow in found] == [scope for scope in SCOPES for _ in range(3)]
    assert len({flow.call.name for flow in found}) == 9


def test_flows_are_of_nics_that_were_there_before() -> None:
    before = cut(FABRIC, {*FABRIC.names} - {"gpu06"})
    hosts = {flow.call.name.partition(":")[0] for flow in flows(before, FABRIC, 1000)}
    assert hosts == {"gpu01", "gpu02", "gpu05"}


def test_nics_whose_address_changes_are_not_called() -> None:
    moved = intents.fabric(intents.values({"pools": {"loopbacks": "10.255.0.0/24", "hosts": "10.64.0.0/16"}}))
    assert flows(FABRIC, moved) == ()


def test_rails_that_are_kept_apart_do_not_call_each_other() -> None:
    blocked = intents.fabric(intents.values({"cross_rail": "blocked"}))
    found = flows(FABRIC, blocked, 1000)
    assert {flow.scope for flow in found} == {SAME_LEAF, ACROSS}
    assert SAME_UNIT in {flow.scope for flow in flows(FABRIC, FABRIC, 1000)}

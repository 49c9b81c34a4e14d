"""Which hosts probe each other: few pairs, every host, all distances, and a constant number per host."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from netkit import design
from netkit.design import Fabric
from netkit.design.expectation import expectations
from netkit.design.layout import NIC_DISTANCES, nic_distance
from netkit.hardware import Catalog
from netkit.intent import Intent
from netkit.observe.probing import far_ends, probe_pairs, probe_sizes
from tests import intents, random_intents
from tests.lanes import examples


def built(**changes: Any) -> Fabric:
    values = intents.on_platform("nvue", "5.13.0", {"units": [{"unit": 1, "hosts": 3}], **changes})
    return design.build(Intent.model_validate(values), Catalog())


def two_units(hosts: int = 3) -> Fabric:
    units = [{"unit": unit, "hosts": hosts} for unit in (1, 2)]
    return built(units=units, ceilings={"units": 2, "hosts_per_unit": 8, "spines": 4})


def scopes(fabric: Fabric) -> Counter[str]:
    return Counter(
        str(nic_distance(fabric, near, far)) for host in fabric.hosts for near, far in probe_pairs(fabric, host)
    )


def test_each_nic_probes_its_leaf_the_next_rail_and_the_next_unit() -> None:
    fabric = two_units()
    nics = sum(len(host.nics) for host in fabric.hosts)
    assert scopes(fabric) == {"same leaf": nics, "same unit": nics, "across spines": nics}


def test_all_are_probed_equally_and_none_probes_itself() -> None:
    fabric = two_units()
    owner = {nic.address: host.name for host in fabric.hosts for nic in host.nics}
    pairs = [pair for host in fabric.hosts for pair in probe_pairs(fabric, host)]
    assert all(owner[near.address] != owner[far.address] for near, far in pairs)
    assert set(Counter(far.address for _, far in pairs).values()) == {3}


@pytest.mark.parametrize("hosts", [2, 5, 8])
def test_probes_of_a_host_do_not_grow_with_the_fabric(hosts: int) -> None:
    fabric = two_units(hosts)
    assert {len(probe_pairs(fabric, host)) for host in fabric.hosts} == {3 * len(fabric.hosts[0].nics)}


def test_isolated_rails_are_not_probed_across() -> None:
    assert scopes(built(cross_rail="blocked")) == {"same leaf": 6}


def test_a_single_host_has_no_probe() -> None:
    fabric = built(units=[{"unit": 1, "hosts": 1}])
    assert [probe_pairs(fabric, host) for host in fabric.hosts] == [()]


def test_sizes_range_from_the_smallest_to_the_full_mtu() -> None:
    fabric = built()
    assert probe_sizes(fabric.hosts[0]) == (64, 1500, 9000)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(random_intents.intents())
def test_in_any_fabric_there_is_a_path_for_each_probe(values: random_intents.Values) -> None:
    fabric = design.build(Intent.model_validate(values), Catalog())
    reached = expectations(fabric)
    for host in fabric.hosts:
        pairs = probe_pairs(fabric, host)
        assert len(pairs) <= len(NIC_DISTANCES) * len(host.nics)
        assert {far.address for _, far in pairs} & {nic.address for nic in host.nics} == set()
        for near, far in pairs:
            one, other = fabric.switch(near.leaf), fabric.switch(far.leaf)
            assert one is other or other.leaf_prefix in reached[one.name].widths
            assert near.rail == far.rail or fabric.cross_rail == "routed"


@pytest.mark.parametrize(
    "fabric",
    [two_units(), built(cross_rail="blocked"), built(units=[{"unit": 1, "hosts": 1}])],
    ids=["two units", "rails apart", "one host"],
)
def test_the_far_ends_are_the_first_of_all_other_nics(fabric: Fabric) -> None:
    for host in fabric.hosts:
        others = [far for other in fabric.hosts for far in other.nics if other is not host]
        for nic in host.nics:
            same_leaf = [far for far in others if far.leaf == nic.leaf]
            same_rail = [far for far in others if far.rail == nic.rail and far.leaf != nic.leaf]
            rails = [rail.number for rail in fabric.rails if rail.number != nic.rail]
            across = [[far for far in others if far.rail == rail] for rail in rails]
            wanted = [far for found in (same_leaf, same_rail, *across) for far in found[:1]]
            assert far_ends(fabric, host, nic) == tuple(dict.fromkeys(wanted))

"""The part of a fabric that is booted: complete in itself, of the same devices, and with the change in it."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from netkit.design import Fabric
from netkit.design.expectation import expectations
from netkit.design.select import Device
from netkit.errors import LabError
from netkit.project.project import Project
from netkit.prove.proof import LabPart, choose, cut
from netkit.render import Engine, render
from tests import intents
from tests.command import ROOT
from tests.lanes import examples
from tests.random_intents import Values
from tests.random_intents import intents as random_intents

MANY = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@pytest.fixture(scope="module")
def superpod() -> Fabric:
    return Project.open(Path(ROOT, "inventory/superpod")).fabric


def roles(part: LabPart) -> dict[str, int]:
    found = {role: len(part.fabric.tier(role)) for role in ("leaf", "spine")}
    return {**found, "host": len(part.fabric.hosts)}


def test_a_small_fabric_is_booted_completely() -> None:
    fabric = intents.fabric(intents.BASE)
    assert choose(fabric, [["leaf01"]]) == LabPart(fabric)


def test_of_a_superpod_a_leaf_is_booted_with_all_its_spines_and_a_witness(superpod: Fabric) -> None:
    part = choose(superpod, [["leaf-u03-r2"]])
    assert len(part.fabric.names) <= 40
    assert roles(part) == {"leaf": 3, "spine": 32, "host": 4}
    assert part.fabric.device("leaf-u03-r2") is not None
    assert [leaf.unit for leaf in part.fabric.tier("leaf")] == [1, 3, 3]
    assert part.witnesses == ("leaf-u01-r2",)
    assert part.unseen == ()
    assert len(part.left_out) + len(part.fabric.names) == len(superpod.names)


def test_groups_without_room_are_reported(superpod: Fabric) -> None:
    groups = [[f"leaf-u{unit:02}-r{rail}"] for unit in (1, 2, 3) for rail in range(8)]
    part = choose(superpod, groups)
    assert len(part.fabric.names) <= 40
    assert 0 < len(part.unseen) < 24
    assert not {name for group in part.unseen for name in group} & set(part.fabric.names)


def test_a_part_that_is_too_large_is_refused_with_its_size(superpod: Fabric) -> None:
    with pytest.raises(LabError, match="--prove-devices 35"):
        choose(superpod, [["spine01"]], 20)


def test_changed_hosts_are_selected(superpod: Fabric) -> None:
    part = choose(superpod, [["gpu-u02-17"]])
    assert part.fabric.device("gpu-u02-17") is not None


@MANY
@given(random_intents(), st.data())
def test_a_part_is_a_fabric_of_the_same_devices(values: Values, data: st.DataObject) -> None:
    fabric = intents.fabric(values)
    assume(len(fabric.names) > 4 and fabric.hosts)
    changed = data.draw(st.lists(st.sampled_from(fabric.names), min_size=1, max_size=3, unique=True))
    most = data.draw(st.integers(1, len(fabric.names) - 1))
    try:
        part = choose(fabric, [[name] for name in changed], most)
    except LabError:
        return
    names = set(part.fabric.names)
    assert len(names) <= most
    assert names | set(part.left_out) == set(fabric.names)
    assert cut(part.fabric, names) == part.fabric
    whole, found = expectations(fabric), expectations(part.fabric)
    for leaf in part.fabric.tier("leaf"):
        assert leaf.asn == fabric.switch(leaf.name).asn
        assert [port for port in leaf.ports if port.role == "up"] == [
            port for port in fabric.switch(leaf.name).ports if port.role == "up"
        ]
        assert found[leaf.name].widths == {
            prefix: whole[leaf.name].widths[prefix] for prefix in found[leaf.name].widths
        }
    for host in part.fabric.hosts:
        assert host.nics
        assert set(host.nics) <= set(next(one for one in fabric.hosts if one.name == host.name).nics)


@pytest.mark.parametrize("name", ["reference", "mixed"])
def test_a_slice_is_rendered_like_the_whole_except_for_what_was_left_out(name: str) -> None:
    """A leaf whose neighbors are all included has the configuration of the whole fabric."""
    project = Project.open(Path(ROOT, "inventory", name))
    leaf = project.fabric.tier("leaf")[0]
    hosts = [port.peer for port in leaf.host_ports]
    kept = {leaf.name, *(spine.name for spine in project.fabric.tier("spine")), *hosts}
    part = cut(project.fabric, kept)
    engine = Engine(project.template_folders)
    (whole,) = render(project.fabric, [leaf], engine)
    (found,) = render(part, [part.switch(leaf.name)], engine)
    assert found.files == whole.files
    devices: list[Device] = [*part.switches, *part.hosts]
    rest = [one for one in devices if one.name != leaf.name]
    assert {one.device for one in render(part, rest, engine) if one.files} == {one.name for one in rest}

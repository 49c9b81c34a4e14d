"""Which devices change together, on small fabrics and on arbitrary ones."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.deploy import Options, Wave, waves
from netkit.deploy.wave import MOST_HOSTS
from netkit.design import Fabric
from netkit.design.fabric import Switch
from netkit.plan import Blast, DevicePlan, Plan
from netkit.plan.model import Step
from netkit.platforms.change import Change, Risk, Strategy
from tests import intents, random_intents
from tests.lanes import examples

SMALL = intents.fabric(intents.values())
FABRICS = random_intents.intents().map(intents.fabric)
CHANGE = Change(("x",), "1", "2")


def planned(fabric: Fabric, names: tuple[str, ...], blasts: Mapping[str, Blast] | None = None) -> Plan:
    """A plan with changes for some devices."""
    devices = tuple(device(fabric, name, (blasts or {}).get(name, Blast())) for name in names)
    return Plan(fabric.name, devices, (), (), "0")


def device(fabric: Fabric, name: str, blast: Blast) -> DevicePlan:
    found = fabric.device(name)
    role = found.role if isinstance(found, Switch) else "host"
    return DevicePlan(name, role, "nvue", "1", (CHANGE,), Risk.LOW, Strategy("patch"), blast, "a", "b")


def names(found: tuple[Wave, ...]) -> list[tuple[str, ...]]:
    return [wave.devices for wave in found]


def test_one_device_goes_first_then_those_without_a_common_dependent() -> None:
    switches = tuple(switch.name for switch in SMALL.switches)
    found = waves(planned(SMALL, switches), SMALL, Options())
    assert names(found) == [("leaf01",), ("leaf02", "leaf03"), ("leaf04",), ("spine01",), ("spine02",)]
    assert [wave.is_canary for wave in found] == [True, False, False, False, False]
    assert [wave.number for wave in found] == [1, 2, 3, 4, 5]


def test_the_canary_is_the_device_of_least_impact() -> None:
    touched = {
        "leaf01": Blast(sessions=("a", "b")),
        "leaf02": Blast(sessions=("a",), gpus=("gpu01:rail0",), is_disruptive=True),
        "spine01": Blast(sessions=("a",)),
        "spine02": Blast(sessions=("a", "b", "c")),
    }
    found = waves(planned(SMALL, tuple(touched), touched), SMALL, Options())
    assert found[0].devices == ("spine01",)


def test_a_host_is_never_the_canary_however_low_its_risk() -> None:
    harmed = {"leaf01": Blast(sessions=("a",), hosts=("gpu01",), is_disruptive=True)}
    found = waves(planned(SMALL, ("gpu01", "leaf01", "gpu02"), harmed), SMALL, Options())
    assert names(found) == [("leaf01",), ("gpu01", "gpu02")]
    assert names(waves(planned(SMALL, ("gpu02", "gpu01")), SMALL, Options()))[0] == ("gpu01",)


def test_without_a_canary_a_wave_has_as_many_devices_as_allowed() -> None:
    switches = tuple(switch.name for switch in SMALL.switches)
    found = waves(planned(SMALL, switches), SMALL, Options(has_canary=False, is_together=True, parallel=4))
    assert names(found) == [switches[:4], switches[4:]]
    assert not any(wave.is_canary for wave in found)


@pytest.mark.parametrize(
    ("steps", "without_canary"),
    [
        ((("gpu01",), ("gpu02", "gpu03")), [("gpu01", "gpu02", "gpu03")]),
        ((("leaf01",), ("leaf03",), ("spine01",)), [("leaf01", "leaf03"), ("spine01",)]),
        ((("leaf01",), ("leaf02",)), [("leaf01",), ("leaf02",)]),  # hosts depend on both
        ((("leaf01",), ("spine01",)), [("leaf01",), ("spine01",)]),
    ],
)
def test_without_a_canary_the_first_step_joins_the_second_where_nothing_depends_on_both(
    steps: tuple[tuple[str, ...], ...], without_canary: list[tuple[str, ...]]
) -> None:
    plan = planned(SMALL, tuple(name for step in steps for name in step))
    ordered = replace(plan, steps=tuple(Step(number, step) for number, step in enumerate(steps, 1)))
    assert names(waves(ordered, SMALL, Options())) == list(steps)
    assert names(waves(ordered, SMALL, Options(has_canary=False))) == without_canary


def test_a_limit_excludes_the_others() -> None:
    switches = tuple(switch.name for switch in SMALL.switches)
    found = waves(planned(SMALL, switches), SMALL, Options(limit=("spine02", "leaf03")))
    assert names(found) == [("leaf03",), ("spine02",)]


def test_a_leaf_waits_for_another_that_a_removed_host_depends_on() -> None:
    old = Blast(hosts=("gpu99",))
    found = waves(
        planned(SMALL, ("leaf01", "leaf03"), {"leaf01": old, "leaf03": old}), SMALL, Options(has_canary=False)
    )
    assert names(found) == [("leaf01",), ("leaf03",)]


def test_an_empty_plan_has_no_wave() -> None:
    assert waves(planned(SMALL, ()), SMALL, Options()) == ()


@settings(max_examples=examples(60))
@given(fabric=FABRICS, parallel=st.integers(1, 40), has_canary=st.booleans(), data=st.data())
def test_no_host_ever_depends_on_two_devices_of_a_wave(
    fabric: Fabric, parallel: int, data: st.DataObject, *, has_canary: bool
) -> None:
    chosen = tuple(data.draw(st.lists(st.sampled_from(fabric.names), unique=True, min_size=1, max_size=60)))
    found = waves(planned(fabric, chosen), fabric, Options(parallel=parallel, has_canary=has_canary))
    assert sorted(name for wave in found for name in wave.devices) == sorted(chosen)
    assert [wave.number for wave in found] == list(range(1, len(found) + 1))
    for wave in found:
        assert 1 <= len(wave.devices) <= parallel
        assert len(wave.devices) == 1 or not wave.is_canary
        for one, other in combinations(wave.devices, 2):
            assert not shared(fabric, one, other), (one, other)


@settings(max_examples=examples(60))
@given(fabric=FABRICS, parallel=st.integers(1, 40), has_canary=st.booleans(), data=st.data())
def test_even_together_hosts_wait_for_all_switches(
    fabric: Fabric, parallel: int, data: st.DataObject, *, has_canary: bool
) -> None:
    chosen = tuple(data.draw(st.lists(st.sampled_from(fabric.names), unique=True, min_size=1, max_size=60)))
    options = Options(parallel=parallel, has_canary=has_canary, is_together=True)
    found = waves(planned(fabric, chosen), fabric, options)
    assert sorted(name for wave in found for name in wave.devices) == sorted(chosen)
    kinds = [{isinstance(fabric.device(name), Switch) for name in wave.devices} for wave in found]
    assert kinds == sorted(kinds, key=lambda kind: True not in kind)
    assert all(len(kind) == 1 for kind in kinds)
    for wave, kind in zip(found, kinds, strict=True):
        assert 1 <= len(wave.devices) <= (parallel if True in kind else min(parallel, MOST_HOSTS))


def shared(fabric: Fabric, one: str, other: str) -> set[str]:
    """The hosts that two devices of a wave would both affect."""
    first, second = fabric.device(one), fabric.device(other)
    if not isinstance(first, Switch) or not isinstance(second, Switch):
        return {one, other} if isinstance(first, Switch) or isinstance(second, Switch) else set()
    if first.role != second.role:
        return {one, other}
    if first.role == "leaf":
        return {port.peer for port in first.host_ports} & {port.peer for port in second.host_ports}
    return {"the plane"} if first.plane == second.plane else below(first) & below(second)


def below(switch: Switch) -> set[str]:
    return {port.peer for port in switch.ports if port.role == "down"}

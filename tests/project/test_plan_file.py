"""A plan of a file at the deploy: what it says is compared with the plan made now, whose order counts."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from netkit import plan as planning
from netkit.errors import PlanError
from netkit.plan import DevicePlan, Plan, UnreadDevice
from netkit.plan.model import ReachabilityLoss
from netkit.platforms.change import Risk
from netkit.project.planning import as_now
from netkit.report.plan_view import groups
from tests.deploy.scene import Scene, scene


def changing(plan: Plan) -> list[str]:
    return [one.name for one in plan.changed]


def given(found: Scene, whole: Plan) -> None:
    """Have a scene deploy a plan of a file."""
    found.plan, _ = as_now(whole, found.replan(), changing(whole))


EDITED: dict[str, Callable[[DevicePlan], DevicePlan]] = {
    "risk": lambda one: replace(one, risk=Risk.NONE),
    "blast": lambda one: replace(one, blast=replace(one.blast, sessions=("leaf01:swp1–spine09:swp1",))),
    "changes": lambda one: replace(one, changes=(replace(one.changes[0], intended="other"), *one.changes[1:])),
    "way": lambda one: replace(one, way=replace(one.way, reasons=("nothing happens",))),
}


@pytest.mark.parametrize("field", EDITED)
def test_a_file_that_does_not_say_what_a_change_is_is_refused(field: str) -> None:
    with scene("asn") as found:
        name = changing(found.plan)[-1]
        devices = tuple(EDITED[field](one) if one.name == name else one for one in found.plan.devices)
        with pytest.raises(PlanError) as caught:
            given(found, replace(found.plan, devices=devices))
        said = f"{name}: its change is not what the plan says: it was edited, or made by another netkit"
        assert str(caught.value) == f"{said}; make the plan again"


def test_a_file_that_names_fewer_losses_is_refused() -> None:
    with scene("asn") as found:
        now = found.replan()
        assert now.worst
        harmless = tuple(replace(step, during=ReachabilityLoss(), after=ReachabilityLoss()) for step in now.steps)
        with pytest.raises(PlanError, match=r"^this loses what the plan does not say: \d+ pairs of NICs of gpu01"):
            given(found, replace(found.plan, steps=harmless))


@pytest.mark.parametrize("change", ["words", "asn", "timers", "summaries", "numbers"])
def test_the_order_is_that_of_now(change: str) -> None:
    with scene(change) as found:
        now = found.replan()
        plan, whole = as_now(replace(found.plan, steps=now.steps[::-1], bridges=()), now, changing(found.plan))
        assert plan == now
        assert whole == replace(found.plan, steps=now.steps, bridges=now.bridges)


@pytest.mark.parametrize("change", ["timers", "summaries"])
def test_a_device_changed_by_hand_since_is_refused_also_where_it_changes_in_two_stages(change: str) -> None:
    with scene(change) as found:
        whole, name = found.plan, found.plan.bridges[0].device
        device = found.devices[name]
        device.running = {
            file: re.sub(r"(?m)^(\s*)description .*$", r"\1description by hand", text or "")
            for file, text in device.running.items()
        }
        given(found, whole)
        outcome = found.apply()
        one = outcome.device(name)
        assert one is not None
        assert one.result == "refused"
        assert one.reasons[0].startswith(f"{name}: changed since the plan was made: interface ")
        assert sum(one.writes for one in found.devices.values()) == 0


def test_a_device_that_runs_what_is_intended_by_now_is_unchanged() -> None:
    with scene("words") as found:
        whole, name = found.plan, changing(found.plan)[0]
        found.devices[name].running = dict(found.intended[name])
        given(found, whole)
        outcome = found.apply()
        assert outcome.exit_code == 0
        one = outcome.device(name)
        assert one is not None
        assert one.result == "unchanged"


def test_a_device_that_does_not_answer_now_is_unreachable() -> None:
    with scene("words") as found:
        name, *others = changing(found.plan)
        now = found.replan()
        there = tuple(one for one in now.devices if one.name != name)
        steps = tuple(replace(step, devices=tuple(one for one in step.devices if one != name)) for step in now.steps)
        now = replace(now, devices=there, steps=steps, unreachable=(UnreadDevice(name, "no answer"),))
        plan, whole = as_now(found.plan, now, [name, *others])
        assert changing(plan) == others
        assert plan.unreachable == now.unreachable
        assert {one for group in groups(plan) for one in group.names} == {*others}
        assert [one.name for one in whole.devices] == [one.name for one in found.plan.devices]


def test_without_any_answer_the_file_stays_as_it_is() -> None:
    with scene("words") as found:
        now = replace(found.plan, devices=())
        assert as_now(found.plan, now, changing(found.plan)) == (found.plan, found.plan)


def test_a_part_keeps_the_other_devices_as_the_file_has_them() -> None:
    with scene("words") as found:
        names = changing(found.plan)[:1]
        now = found.replan()
        part = replace(now, devices=tuple(one for one in now.devices if one.name in names))
        assert as_now(found.plan, part, names)[0].devices == found.plan.devices
        assert planning.write(as_now(found.plan, part, names)[1])

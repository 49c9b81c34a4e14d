from netkit.facts import Facts
from netkit.plan import Running, make
from netkit.plan.model import Plan
from netkit.render import Engine, render
from tests.checks.judging import said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()


def planned(edit: str) -> Plan:
    """The plan for a leaf that runs what is intended except for one edit."""
    (device,) = render(BUILT, [BUILT.switch("leaf01")], Engine())
    running = {name: text.replace("gpu01:rail0", edit) for name, text in device.files.items()}
    return make(BUILT, {"leaf01": Running(running, "5.13.0")}, {"leaf01": device.files})


def test_a_difference_from_the_intent_is_named() -> None:
    found = scene(BUILT, observation("leaf01", Facts()), plan=planned("spare"))
    assert said(found, "drift") == [
        ("fail", "leaf01", "", "does not run what is intended: interface swp1s0 description")
    ]
    assert said(scene(BUILT, observation("leaf01", Facts()), plan=planned("gpu01:rail0")), "drift") == []


def test_unread_configurations_are_not_judged() -> None:
    assert skipped(scene(BUILT, observation("leaf01", Facts())), "drift") == [
        ("", "", "running configurations were not read")
    ]

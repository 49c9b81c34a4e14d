"""The text of plans for confirmation: typical changes on every platform, as text and as Markdown."""

from dataclasses import replace

import pytest

from netkit import plan
from netkit.plan import Plan, Running, Unreachable
from netkit.platforms.change import Change, Risk
from netkit.report.plan_text import markdown, text
from tests.conftest import Golden
from tests.plan.scenes import SCENES, VERSIONS, Staged, staged

CASES = [(platform, name) for platform in VERSIONS for name in SCENES if (platform, name) != ("frr", "ecn-threshold")]


def planned(scene: Staged) -> Plan:
    return plan.make(scene.fabric, scene.running, scene.intended)


@pytest.mark.parametrize(("platform", "name"), CASES)
def test_a_change_equals_its_golden_file(golden: Golden, platform: str, name: str) -> None:
    found = planned(staged(platform, name))
    assert found.changed
    golden(f"plan/{platform}/{name}.txt", text(found))
    golden(f"plan/{platform}/{name}.md", markdown(found))


def test_frr_has_no_lossless_threshold_to_change() -> None:
    found = planned(staged("frr", "ecn-threshold"))
    assert found.changed == ()
    assert text(found) == "small: nothing to change on 10 devices\n"


def test_unread_devices_come_first(golden: Golden) -> None:
    scene = staged("nvue", "description")
    running: dict[str, Running | Unreachable] = dict(scene.running)
    running["spine02"] = Unreachable("no answer within 5 s\x1b[2J")
    running["gpu01"] = Running({"netplan.yaml": None})
    running["spine01"] = replace(scene.running["spine01"], version="5.15.0")
    found = plan.make(scene.fabric, running, scene.intended)
    golden("plan/partly-read.txt", text(found))
    golden("plan/partly-read.md", markdown(found))


def test_text_from_a_device_cannot_move_the_cursor_or_end_a_block() -> None:
    scene = staged("nvue", "description")
    evil = "```\n# x\x1b[2J<script>"
    change = Change(("interface", "swp1s0", evil), None, evil, Risk.NONE, evil)
    made = planned(scene)
    bad = replace(
        made,
        devices=tuple(
            replace(one, changes=(change,), warnings=(evil,)) if one.changes else one for one in made.devices
        ),
    )
    for shown in (text(bad), markdown(bad)):
        assert "\x1b" not in shown
        assert "\n# x" not in shown
    lines = markdown(bad).splitlines()
    assert [line for line in lines if line.startswith("```")] == ["```diff", "```"]
    assert "<script>" not in "\n".join(line for line in lines if not line.startswith("+"))


def test_long_lists_say_how_much_they_leave_out() -> None:
    scene = staged("nvue", "breakout")
    shown = text(planned(scene), most_lines=5)
    assert "    … and " in shown
    assert shown.count("\n  + ") + shown.count("\n  - ") + shown.count("\n  ~ ") == 5 * 2


def test_a_refusal_is_labelled() -> None:
    scene = staged("sonic", "description")
    files = {
        name: str(text).replace("Mellanox-SN5600-O128", "Other") for name, text in scene.intended["leaf01"].items()
    }
    made = plan.make(scene.fabric, {"leaf01": Running(files)}, {"leaf01": scene.intended["leaf01"]})
    line = "cannot be done: hwsku: the switch is installed with another one; reinstall it"
    assert f"  {line}\n" in text(made)
    assert f"- {line}\n" in markdown(made)

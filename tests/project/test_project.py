"""The Python API gives the results of the command line, and refuses the same."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from netkit import Project
from netkit import plan as planning
from netkit.deploy import DeviceResult, Options
from netkit.deploy.hook import HookError
from netkit.errors import AccessError, DeployError, NetkitError, PlanError, UsageError
from netkit.plan.model import Partial, ReachabilityLoss
from netkit.project import deploying
from netkit.project.deploying import Deploying
from netkit.project.planning import Planned
from tests.cli.checked import checked
from tests.cli.scene import Scene, run

NAMES = ("leaf01", "leaf02", "spine01", "spine02", "gpu01", "gpu02")


def changing(scene: Scene, policy: object = None) -> tuple[Project, Planned]:
    """A fabric of unreachable devices, and a plan that changes one description of it."""
    access = {
        "timeout_s": 5,
        "addresses": dict.fromkeys(NAMES, "127.0.0.1"),
        "platforms": {platform: {"port": 1} for platform in ("nvue", "linux")},
    }
    (scene.fabric / "access.yaml").write_text(yaml.safe_dump(access), encoding="utf-8")
    if policy is not None:
        (scene.fabric / "deploy.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    project = Project.open(scene.fabric)
    return project, project.plan(running=scene.saved)


def test_a_plan_is_that_of_the_command_line(scene: Scene) -> None:
    _, planned = changing(scene)
    shown = run("plan", "--fabric", scene.fabric, "--running", scene.saved, "--format", "json")
    assert planning.write(planned.plan) == shown.stdout
    assert planned.intended.keys() == {*NAMES}


def test_rendered_files_are_those_of_the_command_line(scene: Scene) -> None:
    files = Project.open(scene.fabric).render("leaf01")["leaf01"]
    assert {name: (scene.saved / "leaf01" / name).read_text(encoding="utf-8") for name in files} == dict(files)


def test_an_access_list_that_locks_netkit_out_is_refused_before_any_change(scene: Scene) -> None:
    values = yaml.safe_load((scene.fabric / "fabric.yaml").read_text(encoding="utf-8"))
    (scene.fabric / "jumps").write_text("Host *\n  ProxyJump 198.51.100.7\n", encoding="utf-8")
    (scene.fabric / "access.yaml").write_text("ssh_config: jumps\n", encoding="utf-8")

    def refuse(*allow: str) -> None:
        values["management"]["allow"] = list(allow)
        (scene.fabric / "fabric.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        project = Project.open(scene.fabric)
        planned = project.plan(running=scene.saved)
        Deploying.of(project).refuse(planned.plan, planned.intended, Options(is_taking_over=True))

    said = (
        "leaf01, leaf02, spine01, spine02: management.allow lacks 198.51.100.7, the address that netkit connects from"
    )
    with pytest.raises(DeployError, match=said):
        refuse("192.0.2.0/24")
    refuse("192.0.2.0/24", "198.51.100.0/24")
    refuse()


def test_a_snapshot_is_judged_as_by_the_command_line(tmp_path: Path) -> None:
    fabric, file = checked(tmp_path)
    judged = Project.open(fabric).check(["bgp"], snapshot=file)
    done = run("check", "bgp", "--fabric", fabric, "--from", file, "--format", "json")
    assert (judged.exit_code, judged.judgement.examined) == (done.returncode, json.loads(done.stdout)["examined"])
    assert judged.exit_code != 0


@pytest.mark.parametrize(
    ("policy", "reason", "error", "said"),
    [
        ({"reason": "required"}, "", UsageError, "requires a reason"),
        ({"approval": {"required": "always"}}, "a test", PlanError, "requires a second person's approval"),
        ({"hook": {"command": ["false"]}}, "a test", HookError, "hook"),
    ],
)
def test_the_policy_of_the_fabric_applies_before_any_change(
    scene: Scene, policy: object, reason: str, error: type[NetkitError], said: str
) -> None:
    project, planned = changing(scene, policy)
    with pytest.raises(error, match=said):
        project.deploy(planned, reason=reason)
    assert list(project.history()) == []
    with pytest.raises(UsageError, match="no run"):
        project.rollback("last")


def test_a_part_of_a_plan_that_leaves_the_fabric_worse_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.edit("leaf02", "startup.yaml", "gpu01:rail1", "spare")
    project, planned = changing(scene)
    assert [one.name for one in planned.plan.changed] == ["leaf01", "leaf02"]

    def as_now(project: Project, limit: str, _devices: object) -> Planned:
        assert limit == "leaf02"
        part = project.plan(limit, running=scene.saved)
        worse = Partial(ReachabilityLoss(1, ("gpu01",), ("rail1",)), ("leaf01",))
        return replace(part, plan=replace(part.plan, partial=worse))

    monkeypatch.setattr(deploying, "from_devices", as_now)
    with pytest.raises(DeployError, match=r"worse than it was: .*; change these with it: leaf01"):
        project.deploy(planned, Options(limit=("leaf02",)))


def test_an_incomplete_plan_is_refused_and_never_reported_as_done(scene: Scene) -> None:
    project, planned = changing(scene)
    (scene.saved / "leaf02" / "startup.yaml").unlink()
    part = project.plan(running=scene.saved)
    with pytest.raises(AccessError, match="leaf02: could not be read for the plan"):
        project.deploy(part)
    unread = replace(part.plan, devices=tuple(one for one in part.plan.devices if not one.changes))
    outcome = project.deploy(replace(planned, plan=unread))
    missed = outcome.device("leaf02")
    assert missed is not None
    assert (missed.result, outcome.exit_code) == (DeviceResult.UNREACHABLE, 4)


def test_a_project_of_a_lab_reaches_nothing_else(scene: Scene) -> None:
    changing(scene)
    project = Project.open(scene.fabric, lab=".")
    assert project.lab == "small"
    for ask in (project.plan, project.snapshot, lambda: project.connect("leaf01")):
        with pytest.raises(NetkitError, match="the lab small does not run"):
            ask()

"""First contact with a device: unexplained configuration is listed, and kept without --take-over."""

import subprocess
from pathlib import Path

import pytest
import yaml

from netkit import plan as planning
from netkit.deploy import ConfigState, DeviceOutcome, DeviceResult, Journal, Options, Outcome
from netkit.deploy.journal import Orders
from netkit.deploy.resume import deployed
from netkit.plan import Plan
from netkit.plan.model import approval
from netkit.project.runs import runs_folder
from tests.cli.scene import Scene, run
from tests.cli.test_deploy import nowhere
from tests.command import Done
from tests.conftest import Golden
from tests.intents import BASE

UNREACHED = 4
FABRIC = str(BASE["name"])
HAND = ("router", "policy", "route-map", "HAND")


def planted(scene: Scene) -> None:
    """Add a route map to leaf01 by hand."""
    file = scene.saved / "leaf01" / "startup.yaml"
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    tree = next(item["set"] for item in document if "set" in item)
    tree["router"]["policy"]["route-map"]["HAND"] = {"rule": {"7": {"action": {"deny": {}}}}}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")


def plan(scene: Scene, *options: str | Path) -> Done:
    return run("plan", "--fabric", scene.fabric, "--running", scene.saved, *options)


def made(scene: Scene, *options: str) -> Plan:
    return planning.read(plan(scene, "--format", "json", *options).stdout)


def unexplained(found: Plan) -> dict[str, tuple[tuple[str, ...], ...]]:
    return {device.name: device.unexplained for device in found.unexplained}


def test_unexplained_configuration_is_listed_and_needs_take_over(scene: Scene, tmp_path: Path, golden: Golden) -> None:
    planted(scene)
    nowhere(scene)
    assert unexplained(made(scene)) == {"leaf01": (HAND,)}
    for suffix, output in (("txt", "text"), ("md", "markdown")):
        golden(f"cli/plan-unexplained.{suffix}", plan(scene, "--format", output).stdout)
    golden("cli/plan-take-over.txt", plan(scene, "--take-over").stdout)

    file = tmp_path / "plan.json"
    assert plan(scene, "-o", file).returncode == 0
    refused = run("deploy", "--fabric", scene.fabric, file, "--yes")
    assert refused.returncode == 3
    golden("cli/deploy-unexplained.txt", refused.stderr)
    other = run("deploy", "--fabric", scene.fabric, file, "--yes", "--limit", "leaf02")
    assert other.returncode == 0  # by the plan it has nothing to change
    assert run("deploy", "--fabric", scene.fabric, file, "--yes", "--take-over").returncode == UNREACHED
    assert plan(scene, "-o", file, "--take-over").returncode == 0
    assert run("deploy", "--fabric", scene.fabric, file, "--yes").returncode == UNREACHED


def test_a_changed_value_and_left_paths_need_no_take_over(scene: Scene) -> None:
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    assert unexplained(made(scene)) == {}
    planted(scene)
    intent = scene.fabric / "fabric.yaml"
    intent.write_text(
        intent.read_text(encoding="utf-8") + "leave: [router / policy / route-map / HAND]\n", encoding="utf-8"
    )
    assert unexplained(made(scene)) == {}


def test_approving_a_plan_does_not_approve_the_take_over(scene: Scene) -> None:
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    assert approval(made(scene)) == approval(made(scene, "--take-over"))
    planted(scene)
    assert approval(made(scene)) != approval(made(scene, "--take-over"))


def test_an_earlier_commit_of_the_intent_explains_what_it_rendered(scene: Scene) -> None:
    """A fresh checkout has no runs, and may still remove what the last intent rendered."""
    values = {**yaml.safe_load((scene.fabric / "fabric.yaml").read_text(encoding="utf-8"))}
    one_host = {**values, "units": [{"unit": 1, "hosts": 1}]}

    def git(*words: str) -> None:
        own = ("-c", "user.name=Alice", "-c", "user.email=alice@example.net")
        subprocess.run(["git", "-C", str(scene.fabric), *own, *words], check=True, capture_output=True)

    def write(intent: object) -> None:
        (scene.fabric / "fabric.yaml").write_text(yaml.safe_dump(intent, sort_keys=False), encoding="utf-8")

    write(one_host)
    lost = unexplained(made(scene))
    assert set(lost) == {"leaf01", "leaf02"}
    write(values)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "two hosts")
    write(one_host)
    assert unexplained(made(scene)) == {}
    git("commit", "-q", "-a", "-m", "one host")
    assert unexplained(made(scene)) == {}
    planted(scene)
    assert unexplained(made(scene)) == {"leaf01": (HAND,)}


def journal(scene: Scene, name: str, state: ConfigState, undoes: str = "") -> None:
    """Record a run that left leaf01 in a state."""
    found = Journal(runs_folder(FABRIC, "") / name)
    orders = Orders(made(scene), {}, None, Options(), undoes)
    found.start(orders)
    result = DeviceResult.DONE if state is ConfigState.INTENDED else DeviceResult.FAILED
    found.finish(Outcome(name, FABRIC, (DeviceOutcome("leaf01", result, state, wave=1),)))


@pytest.mark.parametrize(
    ("runs", "is_known"),
    [
        ([("20260101T000000-0001", ConfigState.INTENDED, "")], True),
        ([("20260101T000000-0001", ConfigState.AS_BEFORE, "")], False),
        ([("20260101T000000-0001", ConfigState.UNKNOWN, "")], False),
        (
            [
                ("20260101T000000-0001", ConfigState.INTENDED, ""),
                ("20260102T000000-0002", ConfigState.INTENDED, "20260101T000000-0001"),
            ],
            False,
        ),
        (
            [
                ("20260101T000000-0001", ConfigState.INTENDED, ""),
                ("20260102T000000-0002", ConfigState.INTENDED, ""),
                ("20260103T000000-0003", ConfigState.INTENDED, "20260102T000000-0002"),
            ],
            True,
        ),
    ],
)
def test_a_deploy_that_was_not_rolled_back_counts_as_contact(
    scene: Scene, runs: list[tuple[str, ConfigState, str]], *, is_known: bool
) -> None:
    for name, state, undoes in runs:
        journal(scene, name, state, undoes)
    planted(scene)
    assert deployed(runs_folder(FABRIC, ""), {"leaf01", "leaf02"}) == ({"leaf01"} if is_known else set())
    assert unexplained(made(scene)) == ({} if is_known else {"leaf01": (HAND,)})


def test_a_plan_counts_unexplained_and_left_paths(scene: Scene, golden: Golden) -> None:
    planted(scene)
    scene.edit(
        "leaf02", "startup.yaml", "    interface:\n", "    acl:\n      HAND:\n        type: ipv4\n    interface:\n"
    )
    intent = scene.fabric / "fabric.yaml"
    leave = "leave: [router / policy / route-map / HAND]\n"
    intent.write_text(intent.read_text(encoding="utf-8") + leave, encoding="utf-8")
    assert {device.name: device.unowned for device in made(scene).devices if device.unowned} == {"leaf02": 1}
    for suffix, output in (("txt", "text"), ("md", "markdown")):
        golden(f"cli/plan-unowned.{suffix}", plan(scene, "--format", output).stdout)

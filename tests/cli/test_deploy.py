"""`netkit deploy`, `rollback` and `history` without a network: what they refuse before any device is touched."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from netkit import plan as planning
from netkit.deploy import ConfigState, DeviceOutcome, DeviceResult, Journal, Options, Outcome, Phase
from netkit.deploy.journal import Orders
from netkit.plan.model import approval
from netkit.project.connections import Connections
from netkit.project.planning import Planned, from_files
from netkit.project.project import Project
from netkit.project.runs import runs_folder
from tests.cli.scene import PATIENCE_S, Scene, run
from tests.command import NETKIT, ROOT, Done, assert_refused, environment
from tests.conftest import Golden

NAMES = ("leaf01", "leaf02", "spine01", "spine02", "gpu01", "gpu02")


def nowhere(scene: Scene) -> None:
    """Point every device at an address where nothing listens."""
    access = {
        "user": "nobody",
        "timeout_s": 5,
        "addresses": dict.fromkeys(NAMES, "127.0.0.1"),
        "platforms": {platform: {"port": 1} for platform in ("nvue", "linux")},
    }
    (scene.fabric / "access.yaml").write_text(yaml.safe_dump(access), encoding="utf-8")


def planned(scene: Scene, file: Path) -> Path:
    """Write a plan that changes a description."""
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    done = run("plan", "--fabric", scene.fabric, "--running", scene.saved, "-o", file)
    assert done.returncode == 0, done.stderr
    return file


def deploy(scene: Scene, *options: str | Path) -> Done:
    return run("deploy", "--fabric", scene.fabric, *options)


def test_usage_errors_are_reported(scene: Scene, tmp_path: Path, golden: Golden) -> None:
    nowhere(scene)
    plan = planned(scene, tmp_path / "plan.json")
    edited = tmp_path / "edited.json"
    edited.write_text(plan.read_text(encoding="utf-8").replace("spare", "other"), encoding="utf-8")
    text = tmp_path / "plan.txt"
    text.write_text("leaf01: risk none\n", encoding="utf-8")
    said = []
    for options in (
        ("deploy", plan, "--format", "html"),
        ("deploy", tmp_path / "nowhere.json"),
        ("deploy", edited),
        ("deploy", text),
        ("deploy", plan, "--limit", "role=core"),
        ("deploy", plan, "--max-fail", "-1"),
        ("deploy", plan, "--resume"),
        ("deploy", "--resume"),
        ("deploy", "--resume=20200101"),
        ("deploy", "--resume", "20200101"),
        ("deploy", "--lab"),
        ("rollback", "last"),
        ("rollback", "20200101"),
        ("history", "last"),
        ("trust", "--lab"),
        ("inventory", "--lab=none"),
    ):
        done = run(*options, "--fabric", scene.fabric)
        assert_refused(done)
        said.append(f"$ netkit {' '.join(map(str, options))}\n{done.stderr}".replace(str(tmp_path), "DIR"))
    golden("cli/deploy-refused.txt", "".join(said))


def test_nothing_is_deployed_without_confirmation(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    done = deploy(scene, planned(scene, tmp_path / "plan.json"))
    assert done.returncode == 3
    assert done.stderr == "error: Deploy to 1 device of small? There is no terminal to ask on; use --yes\n"
    assert "small: 1 of 6 devices changes" in done.stdout
    assert not (tmp_path / "state").exists()


def test_a_change_that_takes_the_only_path_of_hosts_is_refused_before_confirmation(
    scene: Scene, tmp_path: Path
) -> None:
    nowhere(scene)
    scene.edit("leaf01", "startup.yaml", "mtu: 9216", "mtu: 9000")
    plan = planned(scene, tmp_path / "plan.json")
    done = deploy(scene, plan)
    assert done.returncode == 3
    assert done.stderr.startswith("error: leaf01: disruptive (port), no other path for hosts gpu01")
    assert "deploy with --disruptive" in done.stderr
    assert deploy(scene, plan, "--disruptive").stderr.endswith("There is no terminal to ask on; use --yes\n")


def test_only_the_limited_part_of_a_plan_is_shown(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    scene.edit("leaf02", "startup.yaml", "gpu01:rail1", "spare")
    plan = planned(scene, tmp_path / "plan.json")
    assert "small: 2 of 6 devices change" in deploy(scene, plan).stdout
    shown = deploy(scene, plan, "--limit", "leaf02").stdout
    assert shown.startswith("small: 1 of 1 device changes, highest risk none\n\nleaf02: risk none, method patch\n")
    assert "leaf01: risk" not in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [("", "it is empty"), (" ", "it is empty"), ("09604adc", "'09604adc' is not the digest of a plan"), ("--yes", "")],
)
def test_an_approval_that_is_not_a_digest_is_refused(scene: Scene, tmp_path: Path, given: str, said: str) -> None:
    """Above all an unset variable, which gives an empty string."""
    nowhere(scene)
    plan = planned(scene, tmp_path / "plan.json")
    done = deploy(scene, plan, "--yes", "--approved", given)
    assert_refused(done, f"{said}; give the 32 digits that netkit plan --against running prints")
    assert_refused(deploy(scene, "--resume", "--approved", given), "give the 32 digits")


def test_only_the_plan_that_was_approved_is_deployed(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    plan = planned(scene, tmp_path / "plan.json")
    digest = approval(planning.read(plan.read_text(encoding="utf-8"), str(plan)))
    assert_refused(deploy(scene, plan, "--yes", "--approved", "0" * 32), f"the plan now is {digest}")
    done = deploy(scene, plan, "--dry-run", "--approved", f" {digest.upper()}\n")
    assert done.stdout.startswith("small: 1 of 6 devices changes")


def saved(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let devices run their saved configurations without a connection."""
    nowhere(scene)

    def read(project: Project, limit: str, _: Connections) -> Planned:
        return Planned(from_files(project, limit, scene.saved), {})

    monkeypatch.setattr("netkit.cli.deploy.from_devices", read)


def ended(plan: Path, result: DeviceResult, exit_code: int, limit: tuple[str, ...] | None = None) -> str:
    """Record a finished run of a plan in the history, and return its name."""
    journal = Journal.new(runs_folder("small", ""))
    orders = planning.read(plan.read_text(encoding="utf-8"), str(plan))
    journal.start(Orders(orders, {}, None, Options(limit=limit)))
    journal.finish(
        Outcome(journal.run, "small", (DeviceOutcome("leaf01", result, ConfigState.INTENDED, (), 1, exit_code),))
    )
    return journal.run


@pytest.mark.parametrize("command", [("deploy", "--resume"), ("rollback", "last")])
def test_what_an_interrupted_run_is_waited_for_is_shown(command: tuple[str, ...], scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    file = planned(scene, tmp_path / "plan.json")
    journal = Journal.new(runs_folder("small", ""))
    plan = planning.read(file.read_text(encoding="utf-8"), str(file))
    intended = {name: {"startup.yaml": ""} for name in (one.name for one in plan.changed)}
    journal.start(Orders(plan, intended, None, Options(revert_s=2, settle_s=1)))
    journal.step(Phase.COMMIT, "leaf01", wave=1, revert_s=2)
    journal.close()
    done = run(*command, "--yes", "--fabric", scene.fabric)
    shown = [line for line in done.stderr.splitlines() if "finding out what it runs; a device" in line]
    assert [line.rpartition(" after ")[0] for line in shown] == [
        "leaf01: finding out what it runs; a device that does not answer is given up"
    ]


def test_deploying_an_approved_plan_again_succeeds_without_changes(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a CI job that runs twice: nothing is left to do, and the run that did it is known."""
    plan = planned(scene, tmp_path / "plan.json")
    digest = approval(planning.read(plan.read_text(encoding="utf-8"), str(plan)))
    scene.edit("leaf01", "startup.yaml", "spare", "gpu01:rail0")
    saved(scene, monkeypatch)
    ask = ("--yes", "--approved", digest)
    assert_refused(deploy(scene, *ask), f"the approved plan is {digest}")
    ended(plan, DeviceResult.FAILED, 1)
    ended(plan, DeviceResult.DONE, 0, limit=("leaf01",))
    assert_refused(deploy(scene, *ask), f"the approved plan is {digest}")
    reported = f"nothing to change; {digest} was deployed by run {ended(plan, DeviceResult.DONE, 0)}\n"
    done = deploy(scene, *ask)
    assert (done.returncode, done.stdout, done.stderr) == (0, reported, "")
    done = deploy(scene, *ask, "--format", "json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", reported)
    assert_refused(deploy(scene, "--yes", "--approved", "0" * 32), f"the approved plan is {'0' * 32}")
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "by hand")
    assert_refused(deploy(scene, *ask), f"the approved plan is {digest}")


def test_a_plan_of_another_fabric_is_refused(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    plan = planned(scene, tmp_path / "plan.json")
    file = scene.fabric / "fabric.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("name: small", "name: other"), encoding="utf-8")
    assert_refused(deploy(scene, plan), "is a plan of fabric small, not of other; make the plan again")


def test_a_deploy_to_unreachable_devices_exits_with_4_and_stays_in_the_history(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    done = deploy(scene, planned(scene, tmp_path / "plan.json"), "--yes", "--format", "json")
    assert done.returncode == 4, done.stderr
    found = {one["device"]: one for one in json.loads(done.stdout)["devices"]}
    assert (found["leaf01"]["result"], found["leaf01"]["state"]) == ("unreachable", "as before")
    listed = json.loads(run("history", "--fabric", scene.fabric, "--format", "json").stdout)
    assert [one["devices"]["leaf01"] for one in listed] == ["unreachable"]
    assert "leaf01" in run("history", "last", "--fabric", scene.fabric).stdout
    assert run("history", "--fabric", scene.fabric, "--lab").stdout == "no run on small yet\n"


def test_a_dry_run_leaves_no_run_behind(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    done = deploy(scene, planned(scene, tmp_path / "plan.json"), "--dry-run")
    assert done.returncode == 4
    assert "dry run of small: 6 devices: 5 unchanged, 1 unreachable\n" in done.stdout
    assert run("history", "--fabric", scene.fabric).stdout == "no run on small yet\n"


def test_trust_reports_devices_that_do_not_answer(scene: Scene) -> None:
    nowhere(scene)
    done = run("trust", "--fabric", scene.fabric)
    assert (done.returncode, done.stdout) == (4, "")
    said = done.stderr.splitlines()
    assert [line.split(": ")[1] for line in said] == list(NAMES)
    assert all("127.0.0.1 port 1" in line for line in said)


def test_inventory_has_the_hosts_and_no_password(scene: Scene) -> None:
    nowhere(scene)
    done = run("inventory", "--fabric", scene.fabric, "--limit", "gpu02")
    assert (done.returncode, done.stderr) == (0, "")
    assert set(yaml.safe_load(done.stdout)["all"]["hosts"]) == {"gpu02"}


def test_unread_devices_are_excluded_or_accepted_before_confirmation(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    shutil.rmtree(scene.saved / "spine01")
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    plan = tmp_path / "plan.json"
    assert run("plan", "--fabric", scene.fabric, "--running", scene.saved, "-o", plan).returncode == 4
    done = deploy(scene, plan, "--yes")
    remedy = "exclude them with --limit, or continue with --max-fail 1"
    assert done.stderr == f"error: spine01: could not be read for the plan, and 0 may fail; {remedy}\n"
    assert done.returncode == 4
    assert not (tmp_path / "state").exists()
    for options in (("--max-fail", "1"), ("--limit", "leaf*")):
        asked = deploy(scene, plan, *options)
        assert asked.stderr.endswith("There is no terminal to ask on; use --yes\n"), asked.stderr


def test_a_deploy_continues_after_its_output_is_closed(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    words = ["deploy", "--fabric", str(scene.fabric), str(planned(scene, tmp_path / "plan.json")), "--yes"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*NETKIT, *words], cwd=ROOT, env=environment(), stdout=writing, stderr=writing, timeout=PATIENCE_S, check=False
    )
    os.close(writing)
    assert done.returncode == 4
    listed = json.loads(run("history", "--fabric", scene.fabric, "--format", "json").stdout)
    assert [one["devices"]["leaf01"] for one in listed] == ["unreachable"]


@pytest.mark.parametrize(("allowed", "begun"), [(0, 1), (1, 2), (2, 3)])
def test_fabrics_are_deployed_until_too_many_have_failed(
    scene: Scene, tmp_path: Path, allowed: int, begun: int
) -> None:
    """Their labs do not run, so each fails before any device is reached."""
    others = [tmp_path / name for name in ("second", "third")]
    for one in others:
        shutil.copytree(scene.fabric, one)
    words = [word for one in others for word in ("--then", one)]
    done = run("deploy", "--fabric", scene.fabric, *words, "--lab", "--yes", "--max-failed-fabrics", str(allowed))
    said = [line.split(":")[0] for line in done.stderr.splitlines() if "not started" not in line]
    assert said == [part for one in [scene.fabric, *others][:begun] for part in (str(one), "error")]
    left = [line for line in done.stderr.splitlines() if "not started" in line]
    assert left == [f"{one}: not started, because {begun} of {begun} failed" for one in others[begun - 1 :]]
    assert done.returncode == 3

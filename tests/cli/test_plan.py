"""`netkit plan` without a network: from saved configurations, or of unreachable devices."""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from netkit import plan as planning
from netkit.errors import ConfigError
from netkit.plan import Running, serial
from netkit.project import comparing
from netkit.project.comparing import Sides, Work
from netkit.project.processes import Names
from tests.cli.scene import Scene, run
from tests.command import Done, assert_refused
from tests.conftest import Golden
from tests.plan.scenes import Staged, staged


def plan(scene: Scene, *options: str | Path) -> Done:
    return run("plan", "--fabric", scene.fabric, "--running", scene.saved, *options)


def test_devices_that_run_the_intent_need_no_change(scene: Scene) -> None:
    done = plan(scene, "--detailed-exitcode")
    assert (done.returncode, done.stdout, done.stderr) == (0, "small: nothing to change on 6 devices\n", "")


def test_a_change_is_shown_in_three_formats(scene: Scene, golden: Golden) -> None:
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    for suffix, output in (("txt", "text"), ("md", "markdown")):
        done = plan(scene, "--format", output)
        assert (done.returncode, done.stderr) == (0, "")
        golden(f"cli/plan-description.{suffix}", done.stdout)
    found = planning.read(plan(scene, "--format", "json").stdout)
    assert [device.name for device in found.changed] == ["leaf01"]


def test_changes_exit_with_2_only_on_request(scene: Scene) -> None:
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    assert plan(scene).returncode == 0
    assert plan(scene, "--detailed-exitcode").returncode == 2


def test_a_device_without_a_saved_configuration_is_listed_and_decides_the_exit_code(scene: Scene) -> None:
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    shutil.rmtree(scene.saved / "spine02")
    done = plan(scene, "--detailed-exitcode")
    assert done.returncode == 4
    assert f"\n  spine02: no files in {scene.saved}/spine02\n" in done.stdout
    assert "small: 1 of 5 devices changes, highest risk none, 1 could not be read" in done.stdout


def test_a_missing_file_makes_a_plan_incomplete(scene: Scene) -> None:
    (scene.saved / "gpu01" / "netplan.yaml").unlink()
    done = plan(scene, "--detailed-exitcode")
    assert done.returncode == 4
    assert "! gpu01: not compared, because not read: netplan.yaml\n" in done.stdout


def test_limit_leaves_other_devices_alone(scene: Scene) -> None:
    shutil.rmtree(scene.saved / "spine02")
    done = plan(scene, "--limit", "role=leaf", "--detailed-exitcode")
    assert (done.returncode, done.stdout) == (0, "small: nothing to change on 2 devices\n")


def test_the_written_plan_is_the_one_that_was_shown(scene: Scene, tmp_path: Path) -> None:
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    done = plan(scene, "--format", "json", "--out", tmp_path / "plan.json")
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == done.stdout
    assert json.loads(done.stdout)["digest"]


def test_a_second_plan_uses_the_cache_and_prints_the_same(scene: Scene, tmp_path: Path) -> None:
    first = plan(scene)
    kept = tmp_path / "cache" / "netkit" / "plan-pairs"
    assert len(serial.load(kept.parent)) == 6
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert plan(scene).stdout == first.stdout
    scene.edit("leaf01", "startup.yaml", "gpu01:rail0", "spare")
    assert "1 of 6 devices changes" in plan(scene).stdout


def test_usage_errors_are_reported(scene: Scene, tmp_path: Path, golden: Golden) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    said = []
    for options in (
        ("--running", tmp_path / "nowhere"),
        ("--running", empty),
        ("--running", scene.saved, "--lab"),
        ("--running", scene.saved, "--format", "html"),
        ("--running", scene.saved, "--out", tmp_path / "nowhere" / "plan.json"),
        ("--lab",),
        ("--lab=other",),
        ("--lab=../other",),
    ):
        done = run("plan", "--fabric", scene.fabric, *options)
        assert_refused(done)
        said.append(done.stderr.replace(str(tmp_path), "DIR"))
    golden("cli/plan-refused.txt", "".join(said))


def test_a_plan_is_written_into_pipes_and_through_links_without_replacing_them(scene: Scene, tmp_path: Path) -> None:
    pipe, link, real = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "real.json"
    os.mkfifo(pipe)
    real.touch()
    link.symlink_to(real)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    for out in (pipe, link):
        assert run("plan", "--fabric", scene.fabric, "--running", scene.saved, "--out", out).returncode == 0
    assert reader.communicate(timeout=60)[0] == real.read_bytes()
    assert (pipe.is_fifo(), link.is_symlink(), real.read_bytes()[:1]) == (True, True, b"{")


def test_a_broken_file_is_named(scene: Scene) -> None:
    (scene.saved / "leaf02" / "startup.yaml").write_text("- set: [", encoding="utf-8")
    assert_refused(plan(scene), "leaf02", "startup.yaml")
    (scene.saved / "leaf02" / "startup.yaml").write_bytes(b"- set:\n    system: \xe4\n")
    assert_refused(plan(scene), f"{scene.saved}/leaf02/startup.yaml:2: is not UTF-8; save it again as UTF-8")


def test_unreachable_devices_are_listed(scene: Scene) -> None:
    names = ["leaf01", "leaf02", "spine01", "spine02"]
    access = {
        "user": "nobody",
        "timeout_s": 5,
        "addresses": dict.fromkeys([*names, "gpu01", "gpu02"], "127.0.0.1"),
        "platforms": {"nvue": {"port": 1}},
    }
    (scene.fabric / "access.yaml").write_text(yaml.safe_dump(access), encoding="utf-8")
    done = run("plan", "--fabric", scene.fabric, "--limit", "!role=host")
    assert (done.returncode, done.stderr) == (4, "")
    head, *lines = done.stdout.splitlines()
    assert head == "small: nothing to change on 0 devices, 4 could not be read"
    assert [line.split(":")[0].strip() for line in lines[2:]] == names
    assert all("127.0.0.1 port 1" in line for line in lines[2:]), done.stdout


def work(scene: Staged, running: Mapping[str, Running], known: dict[str, str]) -> Work:
    def sides(names: Names) -> Sides:
        found = {name: running[name] for name in names if name in running}
        return found, {name: scene.intended[name] for name in names}

    return Work(scene.fabric, tuple(scene.intended), sides, known)


@pytest.mark.parametrize("platform", ["nvue", "sonic", "eos", "frr"])
def test_a_plan_made_on_all_cores_equals_one_made_on_one(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "FEWEST", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2})
    scene = staged(platform, "removed-host")
    running = dict(scene.running)
    del running["spine02"]
    known: dict[str, str] = {}
    found = comparing.make(work(scene, running, known))
    wanted: dict[str, str] = {}
    assert found == planning.make(scene.fabric, running, scene.intended, known=wanted)
    assert known == wanted


def test_a_parse_error_in_a_worker_process_is_reported_for_all_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "FEWEST", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    scene = staged("nvue", "description")
    running = {**scene.running, "leaf01": Running({"startup.yaml": "["}), "leaf02": Running({"startup.yaml": "{"})}
    with pytest.raises(ConfigError) as refusal:
        comparing.make(work(scene, running, {}))
    assert sorted(str(problem).split(":")[0] for problem in refusal.value.problems) == ["leaf01", "leaf02"]

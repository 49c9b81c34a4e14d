"""`netkit diagnose` prints what a bug report needs, and nothing confidential."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from netkit import __version__
from netkit.deploy import RunSummary
from netkit.project import diagnosis
from tests.command import ROOT, assert_refused, run

REFERENCE = ROOT / "inventory" / "reference"


def test_versions_programs_and_the_size_of_the_fabric_are_printed() -> None:
    done = run("diagnose", "--fabric", REFERENCE, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert list(found) == ["netkit", "machine", "packages", "lab", "environment", "fabric", "runs"]
    assert found["netkit"]["version"] == __version__
    assert "jinja2" in found["packages"]
    assert {name: found["fabric"][name] for name in ("leaf switches, SN5600, nvue 5.16.1", "hosts, dgx-h100")} == {
        "leaf switches, SN5600, nvue 5.16.1": "8",
        "hosts, dgx-h100": "10",
    }


def test_no_value_address_or_name_of_a_device_is_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fabric = tmp_path / "very-secret-site"
    shutil.copytree(REFERENCE, fabric)
    monkeypatch.setenv("NETKIT_SECRET_SNMP_AUTH", "hunter2hunter2")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.internal:3128")
    done = run("diagnose", "--fabric", fabric)
    assert done.returncode == 0
    for reported in ("NETKIT_SECRET_SNMP_AUTH", "HTTPS_PROXY"):
        assert reported in done.stdout
    pools = yaml.safe_load((fabric / "fabric.yaml").read_text(encoding="utf-8"))["pools"]
    hidden = ["hunter2", "proxy.internal", "very-secret-site", "leaf01", "gpu01", str(Path.home())]
    for private in (*hidden, *(str(pool).rpartition(".")[0] for pool in pools.values())):
        assert private not in done.stdout


def test_problems_of_an_invalid_fabric_are_counted_and_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text("name: hidden\nspins: 4\n", encoding="utf-8")
    done = run("diagnose", "--fabric", tmp_path)
    assert done.returncode == 0
    assert "netkit validate prints them" in done.stdout
    assert "spins" not in done.stdout


def test_damaged_runs_are_named_without_the_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    runs = tmp_path / "netkit" / "reference" / "runs"
    (runs / "20260101T000000Z-0001").mkdir(parents=True)
    (runs / "20260101T000000Z-0001" / "journal.jsonl").touch()
    done = run("diagnose", "--fabric", REFERENCE, "--format", "json")
    assert json.loads(done.stdout)["runs"] == {"20260101T000000Z-0001": "cannot be read: no such file or directory"}
    shutil.rmtree(runs)
    runs.touch()
    done = run("diagnose", "--fabric", REFERENCE, "--format", "json")
    assert json.loads(done.stdout)["runs"] == {"problem": "cannot be listed: not a directory"}


def test_runs_that_have_not_finished_are_told_from_superseded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [RunSummary("R2", "f", 0.0, None), RunSummary("R1", "f", 0.0, None, superseded="R3")]
    monkeypatch.setattr(diagnosis, "history", lambda _: runs)
    began = "1970-01-01 00:00:00 UTC"
    assert diagnosis.diagnosis(REFERENCE)["runs"] == {
        "R2": f"{began}, not finished",
        "R1": f"{began}, superseded by R3",
    }


def test_output_goes_to_a_file_on_request(tmp_path: Path) -> None:
    done = run("diagnose", "-o", tmp_path / "diagnosis.txt")
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/diagnosis.txt: read it before you pass it on\n")
    assert (tmp_path / "diagnosis.txt").read_text(encoding="utf-8").startswith("netkit\n  version")
    assert_refused(run("diagnose", "-o", tmp_path / "no" / "diagnosis.txt"), "cannot be written")
    assert_refused(run("diagnose", "--format", "xml"), "unknown format")

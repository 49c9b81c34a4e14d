"""The CI files people copy: their steps, run here in a repository with a change in it."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import ROOT
from tests.intents import on_platform
from tests.lab.running import lab_home, needs_lab, write_fabric

FABRIC = "inventory/reference"
PULL_REQUEST = "https://github.example/o/r/pull/1"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone whose branch drains a spine, beside programs that only write down how they were called."""
    clone = cloned(tmp_path, lambda folder: shutil.copytree(ROOT / FABRIC, folder))
    with (clone / FABRIC / "fabric.yaml").open("a", encoding="utf-8") as stream:
        stream.write("\noverrides: {spine02: {drain: true}}\n")
    return clone


def cloned(tmp_path: Path, write: Callable[[Path], object]) -> Path:
    """Return a clone of a repository with a fabric."""
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    write(origin / FABRIC)
    git(origin, "init", "-q", "-b", "main")
    git(origin, "add", "-A")
    git(origin, "commit", "-q", "-m", "as it was")
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    return clone


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.net", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True)


def in_shell(clone: Path, script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does; programs that reach out only write down their arguments."""
    programs = clone.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("pip", "gh", "curl", "apt-get"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{clone.parent}/called"\n', encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    sudo = programs / "sudo"
    sudo.write_text('#!/bin/sh\nexec "$@"\n', encoding="utf-8")
    sudo.chmod(sudo.stat().st_mode | stat.S_IXUSR)
    netkit = programs / "netkit"
    netkit.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m netkit "$@"\n', encoding="utf-8")
    netkit.chmod(netkit.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "GITHUB_ACTIONS": "true", **variables}
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, timeout=120, check=False)


def called(clone: Path) -> list[str]:
    return (clone.parent / "called").read_text(encoding="utf-8").splitlines()


def filled(value: str) -> str:
    """Return a value of a step with the expressions of GitHub in it filled in."""
    known = {
        "github.base_ref": "main",
        "github.token": "token",
        "github.event.pull_request.html_url": PULL_REQUEST,
        "inputs.fabric": FABRIC,
        "inputs.base": "origin/main",
        "inputs.package": "netkit",
    }
    for name, found in known.items():
        value = value.replace(f"${{{{ {name} }}}}", found)
    assert "${{" not in value
    return value


def github_steps(document: Mapping[str, Any], job: str = "dry-run") -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the script and the variables of each step that has a script."""
    is_action = "runs" in document
    steps = document["runs"]["steps"] if is_action else document["jobs"][job]["steps"]
    shared = {} if is_action else document["env"]
    for step in steps:
        if "run" in step:
            yield step["run"], {name: filled(value) for name, value in {**shared, **step.get("env", {})}.items()}


@pytest.mark.parametrize("file", ["docs/ci/github.yml", "action.yml"])
def test_the_steps_of_github_comment_the_plan(clone: Path, file: str) -> None:
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    places = {"GITHUB_STEP_SUMMARY": str(clone.parent / "summary"), "GITHUB_OUTPUT": str(clone.parent / "output")}
    for script, variables in github_steps(document):
        done = in_shell(clone, script, {**variables, **places})
        assert done.returncode == 0, done.stderr
    plan = (clone / "plan.md").read_text(encoding="utf-8")
    assert "against origin/main" in plan
    assert "spine02" in plan
    assert "netkit deploy --approved" in plan
    assert Path(places["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8") == plan
    comment = f"gh pr comment {PULL_REQUEST} --body-file plan.md --edit-last --create-if-none"
    assert called(clone) == ["pip install netkit", comment]


@needs_lab
def test_the_optional_job_of_github_comments_the_proof(tmp_path: Path) -> None:
    small = {"units": [{"unit": 1, "hosts": 2}], "ceilings": {"units": 1, "hosts_per_unit": 4, "spines": 4}}
    drained = {**small, "overrides": {"spine02": {"drain": True}}}
    clone = cloned(tmp_path, lambda folder: write_fabric(folder, on_platform("frr", "10.2", small)))
    write_fabric(clone / FABRIC, on_platform("frr", "10.2", drained))
    document = yaml.safe_load((ROOT / "docs/ci/github.yml").read_text(encoding="utf-8"))
    for script, variables in github_steps(document, "prove"):
        with lab_home() as home:
            places = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "NETKIT_LAB_DIR": str(home)}
            done = in_shell(clone, script, {**variables, **places})
        assert done.returncode == 0, done.stderr
    assert "✓ **Proven in the lab: rolled in " in (clone / "plan.md").read_text(encoding="utf-8")
    assert [line.partition(" ")[0] for line in called(clone)] == ["pip", "apt-get", "apt-get", "gh"]


def test_the_steps_of_gitlab_write_a_note(clone: Path) -> None:
    job = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text(encoding="utf-8"))["fabric"]
    variables = {
        **{name: str(value) for name, value in job["variables"].items()},
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "origin/main",
        "CI_API_V4_URL": "https://gitlab.example/api/v4",
        "CI_PROJECT_ID": "7",
        "CI_MERGE_REQUEST_IID": "3",
        "NETKIT_NOTE_TOKEN": "token",
    }
    for line in (*job["before_script"], *job["script"], *job["after_script"]):
        done = in_shell(clone, line, variables)
        assert done.returncode == 0, done.stderr
    assert "spine02" in (clone / "plan.md").read_text(encoding="utf-8")
    assert called(clone)[-1].endswith(
        "--form body=<plan.md https://gitlab.example/api/v4/projects/7/merge_requests/3/notes"
    )


def test_an_intent_that_is_refused_ends_the_run_at_its_line(clone: Path) -> None:
    file = clone / FABRIC / "fabric.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("rails: 8", "rails: 99"), encoding="utf-8")
    done = in_shell(clone, 'netkit validate --fabric "$FABRIC"', {"FABRIC": FABRIC})
    assert done.returncode == 3
    (line,) = [at for at, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "rails: 99" in text]
    assert f"::error file={FABRIC}/fabric.yaml,line={line}::" in done.stderr

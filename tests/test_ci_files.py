"""The CI files that users copy: their steps, run here in a repository with a change in it."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci_server import BOT, TOKEN, gitlab
from tests.command import ROOT
from tests.intents import on_platform
from tests.lab.running import lab_home, needs_lab, write_fabric

FABRIC = "inventory/reference"
COMMENTS = "repos/o/r/issues/1/comments"
MARK = f"<!-- netkit: {FABRIC} -->"
GITHUB_FILES = pytest.mark.parametrize("file", ["docs/ci/github.yml", "action.yml"])
GH = f"""#!{sys.executable}
# The comments of a pull request, in a file: lists the numbers of those that netkit wrote, writes, edits.
import json, os, pathlib, sys
file = pathlib.Path(__file__).parent.parent / "comments"
comments = json.loads(file.read_text()) if file.exists() else []
words = sys.argv[1:]
method = words[words.index("--method") + 1] if "--method" in words else "GET"
with (file.parent / "called").open("a") as stream:
    print("gh", method, file=stream)
if method == "GET":
    bot = [one for one in comments if one["user"]["login"] == "github-actions[bot]"]
    print(*[one["id"] for one in bot if one["body"].startswith(os.environ["MARK"])], sep="\\n")
else:
    body = pathlib.Path(words[words.index("--field") + 1].removeprefix("body=@")).read_text()
    address = words[words.index(method) + 1]
    if method == "POST":
        assert address == "{COMMENTS}"
        comments.append({{"id": 100 + len(comments), "user": {{"login": "github-actions[bot]"}}}})
    (comment,) = comments[-1:] if method == "POST" else [
        one for one in comments if address == f"repos/o/r/issues/comments/{{one['id']}}"
    ]
    comment["body"] = body
    file.write_text(json.dumps(comments))
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose branch drains a spine, beside programs that only record their arguments."""
    clone = cloned(tmp_path, lambda folder: shutil.copytree(ROOT / FABRIC, folder))
    with (clone / FABRIC / "fabric.yaml").open("a", encoding="utf-8") as stream:
        stream.write("\noverrides: {spine02: {drain: true}}\n")
    return clone


def cloned(tmp_path: Path, write: Callable[[Path], object]) -> Path:
    """A clone of a repository with a fabric."""
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
    """Run a step as a runner does; programs that would use the network only record their arguments."""
    programs = clone.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("pip", "apt-get"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{clone.parent}/called"\n', encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    netkit = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m netkit "$@"\n'
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    for name, text in (("gh", GH), ("sudo", '#!/bin/sh\nexec "$@"\n'), ("netkit", netkit), ("python", python)):
        program = programs / name
        program.write_text(text, encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    runner = {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r", "GITHUB_ACTION_PATH": "/action"}
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", **runner, **variables}
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, timeout=120, check=False)


def called(clone: Path) -> list[str]:
    return (clone.parent / "called").read_text(encoding="utf-8").splitlines()


def filled(value: str) -> str:
    """A value of a step with the expressions of GitHub in it filled in."""
    known = {
        "github.base_ref": "main",
        "github.token": "token",
        "github.event.pull_request.number": "1",
        "inputs.fabric": FABRIC,
        "inputs.base": "origin/main...",
        "inputs.package": "",
    }
    for name, found in known.items():
        value = value.replace(f"${{{{ {name} }}}}", found)
    assert "${{" not in value
    return value


def github_steps(document: Mapping[str, Any], job: str = "dry-run") -> Iterator[tuple[str, Mapping[str, str]]]:
    """The script and the variables of each step that has a script."""
    is_action = "runs" in document
    steps = document["runs"]["steps"] if is_action else document["jobs"][job]["steps"]
    shared = {} if is_action else document["env"]
    for step in steps:
        if "run" in step:
            yield step["run"], {name: filled(value) for name, value in {**shared, **step.get("env", {})}.items()}


def comments(clone: Path) -> dict[int, str]:
    """The comments of the pull request by their numbers."""
    return {one["id"]: one["body"] for one in json.loads((clone.parent / "comments").read_text(encoding="utf-8"))}


@GITHUB_FILES
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
    assert comments(clone) == {100: f"{MARK}\n{plan}"}
    install = "/action" if file == "action.yml" else document["env"]["NETKIT"]
    assert called(clone) == [f"pip install {install}", "gh GET", "gh POST"]


@GITHUB_FILES
def test_commits_on_the_base_since_then_are_not_part_of_the_change(clone: Path, file: str) -> None:
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    git(clone, "commit", "-q", "-a", "-m", "drain")
    origin = clone.with_name("origin")
    with (origin / FABRIC / "fabric.yaml").open("a", encoding="utf-8") as stream:
        stream.write("\noverrides: {spine01: {drain: true}}\n")
    git(origin, "commit", "-q", "-a", "-m", "meanwhile")
    git(clone, "fetch", "-q")
    (step,) = [one for one in github_steps(document) if "netkit plan" in one[0]]
    places = {"GITHUB_STEP_SUMMARY": str(clone.parent / "summary"), "GITHUB_OUTPUT": str(clone.parent / "output")}
    done = in_shell(clone, step[0], {**step[1], **places})
    assert done.returncode == 0, done.stderr
    assert "1 of 22 devices changes" in (clone / "plan.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", ["docs/ci/github.yml", "action.yml"])
def test_the_base_of_github_is_the_merge_base(file: str) -> None:
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    base = document["inputs"]["base"]["default"] if "inputs" in document else document["env"]["BASE"]
    assert base == "origin/${{ github.base_ref }}..."


def test_runs_of_forks_do_not_try_to_comment() -> None:
    """Their token lacks the permission; the dry run is in the summary anyway."""
    github, action = (
        yaml.safe_load((ROOT / file).read_text(encoding="utf-8")) for file in ("docs/ci/github.yml", "action.yml")
    )
    jobs = [job["steps"] for job in github["jobs"].values()]
    steps = [step for steps in [*jobs, action["runs"]["steps"]] for step in steps if "gh api" in step.get("run", "")]
    assert [("!github.event.pull_request.head.repo.fork" in step["if"]) for step in steps] == [True, True, True]
    assert [step for step in steps if "GITHUB_STEP_SUMMARY" in step["run"]] == []


def commented(clone: Path, document: Mapping[str, Any], job: str = "dry-run") -> subprocess.CompletedProcess[str]:
    """Run the step that comments."""
    (step,) = [one for one in github_steps(document, job) if "gh api" in one[0]]
    return in_shell(clone, step[0], {**step[1], "GITHUB_STEP_SUMMARY": str(clone.parent / "summary")})


@GITHUB_FILES
def test_only_the_comment_of_this_fabric_by_this_bot_is_edited(clone: Path, file: str) -> None:
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    bot, other = {"login": "github-actions[bot]"}, {"login": "somebody"}
    was = [
        {"id": 1, "user": other, "body": f"{MARK}\nforged"},
        {"id": 2, "user": bot, "body": "<!-- netkit: inventory/superpod -->\nanother fabric"},
        {"id": 3, "user": bot, "body": f"{MARK}\nbefore"},
        {"id": 4, "user": bot, "body": "lint: fine"},
    ]
    (clone.parent / "comments").write_text(json.dumps(was), encoding="utf-8")
    for text in ("first\n", "second\n"):
        (clone / "plan.md").write_text(text, encoding="utf-8")
        done = commented(clone, document)
        assert done.returncode == 0, done.stderr
        kept = {one["id"]: one["body"] for one in was}
        assert comments(clone) == {**kept, 3: f"{MARK}\n{text}"}


@pytest.mark.parametrize("job", ["dry-run", "prove"])
def test_a_run_without_a_plan_leaves_the_comment(clone: Path, job: str) -> None:
    document = yaml.safe_load((ROOT / "docs/ci/github.yml").read_text(encoding="utf-8"))
    (clone / "plan.md").write_text("", encoding="utf-8")
    assert commented(clone, document, job).returncode == 1
    assert not (clone.parent / "called").exists()


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@GITHUB_FILES
def test_the_filter_finds_the_comments_of_the_bot_on_this_fabric(file: str) -> None:
    document = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))
    (expression,) = {variables["OURS"] for _, variables in github_steps(document) if "OURS" in variables}
    found = [
        {"id": 1, "user": {"login": "somebody"}, "body": MARK},
        {"id": 2, "user": {"login": "github-actions[bot]"}, "body": "<!-- netkit: inventory/superpod -->"},
        {"id": 4012345678, "user": {"login": "github-actions[bot]"}, "body": f"{MARK}\r\nplan"},
        {"id": 4, "user": None, "body": MARK},
    ]
    environment = {**os.environ, "MARK": MARK}
    words = ["jq", "-r", expression]
    done = subprocess.run(words, input=json.dumps(found), env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "4012345678\n"


@pytest.mark.parametrize("file", ["docs/ci/github.yml", "docs/ci/gitlab.yml", "action.yml"])
def test_no_file_installs_the_other_netkit(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.findall(r"pip install (\S+)", text) != []
    assert [one for one in re.findall(r"pip install (\S+)", text) if "$" not in one] == []
    assert "another project" in text


def test_no_page_recommends_installing_the_other_netkit() -> None:
    places = [*(ROOT / "netkit").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    wrong = re.compile(r"pip install ['\"]?netkit\b(?!-fabric)")
    assert [str(file) for file in places if wrong.search(file.read_text(encoding="utf-8"))] == []


def test_a_newer_push_ends_the_run_of_an_older_one() -> None:
    github = yaml.safe_load((ROOT / "docs/ci/github.yml").read_text(encoding="utf-8"))
    assert github["concurrency"] == {
        "group": "${{ github.workflow_ref }}-${{ github.ref }}",
        "cancel-in-progress": True,
    }
    assert yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text(encoding="utf-8"))["fabric"]["interruptible"] is True


@needs_lab
@pytest.mark.whole
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
    assert [line.partition(" ")[0] for line in called(clone)] == ["pip", "apt-get", "apt-get", "gh", "gh"]


def gitlab_job() -> Mapping[str, Any]:
    job: Mapping[str, Any] = yaml.safe_load((ROOT / "docs/ci/gitlab.yml").read_text(encoding="utf-8"))["fabric"]
    return job


def gitlab_variables(api: str) -> dict[str, str]:
    return {
        **{name: str(value) for name, value in gitlab_job()["variables"].items()},
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "origin/main",
        "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "",
        "CI_JOB_STATUS": "success",
        "CI_API_V4_URL": api,
        "CI_PROJECT_ID": "7",
        "CI_MERGE_REQUEST_IID": "3",
        "NETKIT_NOTE_TOKEN": TOKEN,
        "no_proxy": "127.0.0.1",
    }


def test_the_steps_of_gitlab_write_one_note_and_update_it(clone: Path) -> None:
    job = gitlab_job()
    with gitlab() as server:
        for _ in range(2):
            for line in (*job["before_script"], *job["script"], *job["after_script"]):
                done = in_shell(clone, line, gitlab_variables(server.api))
                assert done.returncode == 0, done.stderr
    plan = (clone / "plan.md").read_text(encoding="utf-8")
    assert "spine02" in plan
    assert called(clone) == [f"pip install {job['variables']['NETKIT']}"] * 2
    assert [one["body"] for one in server.notes] == [f"{MARK}\n{plan}"]
    assert server.asked == ["POST", "PUT 100"]


def test_only_the_note_of_this_fabric_by_this_token_is_edited(clone: Path) -> None:
    (line,) = gitlab_job()["after_script"]
    was = [
        {"id": 1, "author": {"id": 8}, "body": f"{MARK}\nforged"},
        {"id": 2, "author": {"id": BOT}, "body": "<!-- netkit: inventory/superpod -->\nanother fabric"},
        {"id": 3, "author": {"id": BOT}, "body": "lint: fine"},
        {"id": 4, "author": {"id": BOT}, "body": f"{MARK}\nbefore"},
        {"id": 5, "author": {"id": BOT}, "body": f"{MARK}\nfrom when each push wrote one"},
    ]
    with gitlab(*was) as server:
        for text in ("first\n", "Ünicode `$HOME` 'second'\n"):
            (clone / "plan.md").write_text(text, encoding="utf-8")
            done = in_shell(clone, line, gitlab_variables(server.api))
            assert (done.returncode, done.stderr) == (0, "")
            kept = {one["id"]: one["body"] for one in was}
            assert {one["id"]: one["body"] for one in server.notes} == {**kept, 4: f"{MARK}\n{text}"}
    assert server.asked == ["PUT 4", "PUT 4"]


def test_a_note_that_gitlab_rejects_is_reported_in_one_line(clone: Path) -> None:
    (line,) = gitlab_job()["after_script"]
    (clone / "plan.md").write_text("plan\n", encoding="utf-8")
    with gitlab() as server:
        done = in_shell(clone, line, {**gitlab_variables(server.api), "NETKIT_NOTE_TOKEN": "of another project"})
    assert (done.returncode, done.stderr) == (1, "the note is not up to date: HTTP Error 401: Unauthorized\n")
    assert (server.notes, server.asked) == ([], [])


def test_a_canceled_job_of_gitlab_writes_no_note(clone: Path) -> None:
    (clone / "plan.md").write_text("of an older push\n", encoding="utf-8")
    (line,) = gitlab_job()["after_script"]
    with gitlab() as server:
        variables = {**gitlab_variables(server.api), "CI_JOB_STATUS": "canceled"}
        assert in_shell(clone, line, variables).returncode == 0
    assert server.asked == []


def test_a_refused_intent_ends_the_run_at_its_line(clone: Path) -> None:
    file = clone / FABRIC / "fabric.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("rails: 8", "rails: 99"), encoding="utf-8")
    done = in_shell(clone, 'netkit validate --fabric "$FABRIC"', {"FABRIC": FABRIC})
    assert done.returncode == 3
    (line,) = [at for at, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "rails: 99" in text]
    assert f"::error file={FABRIC}/fabric.yaml,line={line}::" in done.stderr
    script = "cd inventory; netkit validate --fabric reference"
    done = in_shell(clone, script, {"GITHUB_WORKSPACE": str(clone)})
    assert f"::error file={FABRIC}/fabric.yaml,line={line}::" in done.stderr

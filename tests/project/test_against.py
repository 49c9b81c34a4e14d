"""`netkit plan --against git:REVISION`: what a change of the repository would change, without contacting a device."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from netkit.plan.cluster_diff import ClusterDiff, ObjectChange, ValueChange
from netkit.plan.model import approval
from netkit.project import against
from netkit.project.project import Project
from netkit.project.rendering import quietly
from netkit.prove import proof_text
from netkit.prove.proof import Proof
from netkit.report import intent_diff
from netkit.report.cluster_diff import cluster_lines, object_lines
from netkit.report.intent_diff import intent_diff_markdown
from tests.cli.scene import run
from tests.command import Done, assert_refused
from tests.conftest import Golden
from tests.intents import BASE, on_platform
from tests.lab.running import write_fabric

ECN = {"min_bytes": 300_000, "max_bytes": 1_500_000}
OVERRIDES = {"overrides": {"leaf01": {"asn": 4200000777}}}


@dataclass(frozen=True)
class Repository:
    """A git repository with a fabric in it."""

    root: Path

    @property
    def fabric(self) -> Path:
        return self.root / "inventory" / "small"

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=Test", "-c", "user.email=test@example.net", "-c", "commit.gpgsign=false")
        words = ["git", *who, "-C", str(self.root), *arguments]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "as it was")
        return self.git("rev-parse", "HEAD")

    def write(self, changes: Mapping[str, Any]) -> None:
        write_fabric(self.fabric, {**BASE, **changes})

    def plan(self, *options: str, base: str = "git:HEAD") -> Done:
        return run("plan", "--fabric", self.fabric, "--against", base, *options)

    def found(self) -> Any:
        done = self.plan("--format", "json")
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root = tmp_path / "repository"
    made = Repository(root)
    made.write({})
    made.git("init", "-q", "-b", "main")
    made.commit()
    return made


def test_an_unchanged_fabric_has_no_change(repository: Repository) -> None:
    done = repository.plan("--detailed-exitcode")
    commit = repository.git("rev-parse", "--short=10", "HEAD")
    assert (done.returncode, done.stdout) == (0, f"small against HEAD ({commit}): nothing changes on 10 devices\n")


def test_a_change_is_shown_in_all_formats(repository: Repository, golden: Golden) -> None:
    repository.write({**OVERRIDES, "lossless": {"ecn": {400: ECN}}})
    for suffix, output in (("txt", "text"), ("md", "markdown")):
        done = repository.plan("--format", output)
        assert (done.returncode, done.stderr) == (0, "")
        commit = repository.git("rev-parse", "--short=10", "HEAD")
        golden(f"cli/against.{suffix}", done.stdout.replace(commit, "COMMIT"))
    assert repository.plan("--detailed-exitcode").returncode == 2


def test_the_users_own_files_of_a_cluster_are_compared(repository: Repository) -> None:
    cluster = {"clusters": {"kubernetes": {}}, "ceilings": {**BASE["ceilings"], "addresses_per_nic": 9}}
    repository.write(cluster)
    own = repository.fabric / "templates" / "kubernetes" / "files" / "own.yaml.j2"
    own.parent.mkdir(parents=True)
    own.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {a: one}\n", encoding="utf-8")
    repository.commit()
    own.write_text(own.read_text(encoding="utf-8").replace("one", "two"), encoding="utf-8")
    ((found,),) = [one["objects"] for one in repository.found()["clusters"]]
    assert (found["name"], found["values"]) == ("ConfigMap own", [{"path": "data.a", "before": "one", "after": "two"}])


def cluster_change(objects: int, values: int, size: int) -> ClusterDiff:
    changes = tuple(ValueChange(f"data.v{number}", "a" * size, "b" * size) for number in range(values))
    names = tuple(f"gpu{number:03}" for number in range(512))
    found = tuple(ObjectChange(f"ConfigMap c{number}", "changed", changes) for number in range(objects))
    return ClusterDiff("kubernetes", found, drained=names, advice=("read this",))


@pytest.mark.parametrize("size", [10, 200, 5_000])
@pytest.mark.parametrize("largest", [1_500, 5_000, 60_000])
def test_cluster_changes_fit_into_a_comment(repository: Repository, largest: int, size: int) -> None:
    found = against.of_revision(Project.open(repository.fabric), "", "HEAD")
    many = replace(found, clusters=(cluster_change(60, 12, size), replace(cluster_change(60, 12, size), kind="slurm")))
    comment = intent_diff_markdown(many, largest=largest)
    assert len(comment) <= largest
    assert comment.count("<details>") == comment.count("</details>") == 2
    assert comment.count("```diff\n") == comment.count("```\n") == 2
    assert comment.count("    read this\n") == comment.count("    drained: gpu000, ") == 2
    assert max(map(len, comment.splitlines())) < 400
    whole = sum(map(len, cluster_lines(many.clusters[0]))) * 2 < largest - 2_000
    assert ("more lines: netkit plan" in comment) == (not whole)


def test_the_counted_lines_of_a_cluster_are_the_omitted_ones(repository: Repository) -> None:
    found = against.of_revision(Project.open(repository.fabric), "", "HEAD")
    change = cluster_change(60, 12, 100)
    comment = intent_diff_markdown(replace(found, clusters=(change,)), largest=20_000)
    kept = comment.partition("```diff\n")[2].partition("  … and ")
    assert len(comment) > 19_000
    left = int(kept[2].split()[0])
    assert len(kept[0].splitlines()) + left == len([*object_lines(change)])


def test_added_and_removed_devices_are_named_and_not_compared(repository: Repository) -> None:
    repository.write({"units": [{"unit": 2, "hosts": 2}, {"unit": 3, "hosts": 1}]})
    found = repository.found()
    assert {one["role"] for one in found["added"]} == {"leaf", "host"}
    assert {one["role"] for one in found["removed"]} == {"leaf", "host"}
    names = {one["name"] for one in [*found["added"], *found["removed"]]}
    assert not names & {device["name"] for device in found["plan"]["devices"]}


def test_one_description_shows_one_line(repository: Repository) -> None:
    templates = repository.fabric / "templates" / "nvue"
    templates.mkdir(parents=True)
    shipped = (Path(__file__).parents[2] / "templates" / "nvue" / "interfaces.yaml.j2").read_text(encoding="utf-8")
    assert "description: {{" in shipped
    (templates / "interfaces.yaml.j2").write_text(shipped, encoding="utf-8")
    repository.commit()
    text = "description: {{ 'spare ' if port.description == 'gpu01:rail0' }}{{"
    (templates / "interfaces.yaml.j2").write_text(shipped.replace("description: {{", text, 1), encoding="utf-8")
    found = repository.found()
    changes = [change for device in found["plan"]["devices"] for change in device["changes"]]
    assert [(change["path"][-1], change["intended"]) for change in changes] == [("description", "spare gpu01:rail0")]
    assert found["same"] == 9


def test_templates_of_the_revision_are_used(repository: Repository) -> None:
    """A removed template makes a difference; one that never existed does not."""
    own = repository.root / "templates" / "nvue" / "interfaces.yaml.j2"
    own.parent.mkdir(parents=True)
    shipped = (Path(__file__).parents[2] / "templates" / "nvue" / "interfaces.yaml.j2").read_text(encoding="utf-8")
    own.write_text(shipped.replace("description: {{", "description: was {{", 1), encoding="utf-8")
    repository.commit()
    shutil.rmtree(repository.root / "templates")
    found = repository.found()
    assert len(found["plan"]["devices"]) == 6
    assert {change["path"][-1] for change in found["plan"]["devices"][0]["changes"]} == {"description"}


def test_only_changed_devices_are_rendered(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write(OVERRIDES)
    rendered: list[str] = []

    def counted(project: Project, devices: Any, engine: Any) -> Any:
        rendered.extend(device.name for device in devices)
        return quietly(project, devices, engine)

    monkeypatch.setattr("netkit.project.against.quietly", counted)
    found = against.of_revision(Project.open(repository.fabric), "", "HEAD")
    assert sorted(rendered) == sorted(2 * [device.name for device in found.plan.devices])
    assert {device.name for device in found.plan.devices} == {"leaf01", "spine01", "spine02"}


def test_the_digest_is_that_of_devices_that_run_the_revision(repository: Repository, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    assert run("render", "--fabric", repository.fabric, "-o", saved).returncode == 0
    repository.write(OVERRIDES)
    predicted = repository.found()["approval"]

    def running() -> str:
        done = repository.plan("--running", str(saved), "--format", "json", base="running")
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["approval"])

    assert running() == predicted
    file = saved / "leaf02" / "startup.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("gpu01:rail1", "by hand", 1), encoding="utf-8")
    assert running() != predicted


def test_unread_files_of_running_devices_are_reported(repository: Repository, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    assert run("render", "--fabric", repository.fabric, "-o", saved).returncode == 0
    shutil.rmtree(saved / "leaf01")
    (saved / "gpu01" / "nccl.conf").unlink()
    live = ("--running", str(saved))
    done = repository.plan(*live, base="running")
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout == (
        "small against running: nothing changes on 9 devices; 1 could not be read\n\n"
        "! gpu01: not compared, because not read: nccl.conf\n\n"
        f"Not in this plan, because they could not be read:\n  leaf01: no files in {saved}/leaf01\n"
    )
    comment = repository.plan(*live, "--format", "markdown", base="running").stdout
    assert "- ⚠ gpu01: not compared, because not read: nccl.conf\n" in comment
    assert run("render", "--fabric", repository.fabric, "-o", saved, "--limit", "leaf01").returncode == 0
    assert repository.plan(*live, base="running").returncode == 4


def test_renumbering_is_reported(repository: Repository) -> None:
    repository.write({**OVERRIDES, "lossless": {"ecn": {400: ECN}}})
    moved = {one["quantity"]: (one["running"], one["intended"], one["places"]) for one in repository.found()["moved"]}
    assert moved["AS number"][1:] == ("4200000777", ["leaf01"])
    key = "ECN minimum of leaf ports of 400G towards hosts"
    assert moved[key] == ("150,000 bytes", "300,000 bytes", ["leaf01", "leaf02", "leaf03", "leaf04"])


def test_another_nos_is_reported_without_a_comparison(repository: Repository) -> None:
    values = on_platform("sonic", "202411")
    repository.write({"switches": {**BASE["switches"], "leaf": values["switches"]["leaf"]}})
    head, line, *_ = repository.plan().stdout.splitlines()
    assert head.endswith("2 of 6 devices change, highest risk none; 4 devices get another NOS")
    what = "reinstalled, nvue → sonic, with all ports down and nothing compared"
    assert line == f"  {what}: 4 leaves: leaf01, leaf02, leaf03, leaf04"
    assert f"R{what[1:]}: 4 leaves: " in repository.plan("--format", "markdown").stdout
    assert {(one["was"], one["platform"]) for one in repository.found()["added"]} == {("nvue", "sonic")}


def test_a_version_change_without_other_differences_is_reported(repository: Repository) -> None:
    leaf = {**BASE["switches"]["leaf"], "version": "5.16.2"}
    repository.write({"switches": {**BASE["switches"], "leaf": leaf}})
    head, line = repository.plan("--detailed-exitcode").stdout.splitlines()
    assert head.endswith("nothing changes on 10 devices")
    assert line == "  NOS: nvue 5.16.1 → nvue 5.16.2  (leaf01, leaf02, leaf03, leaf04)"


def test_existing_warnings_are_not_repeated(repository: Repository) -> None:
    services = {**BASE["services"], "snmp": {"user": "watcher"}}
    repository.write({"services": services})
    found = repository.found()
    assert len(found["warnings"]) == 1
    assert "SNMPv3 is left out" in found["warnings"][0]
    assert str(repository.fabric / "fabric.yaml") in found["warnings"][0]
    repository.commit()
    assert repository.found()["warnings"] == []


@pytest.mark.parametrize("largest", [2_000, 3_000, 5_000, 60_000])
def test_a_comment_is_never_too_large(repository: Repository, largest: int) -> None:
    repository.write({**OVERRIDES, "lossless": {"ecn": {400: ECN}}})
    found = against.of_revision(Project.open(repository.fabric), "", "HEAD")
    comment = intent_diff_markdown(found, largest=largest)
    assert len(comment) <= largest
    assert comment.count("<details>") == comment.count("</details>")
    assert approval(found.plan) in comment
    assert ("more groups" in comment) == (largest < 4_000)


def test_approving_a_change_whose_proof_failed_prints_that(repository: Repository, golden: Golden) -> None:
    repository.write(OVERRIDES)
    found = against.of_revision(Project.open(repository.fabric), "leaf01", "HEAD")
    aside = proof_text.aside(Proof(failures=("spine01 reverted: the session to leaf01 stays away",), exit_code=1))
    golden("cli/against-not-proven.md", intent_diff_markdown(replace(found, base="HEAD"), aside))
    line = "  the proof failed; accept this and approve it with: netkit deploy --approved"
    assert f"{line} {approval(found.plan)}\n" in intent_diff.intent_diff_text(found, aside)


def _unknown(_: Repository) -> str:
    return "git:nowhere"


def _shallow(repository: Repository) -> str:
    first = repository.git("rev-parse", "HEAD")
    repository.write(OVERRIDES)
    repository.commit()
    moved = repository.root.with_name("whole")
    repository.root.rename(moved)
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{moved}", str(repository.root)], check=True)
    return f"git:{first}"


def _refused_intent(repository: Repository) -> str:
    repository.write({"rails": 99})
    repository.commit()
    repository.write({})
    return "git:HEAD"


def _no_repository(repository: Repository) -> str:
    shutil.rmtree(repository.root / ".git")
    return "git:HEAD"


def _option(_: Repository) -> str:
    return "git:--output=/tmp/x"


def _link_that_leads_out(repository: Repository) -> str:
    (repository.fabric / "notes").symlink_to("/etc/hostname")
    repository.commit()
    return "git:HEAD"


@pytest.mark.parametrize(
    "spoil",
    [_unknown, _shallow, _refused_intent, _no_repository, _option, _link_that_leads_out],
)
def test_an_invalid_revision_is_refused_in_one_line(
    repository: Repository, spoil: Callable[[Repository], str], golden: Golden
) -> None:
    base = spoil(repository)
    done = repository.plan(base=base)
    assert_refused(done)
    said = done.stderr.replace(str(repository.root), "REPOSITORY").replace(base.removeprefix("git:"), "REVISION")
    commit = repository.git("rev-parse", "--short=10", "HEAD") if (repository.root / ".git").exists() else "-"
    golden(f"cli/against-refused-{spoil.__name__.strip('_')}.txt", said.replace(commit, "COMMIT"))


def test_options_that_contradict_each_other_are_refused(repository: Repository) -> None:
    assert_refused(repository.plan("--lab"), "drop --lab")
    assert_refused(repository.plan(base="main"), "use --against git:REVISION or running")


def test_in_github_actions_a_problem_is_annotated_at_its_line(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    services = {**BASE["services"], "snmp": {"user": "watcher"}}
    repository.write({"services": services})
    file = repository.fabric / "fabric.yaml"
    done = repository.plan()
    (line,) = [at for at, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "snmp:" in text]
    assert done.stderr == (
        f"::warning file={file},line={line}::SNMPv3 is left out: its secrets are not named; "
        "name auth_secret and priv_secret\n"
    )


def test_a_limit_excludes_the_others(repository: Repository) -> None:
    repository.write(OVERRIDES)
    done = repository.plan("--limit", "leaf03")
    assert "nothing changes on 1 device" in done.stdout

"""deploy.yaml, `netkit approve`, --reason and the hook, from the command line; no device is reachable."""

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from netkit import plan as planning
from netkit.errors import NetkitError
from netkit.plan import Plan
from netkit.plan.model import approval as digest_of
from netkit.project.control import Control, Requester, deployer_signature
from netkit.project.project import Project
from tests.cli.scene import PATIENCE_S, Scene, run
from tests.cli.test_deploy import nowhere, planned
from tests.command import NETKIT, ROOT, Done, assert_refused, environment
from tests.deploy.test_hook import is_gone, service
from tests.lab.running import until

BOB, CAROL = "bob@example.net", "carol@example.net"
UNREACHED = 4
"""The exit code of a deploy here once no policy has stopped it."""


class Office:
    """A fabric in a git repository with a policy, users with keys, and a plan."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        nowhere(scene)
        self.scene, self.folder, self.fabric = scene, folder, scene.fabric
        for name in ("bob", "carol"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True)
        keys = {name: (folder / f"{name}.pub").read_text(encoding="utf-8").split()[:2] for name in ("bob", "carol")}
        lines = [f"{BOB} {' '.join(keys['bob'])}\n", f"{CAROL} {' '.join(keys['carol'])}\n"]
        (self.fabric / "allowed_signers").write_text("".join(lines), encoding="utf-8")
        self.git("init", "-q")
        self.git("config", "user.name", "Alice")
        self.git("config", "user.email", "alice@example.net")
        self.policy()
        self.commit()
        self.plan = planned(scene, folder / "plan.json")

    def git(self, *words: str) -> str:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        done = subprocess.run(
            ["git", "-C", str(self.fabric), *words], check=True, capture_output=True, text=True, env=environment
        )
        return done.stdout.strip()

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "the fabric")
        return self.git("rev-parse", "HEAD")

    def policy(self, **settings: Any) -> None:
        (self.fabric / "deploy.yaml").write_text(yaml.safe_dump(settings or {"on_lab": False}), encoding="utf-8")

    def gate(self, body: str, **settings: Any) -> dict[str, Any]:
        file = self.fabric / "gate"
        file.write_text(f"#!/bin/sh\ncat >{self.folder}/asked\n{body}\n", encoding="utf-8")
        file.chmod(0o755)
        return {"command": ["./gate"], "timeout_s": 60, **settings}

    def asked(self) -> Any:
        return json.loads((self.folder / "asked").read_text(encoding="utf-8"))

    def approve(self, *options: str | Path, key: str = "bob") -> Done:
        return run("approve", self.plan, "--fabric", self.fabric, "--key", self.folder / key, "--yes", *options)

    def deploy(self, *options: str | Path) -> Done:
        return run("deploy", self.plan, "--fabric", self.fabric, "--yes", *options)

    def refused(self, done: Done, word: str, code: int = 3) -> None:
        """Assert that a deploy did not start: one line gives the reason, and the history has no run."""
        assert done.returncode == code, (done.stdout, done.stderr)
        (line,) = [line for line in done.stderr.splitlines() if not line.startswith(("run ", "the hook allows"))]
        assert line.startswith("error: ")
        assert word in line

    def history(self) -> Any:
        """The runs, the newest first; the list has no order for two of the same second."""
        found = json.loads(run("history", "--fabric", self.fabric, "--format", "json").stdout)
        return sorted(found, key=lambda one: -float(one["began_s"]))


@pytest.fixture(name="office")
def built(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.delenv("SUDO_USER", raising=False)
    return Office(scene, tmp_path)


def test_a_run_records_user_commit_and_reason(office: Office) -> None:
    commit = office.commit() if office.git("status", "--porcelain") else office.git("rev-parse", "HEAD")
    assert office.deploy("--reason", " CHG-1 \n").returncode == UNREACHED
    (office.fabric / "templates").mkdir()
    (office.fabric / "templates" / "mine.j2").write_text("", encoding="utf-8")
    assert office.deploy().returncode == UNREACHED
    second, first = (one["provenance"][0] for one in office.history())
    assert (first["verb"], first["uid"], first["commit"], first["is_dirty"]) == ("deploy", os.getuid(), commit, False)
    assert (first["reason"], first["hook"], first["approval"]) == ("CHG-1", "", None)
    assert (second["commit"], second["is_dirty"], second["reason"]) == (commit, True, "")
    table = run("history", "--fabric", office.fabric).stdout.splitlines()
    assert table[0].split("  ")[-1].strip() == "DEVICES"
    (row,) = [line for line in table if "CHG-1" in line]
    assert row.split()[5:8] == ["deploy", commit[:10], "CHG-1"]


def test_a_fabric_outside_git_can_be_deployed(scene: Scene, tmp_path: Path) -> None:
    nowhere(scene)
    plan = planned(scene, tmp_path / "plan.json")
    done = run("deploy", plan, "--fabric", scene.fabric, "--yes")
    assert done.returncode == UNREACHED
    (one,) = json.loads(run("history", "--fabric", scene.fabric, "--format", "json").stdout)
    assert (one["provenance"][0]["commit"], one["provenance"][0]["is_dirty"]) == ("", False)


def test_a_required_reason_must_be_given(office: Office) -> None:
    office.policy(reason="required")
    for options in ((), ("--reason", ""), ("--reason", " ")):
        office.refused(office.deploy(*options), "deploy.yaml requires a reason")
    assert office.history() == []
    assert office.deploy("--reason", "CHG-1").returncode == UNREACHED


def test_the_hook_is_called_after_confirmation_and_before_the_first_write(office: Office) -> None:
    office.policy(hook=office.gate("""echo '{"allow": true, "reason": "window until 06:00"}'"""))
    done = run("deploy", office.plan, "--fabric", office.fabric)
    assert done.stderr.endswith("There is no terminal to ask on; use --yes\n")
    assert office.deploy("--dry-run").returncode == UNREACHED
    assert not (office.folder / "asked").exists()
    done = office.deploy("--reason", "CHG-1")
    assert done.returncode == UNREACHED
    assert done.stderr.startswith("the hook allows it: window until 06:00\nrun ")
    asked = office.asked()
    plan = planning.read(office.plan.read_text(encoding="utf-8"))
    assert (asked["plan"], asked["fabric"], asked["verb"], asked["reason"]) == (
        digest_of(plan),
        "small",
        "deploy",
        "CHG-1",
    )
    (one,) = office.history()
    assert (one["run"], one["provenance"][0]["hook"]) == (asked["run"], "allowed")
    assert one["provenance"][0]["hook_reason"] == "window until 06:00"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("""echo '{"allow": false, "reason": "freeze until Monday"}'""", "the hook refuses: freeze until Monday"),
        ("sleep 1000", "gives no answer within 1 s"),
        ("kill -9 $$", "ended with signal 9"),
        ("echo garbage", "does not answer with JSON"),
    ],
)
def test_a_hook_that_refuses_hangs_dies_or_prints_garbage_stops_the_deploy(
    office: Office, body: str, said: str
) -> None:
    office.policy(hook=office.gate(body, timeout_s=1 if "sleep" in body else 60))
    office.refused(office.deploy(), said, code=1)
    assert office.history() == []
    office.refused(office.deploy("--skip-hook", "the gate is down"), "a deploy must not skip the hook")
    assert_refused(run("deploy", "--fabric", office.fabric, "--skip-hook", " "), "--skip-hook is empty")


def test_a_hook_that_fails_refuses_where_exit_codes_of_programs_are_lost(office: Office) -> None:
    office.policy(hook=office.gate("""echo '{"allow": true}'; exit 1"""))
    words = [*NETKIT, "deploy", str(office.plan), "--fabric", str(office.fabric), "--yes"]
    ignoring = ["sh", "-c", """trap '' CHLD; exec "$@" """, "sh", *words]
    done = subprocess.run(ignoring, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the hook ended with exit code 1" in done.stderr


def test_a_web_hook_is_called_with_its_token(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    with service() as found:
        office.policy(hook={"url": found.url, "token_secret": "CHANGE_GATE"})
        office.refused(office.deploy(), "the secret CHANGE_GATE is not available", code=1)
        monkeypatch.setenv("NETKIT_SECRET_CHANGE_GATE", "a-token")
        assert office.deploy().returncode == UNREACHED
        ((headers, data),) = found.asked
    assert (headers["Authorization"], json.loads(data)["verb"]) == ("Bearer a-token", "deploy")


def test_an_interrupt_during_the_hook_ends_both_and_starts_nothing(office: Office) -> None:
    begun = f"{office.folder}/begun"
    office.policy(hook=office.gate(f"echo $$ >{begun}; mv {begun} {office.folder}/pid; sleep 1000", timeout_s=600))
    words = ["deploy", str(office.plan), "--fabric", str(office.fabric), "--yes"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    try:
        netkit = subprocess.Popen([*NETKIT, *words], cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    pid = office.folder / "pid"
    until(pid.exists, "the hook is asked")
    netkit.send_signal(signal.SIGINT)
    _, said = netkit.communicate(timeout=PATIENCE_S)
    assert said.endswith("interrupted\n")
    assert is_gone(int(pid.read_text(encoding="utf-8")))
    assert office.history() == []


def test_a_skipped_hook_is_allowed_by_policy_and_recorded(office: Office) -> None:
    office.policy(hook=office.gate("exit 1", may_skip=["deploy"]))
    done = office.deploy("--skip-hook", "the gate is down")
    assert (done.returncode, done.stderr.splitlines()[0]) == (UNREACHED, "the hook was not asked")
    (one,) = office.history()
    assert (one["provenance"][0]["hook"], one["provenance"][0]["hook_reason"]) == ("skipped", "the gate is down")
    assert "  hook: skipped: the gate is down" in run("history", "last", "--fabric", office.fabric).stdout.splitlines()


def test_a_deploy_that_needs_an_approval_waits_for_it_and_uses_it_once(office: Office) -> None:
    office.policy(approval={"required": "always"})
    office.refused(office.deploy(), "deploy.yaml requires a second person's approval of plan ")
    done = office.approve()
    assert done.returncode == 0, done.stderr
    beside = office.plan.with_name("plan.json.approval")
    assert done.stdout.startswith("small: 1 of 6 devices changes")
    assert done.stdout.splitlines()[-1].startswith(f"{beside}: approved by {BOB} for one deploy until ")
    assert office.deploy().returncode == UNREACHED
    (one,) = office.history()
    given = one["provenance"][0]["approval"]
    assert (given["approver"], given["text"]) == (BOB, beside.read_text(encoding="utf-8"))
    assert f"  approved by {BOB}, " in run("history", "last", "--fabric", office.fabric).stdout
    office.refused(office.deploy(), f"the approval of {BOB} was used by run {one['run']}")
    other = office.folder / "elsewhere"
    assert office.approve("-o", other, key="carol").returncode == 0
    beside.unlink()
    assert office.deploy("--approval", other).returncode == UNREACHED
    assert [found["provenance"][0]["approval"]["approver"] for found in office.history()] == [CAROL, BOB]


def test_an_invalid_approval_is_refused_even_if_none_is_required(office: Office) -> None:
    assert office.approve().returncode == 0
    office.policy(approval={"required": "never", "valid_hours": 1e-6})
    office.refused(office.deploy(), "the approval is older than the 1e-06 h that deploy.yaml allows")
    office.policy()
    office.refused(office.deploy("--approval", office.plan), "cannot be parsed")
    office.refused(office.deploy("--approval", office.folder / "none"), "none: cannot be read")
    beside = office.plan.with_name("plan.json.approval")
    beside.write_bytes(b"\xff\xfe")
    office.refused(office.deploy(), "is not an approval")
    beside.write_bytes(b" " * 70_000)
    office.refused(office.deploy(), "is too large")
    assert office.history() == []


def test_the_deployer_cannot_approve(office: Office) -> None:
    assert office.approve().returncode == 0
    office.git("config", "user.email", BOB)
    office.refused(office.deploy(), f"the approval is by {BOB}, who also deploys; no one may approve their own deploy")
    office.git("config", "user.email", "alice@example.net")
    login = office.deploy("--dry-run")
    assert login.returncode == UNREACHED
    office.policy(approval={"logins": {str(known_login()): [BOB]}})
    office.refused(office.deploy(), "no one may approve their own deploy")
    office.policy(approval={"deployer": "key"})
    office.refused(office.deploy(), "deploy.yaml requires the deployer's key; sign as yourself with --key FILE")
    office.refused(office.deploy("--key", office.folder / "bob"), "no one may approve their own deploy")
    assert office.deploy("--key", office.folder / "carol").returncode == UNREACHED
    (one,) = office.history()
    assert (one["provenance"][0]["signer"], one["provenance"][0]["approval"]["approver"]) == (CAROL, BOB)


def test_a_worker_accepts_an_approval_only_for_the_deploy_it_was_signed_for(office: Office) -> None:
    plan = planning.read(office.plan.read_text(encoding="utf-8"), "the plan")
    project, now_s = Project.open(office.fabric), time.time()

    def signer(signature: str) -> str:
        requester = Requester("ab" * 16, "carol@mgmt01", (), signature=signature)
        return Control.of(project, requester=requester).begun("deploy", plan).signer

    def signed(found: Plan = plan, lab: str = "", at_s: float = now_s) -> str:
        return deployer_signature(found, lab, office.folder / "carol", at_s)

    assert (signer(signed()), signer("")) == (CAROL, "")
    late, early = signed(at_s=now_s - 25 * 3600), signed(at_s=now_s + 300)
    for other in (signed(replace(plan, fabric="other")), signed(lab="trial"), late, early, "no line at all"):
        with pytest.raises(NetkitError, match="the deployer has signed another deploy, or too long ago"):
            signer(other)
    moved = signed().replace(f" {now_s:.0f}\n", f" {now_s - 5:.0f}\n", 1)
    with pytest.raises(NetkitError, match="the deployer's signature is forged, damaged, or signed with a key"):
        signer(moved)
    (office.fabric / "allowed_signers").write_text("", encoding="utf-8")
    with pytest.raises(NetkitError, match="the deployer's signature is not signed with a key of"):
        signer(signed())


def known_login() -> str:
    return subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()


def test_an_approver_sees_the_plan_and_signs_only_what_the_local_intent_renders(office: Office) -> None:
    assert "is out of range; use more than 0 and at most 24" in office.approve("--valid-hours", "25").stderr
    asked = run("approve", office.plan, "--fabric", office.fabric, "--key", office.folder / "bob")
    assert (
        asked.stderr
        == f"error: Approve this for 1 device of small as {BOB}? There is no terminal to ask on; use --yes\n"
    )
    named = run("approve", office.plan, "--fabric", office.fabric, "--yes")
    assert_refused(named, "no key to sign with; give --key FILE")
    strange = office.approve("--as", CAROL)
    assert f"the approval is by {CAROL}, but its key belongs to {BOB}" in strange.stderr
    intent = office.fabric / "fabric.yaml"
    intent.write_text(intent.read_text(encoding="utf-8").replace("gpu", "host"), encoding="utf-8")
    assert office.approve().returncode == 3
    assert not office.plan.with_name("plan.json.approval").exists()


def test_the_local_intent_must_match_the_plan(office: Office) -> None:
    folder = office.fabric / "templates" / "nvue"
    folder.mkdir(parents=True)
    intent = office.fabric / "fabric.yaml"
    values = yaml.safe_load(intent.read_text(encoding="utf-8"))
    values["services"]["snmp"]["location"] = "another row"
    intent.write_text(yaml.safe_dump(values), encoding="utf-8")
    done = office.approve()
    assert_refused(done, "leaf01: the intent in", "differs from the one the plan was made for; check out the commit")


def test_the_signing_key_of_git_is_the_default(office: Office) -> None:
    office.git("config", "user.signingkey", str(office.folder / "bob"))
    done = run("approve", office.plan, "--fabric", office.fabric, "--yes")
    assert done.returncode == 0, done.stderr


def test_a_plan_that_changes_nothing_needs_no_approval(office: Office) -> None:
    office.policy(approval={"required": "always"}, hook=office.gate("exit 1"), reason="required")
    plan = office.folder / "nothing.json"
    office.scene.edit("leaf01", "startup.yaml", "spare", "gpu01:rail0")
    assert run("plan", "--fabric", office.fabric, "--running", office.scene.saved, "-o", plan).returncode == 0
    assert run("deploy", plan, "--fabric", office.fabric, "--yes").returncode == 0
    done = run("approve", plan, "--fabric", office.fabric, "--key", office.folder / "bob", "--yes")
    assert_refused(done, "the plan changes nothing")


def test_validate_reports_a_wrong_policy_and_deploy_refuses_it(office: Office) -> None:
    office.policy(hok={})
    for done in (office.deploy(), run("validate", "--fabric", office.fabric)):
        assert_refused(done, "deploy.yaml:1: hok: unknown key 'hok'")


def test_history_accepts_limit_for_one_run_only(office: Office) -> None:
    assert_refused(run("history", "--fabric", office.fabric, "--limit", "leaf01"), "--limit selects diffs of one run")
    assert office.deploy().returncode == UNREACHED
    shown = run("history", "last", "--fabric", office.fabric, "--limit", "leaf01").stdout
    assert "description: spare → gpu01:rail0" in shown
    assert "description" not in run("history", "last", "--fabric", office.fabric, "--limit", "leaf02").stdout

"""`netkit plan`, `deploy`, `rollback` and `history` on a running lab: real SSH, switches with NVUE, real FRR."""

import getpass
import json
import os
import pty
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from netkit import plan as planning
from netkit.plan.model import ReachabilityLoss
from tests.cli.site import PATIENCE_S, Site
from tests.command import ROOT
from tests.lab.running import RunningLab, intent, needs_lab, running, until, write_fabric

pytestmark = needs_lab
SWITCHES = ("leaf01", "leaf02", "spine01", "spine02")
UNCHANGED = "small: nothing to change on 6 devices\n\nNot netkit's: 20 entries on 4 devices\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """A lab that all tests of this file share; each restores the devices."""
    fabric = write_fabric(tmp_path_factory.mktemp("live"), intent())
    with running(fabric) as found:
        yield found


@pytest.fixture
def site(lab: RunningLab, tmp_path: Path) -> Iterator[Site]:
    """The lab for a new user, with its devices as intended."""
    site = Site(lab, tmp_path, has_forks=False)
    yield site
    write_fabric(lab.fabric, intent())
    done = site.netkit("deploy", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr


def test_plan_deploy_plan_again_and_roll_back(site: Site, tmp_path: Path) -> None:
    before = {name: site.lab.shell(name, "nv config show -o json") for name in SWITCHES}
    assert site.netkit("plan", "--detailed-exitcode").returncode == 0
    site.move("row 4")
    planned = site.netkit("plan", "--detailed-exitcode", "-o", tmp_path / "plan.json")
    assert (planned.returncode, planned.stderr) == (2, "")
    assert "system-location: row 3 → row 4" in planned.stdout

    tried = site.netkit("deploy", tmp_path / "plan.json", "--dry-run")
    assert (tried.returncode, tried.stderr) == (0, "")
    assert "dry run of small: 6 devices: 2 unchanged, 4 ready\n" in tried.stdout
    assert site.runs() == []

    # What a file says of losses counts neither for nor against a deploy: the order is computed again.
    plan = planning.read((tmp_path / "plan.json").read_text(encoding="utf-8"))
    loss = ReachabilityLoss(4, ("gpu01",), ("rail0",))
    edited = replace(plan, steps=tuple(replace(step, after=loss) for step in plan.steps))
    (tmp_path / "plan.json").write_text(planning.write(edited), encoding="utf-8")
    deployed = site.netkit("deploy", tmp_path / "plan.json", "--yes")
    assert deployed.returncode == 0, deployed.stderr
    assert deployed.stdout.endswith("small: 6 devices: 4 done, 2 unchanged\n")
    assert site.netkit("plan", "--detailed-exitcode").stdout == UNCHANGED
    again = site.netkit("deploy", "--yes")
    assert (again.returncode, again.stdout) == (0, UNCHANGED)

    back = site.netkit("rollback", "last", "--yes")
    assert back.returncode == 0, back.stderr
    assert {name: site.lab.shell(name, "nv config show -o json") for name in SWITCHES} == before
    listed = site.netkit("history").stdout.splitlines()
    assert [line.split("  ")[-1] for line in listed[1:]] == ["4 done", "4 done, 2 unchanged"]
    assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in site.runs())


def test_a_terminal_shows_a_prompt_and_progress(site: Site) -> None:
    site.move("row 5")
    refused, code = dialogue(site, "n", "deploy", "--limit", "leaf01")
    assert code == 1
    assert "Deploy to 1 device of small? [y/N]" in refused
    assert "nothing was changed" in refused
    assert site.location("leaf01") == "row 3"
    shown, code = dialogue(site, "y", "deploy", "--limit", "leaf01")
    assert code == 0, shown
    assert "wave 1 of 1" in shown
    assert "1/1  leaf01: done" in shown
    assert site.location("leaf01") == "row 5"


def test_a_device_changed_by_hand_after_the_plan_is_refused_with_the_difference(site: Site, tmp_path: Path) -> None:
    site.move("row 6")
    assert site.netkit("plan", "-o", tmp_path / "plan.json").returncode == 0
    site.lab.shell("spine02", "nv set system snmp-server system-location attic && nv config apply -y")
    done = site.netkit("deploy", tmp_path / "plan.json", "--yes")
    assert done.returncode == 3, done.stdout
    assert "spine02: refused, runs its earlier configuration: changed since the plan was made" in done.stdout
    assert "system snmp-server system-location was row 3, is attic" in done.stdout
    assert [site.location(name) for name in SWITCHES] == ["row 3", "row 3", "row 3", "attic"]


def test_a_plan_of_another_intent_is_refused(site: Site, tmp_path: Path) -> None:
    site.move("row 7")
    assert site.netkit("plan", "-o", tmp_path / "plan.json").returncode == 0
    site.move("row 8")
    done = site.netkit("deploy", tmp_path / "plan.json", "--yes")
    assert done.returncode == 3, done.stdout
    assert "the intended configuration is not the one the plan was made for; make the plan again" in done.stdout
    assert {site.location(name) for name in SWITCHES} == {"row 3"}


@pytest.mark.whole
def test_the_second_of_two_concurrent_deploys_is_refused_and_names_the_first(site: Site) -> None:
    site.move("row 9")
    with held(site, "deploy", "--yes", "--confirm-within", "900") as first:
        second = site.netkit("deploy", "--yes")
        assert (second.returncode, len(site.runs())) == (3, 1), second.stderr
        who = f"{getpass.getuser()} on {socket.gethostname()}, process {first.pid}"
        assert f"small is being deployed by {who}, run {site.runs()[0].name}, since 20" in second.stderr
    said, complained = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 0, complained
    assert said.endswith("small: 6 devices: 4 done, 2 unchanged\n")


def test_an_interrupted_deploy_stops_in_order_and_is_resumed(site: Site) -> None:
    site.move("row 10")
    with held(site, "deploy", "--yes", "--confirm-within", "900") as first:
        first.send_signal(signal.SIGINT)
    said, complained = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 1, complained
    assert "interrupted: no further device starts" in complained
    assert "not started" in said
    assert json.loads(site.netkit("history", "--format", "json").stdout)[0]["result"] == "not finished"
    resumed = site.netkit("deploy", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert {site.location(name) for name in SWITCHES} == {"row 10"}


GATE = """#!/bin/sh
cat >"$GATE_SAW"
python3 - "$GATE_SAW" <<'EOS'
import json, sys
asked = json.load(open(sys.argv[1]))
print(json.dumps({"allow": asked["verb"] in open("gate.open").read().split(), "reason": asked["verb"]}))
EOS
"""


@pytest.mark.whole
def test_deploy_resume_and_rollback_call_the_hook_and_record_the_approver(site: Site, tmp_path: Path) -> None:
    """In a lab, deploy.yaml applies only if it says so; a rollback proceeds although the hook is broken."""
    fabric, plan, key = site.lab.fabric, tmp_path / "plan.json", tmp_path / "bob"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    public = " ".join(key.with_suffix(".pub").read_text(encoding="utf-8").split()[:2])
    (fabric / "allowed_signers").write_text(f"bob@example.net {public}\n", encoding="utf-8")
    policy = {"hook": {"command": ["./gate"]}, "approval": {"required": "always"}, "on_lab": True}
    gate, gate_open = fabric / "gate", fabric / "gate.open"
    gate.write_text(GATE.replace("$GATE_SAW", str(tmp_path / "asked")), encoding="utf-8")
    gate.chmod(0o755)
    gate_open.write_text("deploy\n", encoding="utf-8")
    (fabric / "deploy.yaml").write_text(yaml.safe_dump(policy), encoding="utf-8")
    try:
        site.move("row 11")
        assert site.netkit("plan", "-o", plan).returncode == 0
        real = site.real(fabric, "approve", plan, "--key", key, "--yes", "-o", tmp_path / "real")
        assert real.returncode == 0, real.stderr
        other = site.netkit("deploy", plan, "--yes", "--approval", tmp_path / "real")
        assert "the approval is for the real devices, not the lab" in other.stderr
        approved = site.netkit("approve", plan, "--key", key, "--yes")
        assert approved.returncode == 0, approved.stderr
        with held(site, "deploy", str(plan), "--yes", "--reason", "CHG-11", "--confirm-within", "900") as first:
            first.send_signal(signal.SIGINT)
        first.communicate(timeout=PATIENCE_S)
        shut = site.netkit("deploy", "--resume")
        assert (shut.returncode, shut.stderr) == (1, "error: the hook refuses: resume; nothing was changed\n")
        gate_open.write_text("resume\n", encoding="utf-8")
        resumed = site.netkit("deploy", "--resume", "--reason", "CHG-12")
        assert resumed.returncode == 0, resumed.stderr
        shut = site.netkit("rollback", "last", "--yes")
        assert (shut.returncode, shut.stderr) == (1, "error: the hook refuses: rollback; nothing was changed\n")
        assert {site.location(name) for name in SWITCHES} == {"row 11"}
        back = site.netkit("rollback", "last", "--yes", "--reason", "INC-3", "--skip-hook", "the gate is down")
        assert back.returncode == 0, back.stderr
        assert {site.location(name) for name in SWITCHES} == {"row 3"}
    finally:
        (fabric / "deploy.yaml").unlink()
    undo, run = json.loads(site.netkit("history", "--format", "json").stdout)
    (taken_back,) = undo["provenance"]
    assert (taken_back["verb"], taken_back["undone"], taken_back["reason"]) == ("rollback", run["run"], "INC-3")
    assert (taken_back["hook"], taken_back["hook_reason"]) == ("skipped", "the gate is down")
    begun, gone_on = run["provenance"]
    assert [(one["verb"], one["reason"], one["hook"]) for one in (begun, gone_on)] == [
        ("deploy", "CHG-11", "allowed"),
        ("resume", "CHG-12", "allowed"),
    ]
    assert begun["approval"]["approver"] == "bob@example.net"
    reported = site.netkit("history", run["run"]).stdout
    assert reported.count("system-location: row 3 → row 11") == len(SWITCHES)


def test_devices_are_reached_only_after_they_are_trusted(site: Site, tmp_path: Path) -> None:
    fabric = write_fabric(tmp_path / "fabric", intent())
    folder = site.lab.home / site.lab.name
    devices = json.loads((folder / "lab.json").read_text(encoding="utf-8"))["devices"]
    switch, host = devices["leaf01"], devices["gpu01"]
    access = {
        "key_file": str(folder / "key"),
        "addresses": {name: device["address"] for name, device in devices.items()},
        "platforms": {
            "nvue": {"user": switch["login"], "port": switch["port"]},
            "linux": {"user": host["login"], "port": host["port"]},
        },
    }
    (fabric / "access.yaml").write_text(yaml.safe_dump(access), encoding="utf-8")

    stranger = site.real(fabric, "plan")
    assert stranger.returncode == 4
    assert stranger.stdout.count("netkit trust") == len(devices), stranger.stdout
    unasked = site.real(fabric, "trust")
    assert (unasked.returncode, unasked.stderr.count("use --yes")) == (3, 1), unasked.stderr
    first = site.real(fabric, "trust", "--yes")
    assert first.returncode == 0, first.stderr
    assert first.stdout.endswith(f"6 devices trusted in {fabric}/known_hosts\n")
    assert site.real(fabric, "trust").stdout == "6 devices trusted already\n"
    assert site.real(fabric, "plan", "--detailed-exitcode").stdout == UNCHANGED

    known = fabric / "known_hosts"
    lines = known.read_text(encoding="utf-8").splitlines()
    mine = next(line for line in lines if switch["address"] in line)
    other = next(line for line in lines if devices["leaf02"]["address"] in line)
    forged = " ".join([mine.split()[0], *other.split()[1:]])
    known.write_text("\n".join([forged if line == mine else line for line in lines]) + "\n", encoding="utf-8")
    changed = site.real(fabric, "trust", "--yes")
    assert changed.returncode == 4
    assert "error: leaf01: its ssh-ed25519 is not the trusted one" in changed.stderr
    assert site.real(fabric, "trust", "--yes", "--replace", "--limit", "leaf01").returncode == 0
    assert sorted(known.read_text(encoding="utf-8").splitlines()) == sorted(lines)


def test_devices_that_hang_or_send_garbage_are_listed_and_the_others_planned(site: Site) -> None:
    access = site.lab.fabric / "access.yaml"
    access.write_text("timeout_s: 10\n", encoding="utf-8")
    site.move("row 11")
    try:
        for fault, device in (("hangs", "leaf02"), ("garbage", "spine01"), ("unreachable", "gpu01")):
            assert site.lab.lab("break", fault, device).returncode == 0
        done = site.netkit("plan", "--detailed-exitcode")
        assert (done.returncode, done.stderr) == (4, ""), done.stderr
        assert done.stdout.startswith("small: 2 of 3 devices change, highest risk low, 3 could not be read\n")
        listed = done.stdout.partition("because they could not be read:\n")[2].splitlines()
        assert [line.split(":")[0].strip() for line in listed] == ["leaf02", "spine01", "gpu01"]
    finally:
        access.unlink()
        assert site.lab.lab("heal", "--all").returncode == 0


@contextmanager
def held(site: Site, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a deploy, and stop its process (SIGSTOP) for the length of a block once its first wave has begun."""
    process = site.started(*words)
    try:
        until(lambda: any(b'"wave"' in _journal(run) for run in site.runs()), "the first wave", PATIENCE_S)
        process.send_signal(signal.SIGSTOP)
        yield process
    finally:
        process.send_signal(signal.SIGCONT)


def _journal(run: Path) -> bytes:
    file = run / "journal.jsonl"
    return file.read_bytes() if file.exists() else b""


def dialogue(site: Site, answer: str, *words: str) -> tuple[str, int]:
    """Run a command on a terminal, answer its question, and return its output and exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        command = site.words(*words)
        os.execve(command[0], command, {**site.environment, "TERM": "xterm-256color"})  # noqa: S606
    shown, is_answered, deadline_s = b"", False, time.monotonic() + PATIENCE_S
    while select.select([terminal], [], [], max(0, deadline_s - time.monotonic()))[0]:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            break
        if not is_answered and b"[y/N]" in shown:
            os.write(terminal, f"{answer}\n".encode())
            is_answered = True
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return shown.decode(errors="replace"), os.waitstatus_to_exitcode(status)

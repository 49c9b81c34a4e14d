"""`netkit lab` without a running lab: help, errors and their exit codes, and folders left behind."""

import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from netkit.cli import lab_up
from netkit.errors import LabError
from netkit.lab import keeper, personality
from netkit.lab.folder import INIT, RECORD, LabFolder
from netkit.project.project import Project
from netkit.terminal import progress
from tests.command import Done, run, start
from tests.lab.running import RunningLab, intent, lab_home, needs_lab, on_platform, until, write_fabric

START = "netkit lab up --fabric DIR"
VERBS = ("up", "down", "status", "check", "exec", "ssh", "logs", "break", "heal", "incast", "calm", "load", "restart")


def netkit_lab(home: Path, verb: str, *arguments: str | Path, **changes: Any) -> Done:
    way = start if verb == "up" and "t" in arguments else run  # a lab outlives its command
    return way("lab", verb, *arguments, timeout_s=120, NETKIT_LAB_DIR=str(home), **changes)


def test_help_names_every_verb_and_each_has_its_own_help(tmp_path: Path) -> None:
    said = netkit_lab(tmp_path, "--help").stdout.partition("Commands:\n")[2]
    listed = [" ".join(entry.split()) for entry in re.split(r"\n  (?=\S)", said)]
    assert tuple(line.split()[0] for line in listed) == VERBS
    for line in listed:
        verb, _, summary = line.strip().partition(" ")
        done = netkit_lab(tmp_path, verb, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Usage: netkit lab {verb} ")
        assert summary.strip() in " ".join(done.stdout.split())


REFUSED = {
    "down": f"no lab runs; {START}",
    "check": f"no lab runs; {START}",
    "check --lab x": f"the lab x does not run; {START}",
    "status --lab x": f"the lab x does not run; {START}",
    "exec leaf01 -- true": f"no lab runs; {START}",
    "ssh leaf01": f"no lab runs; {START}",
    "exec leaf01 --lab x -- true": f"the lab x does not run; {START}",
    "exec --lab=x leaf01 ls -h --lab": f"the lab x does not run; {START}",
    "exec leaf01 --name x -- true": "--name is now --lab NAME; see netkit --help",
    "down -f inventory/reference": "-f is now --fabric DIR; see netkit --help",
    "logs": f"no lab runs; {START}",
    "logs leaf01 --lab x": f"the lab x does not exist; {START}",
    "restart leaf01": f"no lab runs; {START}",
    "calm": f"no lab runs; {START}",
    "load off": f"no lab runs; {START}",
    "load half": "'half' is neither on nor off; netkit lab load on|off",
    "incast gpu01:rail0": f"no lab runs; {START}",
    "heal --all": f"no lab runs; {START}",
    "break dim-optic leaf01:swp1s0": f"no lab runs; {START}",
    "break": "a fault and a place are required; netkit lab break FAULT DEVICE[:PORT]; --list explains faults",
    "up": "Missing option '--fabric'; see netkit --help",
    "up --fabric missing": "no fabric folder missing; check --fabric, or start one with `netkit init`",
    "up --fabric inventory/reference --lab ../x": "'../x' is not a valid name for a lab;"
    " use letters, digits, dots and dashes",
    "up --fabric inventory/reference --patience 0": "Invalid value for '--patience': it must be greater than or equal"
    " to 1; see netkit --help",
    "up --fabric inventory/reference --configs missing": "missing has no files of leaf01; netkit render --out writes"
    " such a folder",
    "nonsense": "No such command 'nonsense'; see netkit --help",
}


@pytest.mark.parametrize("line", REFUSED)
def test_impossible_requests_are_refused_in_one_line(tmp_path: Path, line: str) -> None:
    if "--configs" in line and personality.without_root() and os.geteuid() != 0:
        pytest.skip("this kernel allows no namespaces")
    done = netkit_lab(tmp_path, *line.split())
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"error: {REFUSED[line]}\n")


def test_status_and_down_without_a_lab_change_nothing(tmp_path: Path) -> None:
    said = {"status": "no lab runs\n", "down --all": "", "down --lab x": "x was not up\n"}
    for line, text in said.items():
        done = netkit_lab(tmp_path, *line.split())
        assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("record", ["{{{", "[]", '{"devices": 3}', "\xff"])
@pytest.mark.parametrize("init", ["abc def", "1", "", "0 0", "-1 5", "\xff"])
def test_garbage_left_behind_is_reported_and_removed(tmp_path: Path, record: str, init: str) -> None:
    lab = LabFolder(tmp_path / "old")
    lab.path.mkdir()
    (lab.path / RECORD).write_bytes(record.encode("latin-1"))
    (lab.path / INIT).write_bytes(init.encode("latin-1"))
    assert (lab.record(), lab.is_alive, lab.last_words()) == ({}, False, "")
    lab.end()
    assert not lab.path.exists()


def test_the_log_of_a_lab_that_died_can_still_be_printed(tmp_path: Path) -> None:
    folder = tmp_path / "dead"
    folder.mkdir()
    (folder / RECORD).write_text(json.dumps({"devices": {"leaf01": {}}}), encoding="utf-8")
    (folder / "keeper.log").write_text("what went wrong\n", encoding="utf-8")
    assert netkit_lab(tmp_path, "logs").stdout == "what went wrong\n"
    assert netkit_lab(tmp_path, "status").stdout == "dead  1 devices  ?  left behind; netkit lab down removes it\n"
    refused = netkit_lab(tmp_path, "logs", "leaf09")
    assert (refused.returncode, refused.stderr) == (3, "error: the lab dead has no device 'leaf09'; it has leaf01\n")
    assert netkit_lab(tmp_path, "down").stdout == "dead is down\n"


def test_a_folder_too_deep_for_a_socket_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    done = netkit_lab(deep, "up", "--fabric", "inventory/reference")
    assert done.returncode == 3
    assert "is too long for the path of a socket; set NETKIT_LAB_DIR to a shorter folder" in done.stderr


def test_missing_packages_are_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(personality, "PROGRAMS", {"/missing/snmpd": "snmpd", "/missing/zebra": "frr"})
    monkeypatch.setattr(personality, "TOOLS", {"no-such-tool-here": "iproute2"})
    with pytest.raises(LabError) as refused:
        personality.check()
    assert str(refused.value) == (
        "the lab needs packages that are not installed: frr iproute2 snmpd; apt-get install frr iproute2 snmpd"
    )


def test_a_user_without_subordinate_ids_gets_instructions(tmp_path: Path) -> None:
    file = tmp_path / "subuid"
    file.write_text("other:100000:65536\nme:100000:10\n", encoding="utf-8")
    with pytest.raises(LabError) as refused:
        keeper._range(file, "me", 1000)  # noqa: SLF001 - the real files are not the test's
    assert str(refused.value) == (
        f"{file} does not assign 65535 subordinate IDs to me; "
        "as root: usermod --add-subuids 100000-165535 me, or another range that is free"
    )


def test_a_long_step_is_printed_again_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    written = threading.Event()

    def written_line(_: object, line: str) -> None:
        sys.stderr.write(line)
        written.set()

    def ask(_: object, verb: str) -> dict[str, object]:
        is_up = verb == "progress" and bool(asked) and written.wait(5)
        asked.append(verb)
        step = {"step": "convergence", "done": 3, "total": 10, "seconds": 4.2}
        return {**step, "failure": "", "is_up": is_up, "shortfalls": [], "block": "127.9"}

    asked: list[str] = []
    monkeypatch.delenv("NETKIT_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "LINE_S", 0.01)
    monkeypatch.setattr(progress, "say", written_line)
    monkeypatch.setattr(lab_up, "ask_keeper", ask)
    project = Project.open(write_fabric(tmp_path / "fabric", on_platform("frr", intent(purpose="lab"), version="10.2")))
    assert lab_up._follow(LabFolder(tmp_path), project, is_new=True) == 0  # noqa: SLF001 - without booting a lab
    # Two threads print: their order varies.
    assert {*capsys.readouterr().err.splitlines()} == {"convergence", "convergence 3/10, 4 s"}


@needs_lab
def test_a_lab_is_found_by_its_own_fabric_only_and_enters_nodes_with_a_clean_environment(tmp_path: Path) -> None:
    small = write_fabric(tmp_path / "fabric", on_platform("frr", intent(purpose="lab"), version="10.2"))
    with lab_home() as home:
        lab = RunningLab("t", home, small)
        first = netkit_lab(home, "up", "--bare", "--lab", "t", "--fabric", small, PATH="/usr/bin:/bin")
        assert first.returncode == 0, first.stderr
        again = netkit_lab(home, "up", "--bare", "--lab", "t", "--fabric", small)
        assert (again.returncode, again.stderr) == (0, "")
        assert again.stdout == first.stdout.replace("is up", "runs already, as it was booted")
        other = netkit_lab(home, "up", "--lab", "t", "--fabric", "inventory/reference")
        assert other.returncode == 3
        assert other.stderr == f"error: the lab t already runs the fabric in {small}; choose another name with --lab\n"
        shown = netkit_lab(home, "exec", "leaf01", "--", "env", WORD_OF_OURS="x", TERM="dumb").stdout
        assert "WORD_OF_OURS" not in shown
        assert "TERM=dumb\n" in shown
        for place in ("gpu01", "leaf01:swp1s0"):
            refused = lab.lab("incast", place)
            assert refused.returncode == 3
            assert "name a NIC as HOST:NIC" in refused.stderr
        (home / "t" / "keeper.log").write_text("", encoding="utf-8")
        os.kill(LabFolder(home / "t").init(), 9)
        until(lambda: "left behind" in netkit_lab(home, "status").stdout, "the end of the lab shows")

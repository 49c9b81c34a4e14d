"""ansible-runner on this machine: its input, its output, and the files it leaves behind."""

import re
import socket
import tempfile
from pathlib import Path

import pytest

from netkit.access.connect import connect
from netkit.access.settings import Endpoint
from netkit.errors import AccessError, DeviceError
from netkit.platforms.linux.driver import HostResult, LinuxDriver, check_together, play, shipped_playbooks

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
OWN = """
- hosts: platform_linux
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "{{ lookup('ansible.builtin.env', 'NETKIT_SECRET_TOKEN') }}{{ lookup('ansible.builtin.env', 'HOME') }}"
      register: said
    - ansible.builtin.fail:
        msg: "here is [{{ said.msg }}] {{ batch }}"
      when: inventory_hostname == 'gpu02'
"""
HANGING = """
- hosts: platform_linux
  gather_facts: false
  tasks:
    - ansible.builtin.command: "{{ 'sleep 20' if inventory_hostname == 'gpu02' else 'true' }}"
    - ansible.builtin.command: "true"
"""
PASSWORD = "pa55w0rd-of-a-test"  # noqa: S105 (of nobody)
SHOWING = """
- hosts: platform_linux
  gather_facts: false
  vars:
    seen: "{{ lookup('ansible.builtin.pipe', 'cd ' ~ playbook_dir ~ '/files; cat netkit-change near far') }}"
  tasks:
    - ansible.builtin.fail:
        msg: "{{ seen }} {{ lookup('ansible.builtin.file', 'hosts-rollback.yml').splitlines()[0] }}"
"""
SEEKING = """
- hosts: platform_linux
  gather_facts: false
  vars:
    seen: "{{{{ playbook_dir | dirname }}}} /proc/[0-9]*/cmdline /proc/[0-9]*/environ"
  tasks:
    - ansible.builtin.fail:
        msg: "found [{{{{ lookup('ansible.builtin.pipe', 'grep -rlF -f {words} ' ~ seen ~ ' 2>/dev/null || true') }}}}]"
"""


def test_a_host_that_cannot_be_reached_is_an_access_error() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    wanted = {"ansible_host": "127.0.0.1", "ansible_port": port, "netkit_rails": []}
    result = play("hosts-verify.yml", {"gpu01": wanted}, {})["gpu01"]
    error = result.error()
    assert isinstance(error, AccessError)
    assert "gpu01: " in str(error)
    assert "refused" in str(error)


def test_a_users_own_playbook_comes_first_and_sees_no_secret_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETKIT_SECRET_TOKEN", "s3cr3t")
    monkeypatch.setenv("HOME", "/home/of")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    own = tmp_path / "playbooks"
    own.mkdir()
    (own / "hosts-verify.yml").write_text(OWN, encoding="utf-8")
    results = play("hosts-verify.yml", {"gpu01": LOCAL, "gpu02": LOCAL}, {"batch": 7}, own=[own])
    assert results["gpu01"].error() is None
    error = results["gpu02"].error()
    assert isinstance(error, DeviceError)
    assert "gpu02: here is [/home/of] 7" in str(error)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_host_that_hangs_in_a_task_fails_by_itself(tmp_path: Path) -> None:
    (tmp_path / "hosts-verify.yml").write_text(HANGING, encoding="utf-8")
    results = play("hosts-verify.yml", {"gpu01": LOCAL, "gpu02": LOCAL}, {}, own=[tmp_path], step_s=8)
    assert (results["gpu01"].is_seen, results["gpu01"].error()) == (True, None)
    error = results["gpu02"].error()
    assert isinstance(error, AccessError)  # it may still go on
    assert "Timed out after 8 second(s)" in str(error)
    assert "; check its log and its disk; one that is only slow needs a longer --confirm-within" in str(error)


def test_own_folders_override_those_of_netkit_file_by_file(tmp_path: Path) -> None:
    for name in ("near", "far"):
        (tmp_path / name / "files").mkdir(parents=True)
        (tmp_path / name / "files" / name).write_text(name, encoding="utf-8")
        (tmp_path / name / "files" / "netkit-change").write_text(f"of the {name} one", encoding="utf-8")
    (tmp_path / "far" / "hosts-verify.yml").write_text(SHOWING, encoding="utf-8")
    endpoint = Endpoint("gpu01", "linux", "h", 22, "root")
    own = [tmp_path / "near", tmp_path / "far"]
    driver = connect(endpoint, str, [shipped_playbooks(), *own])  # a checkout has the shipped ones beside `inventory/`
    assert isinstance(driver, LinuxDriver)
    assert list(driver.own_playbooks) == own
    failure = play("hosts-verify.yml", {"gpu01": LOCAL}, {}, own=driver.own_playbooks)["gpu01"].failure
    assert failure.startswith("of the near onenearfar # Takes the last change of GPU hosts back")


def test_only_playbooks_of_a_users_own_run_in_check_mode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    played: list[str] = []

    def play(*_: object, checks: str = "") -> dict[str, HostResult]:
        played.append(checks)
        return {"gpu01": HostResult("gpu01", failure="it is refused")}

    def driver(*folders: Path, password: str = "") -> LinuxDriver:
        found = LinuxDriver("h", "root", password, optional_args={"device": "gpu01", "playbooks": folders})
        monkeypatch.setattr(found, "variables", dict)
        return found

    monkeypatch.setattr("netkit.platforms.linux.driver._play", play)
    assert check_together([driver(), driver(shipped_playbooks())]) == {}
    assert played == []
    found = check_together([driver(), driver(tmp_path)])
    assert (played, {name: str(error) for name, error in found.items()}) == (
        ["--check"],
        {"gpu01": "gpu01: it is refused"},
    )
    with pytest.raises(DeviceError, match="different passwords"):
        check_together([driver(password="one"), driver(password="other")])  # noqa: S106 (of nobody)


def test_own_folders_that_cannot_be_copied_are_reported(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=f"the playbooks in {tmp_path}/gone cannot be copied: No such file"):
        play("hosts-verify.yml", {"gpu01": LOCAL}, {}, own=[tmp_path / "gone"])


def test_a_password_is_in_no_command_line_no_environment_and_no_file(tmp_path: Path) -> None:
    """Inspected by a playbook while it runs; a word of the inventory proves that it would find one."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "hosts-verify.yml").write_text(SEEKING.format(words=tmp_path / "words"), encoding="utf-8")
    for word, is_found in ((PASSWORD, False), ("a-known-word", True)):
        (tmp_path / "words").write_text(f"{word}\n", encoding="utf-8")
        hosts = {"gpu01": {**LOCAL, "known": "a-known-word"}}
        failure = play("hosts-verify.yml", hosts, {}, password=PASSWORD, own=[own])["gpu01"].failure
        assert bool(re.fullmatch(r"found \[.*/inventory/hosts\.json.*\]", failure)) == is_found, failure
        assert (failure != "found []") == is_found


def test_an_unreadable_playbook_reports_no_host_as_done(tmp_path: Path) -> None:
    (tmp_path / "hosts-verify.yml").write_text("- hosts: [", encoding="utf-8")
    error = play("hosts-verify.yml", {"gpu01": LOCAL}, {}, own=[tmp_path])["gpu01"].error()
    assert isinstance(error, DeviceError)
    assert "the run ended before this host" in str(error)

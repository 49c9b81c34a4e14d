"""ansible-runner on this machine: what it is given, what it says, and what it leaves behind."""

import socket
import tempfile
from pathlib import Path

import pytest

from netkit.errors import AccessError, DeviceError
from netkit.platforms.linux.transport import play

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


def test_a_playbook_that_cannot_be_read_leaves_no_host_for_done(tmp_path: Path) -> None:
    (tmp_path / "hosts-verify.yml").write_text("- hosts: [", encoding="utf-8")
    error = play("hosts-verify.yml", {"gpu01": LOCAL}, {}, own=[tmp_path])["gpu01"].error()
    assert isinstance(error, DeviceError)
    assert "its turn never came" in str(error)

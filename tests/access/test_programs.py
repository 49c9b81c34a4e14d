"""Programs started by netkit do not get its secrets in their environment."""

from pathlib import Path

import pytest

from netkit.access.secrets import SecretStore
from netkit.access.settings import SecretSource
from netkit.private import without_secrets
from tests.command import start


def test_a_program_has_the_environment_of_netkit_without_its_secrets() -> None:
    given = {"PATH": "/bin", "NETKIT_SECRET_SNMP_AUTH": "a", "NETKIT_PASSWORD": "b", "NETKIT_STORE": "c"}
    assert without_secrets(given) == {"PATH": "/bin"}


def test_a_command_that_prints_a_secret_does_not_get_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_SECRET_OTHER", "theirs")
    monkeypatch.setenv("NETKIT_PASSWORD", "theirs too")
    monkeypatch.setenv("VAULT_TOKEN", "kept")
    command = "sh -c 'echo \"[$NETKIT_SECRET_OTHER$NETKIT_PASSWORD$VAULT_TOKEN]\"'"
    assert SecretStore(SecretSource(command=command))("NAME") == "[kept]"


def test_git_gets_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\nenv >>{seen}\nexit 128\n", encoding="utf-8")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:/usr/bin:/bin")
    monkeypatch.setenv("NETKIT_SECRET_SNMP_AUTH", "unseen")
    start("plan", "--fabric", "inventory/reference", "--against", "git:HEAD")
    environment = seen.read_text(encoding="utf-8")
    assert "PATH=" in environment
    assert "unseen" not in environment

"""Entries of an OpenSSH configuration, tested with a real sshd on loopback."""

import getpass
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netkit.errors import AccessError
from netkit.platforms.ssh import SshLine, SshTarget, source_address

SSHD = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin yes
"""
ENTRY = """
Host {name}
  HostName 127.0.0.1
  Port {port}
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking yes
  {more}
"""


@dataclass(frozen=True)
class Server:
    """A running sshd, and the folder with its keys."""

    folder: Path
    port: int

    def entry(self, name: str, *lines: str) -> str:
        return ENTRY.format(name=name, port=self.port, folder=self.folder, more="\n  ".join(lines))

    def line(self, *entries: str, name: str = "leaf01", key: str | None = None, timeout_s: float = 20) -> SshLine:
        """The connection to a device that is reached by these entries."""
        config = self.folder / "config"
        config.write_text("\n".join(entries), encoding="utf-8")
        key_file = self.folder / key if key else None
        target = SshTarget(name, name, "", 22, "", key_file, self.folder / "known_hosts", config, timeout_s=timeout_s)
        return SshLine(target)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "user", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key = " ".join((folder / "host.pub").read_text(encoding="utf-8").split()[:2])
    names = ("leaf01", f"[127.0.0.1]:{port}")
    (folder / "known_hosts").write_text("".join(f"{name} {key}\n" for name in names), encoding="utf-8")
    (folder / "sshd_config").write_text(SSHD.format(port=port, folder=folder), encoding="utf-8")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield Server(folder, port)
    finally:
        process.terminate()
        process.wait()


def answer(line: SshLine) -> str:
    try:
        line.open()
        return line.run("echo reached", 20).stdout.strip()
    finally:
        line.close()


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("ProxyCommand none",),
        ("ProxyJump none",),
        ("ProxyCommand nc 127.0.0.1 1", "IdentitiesOnly yes"),
    ],
    ids=["direct", "no-command", "no-jump", "first-entry-wins"],
)
def test_an_entry_sets_user_key_and_proxy(server: Server, lines: tuple[str, ...]) -> None:
    first = server.entry(
        "leaf01", f"User {getpass.getuser()}", f"IdentityFile {server.folder}/user", "ProxyCommand none"
    )
    own = server.entry("leaf01", f"User {getpass.getuser()}", f"IdentityFile {server.folder}/user", *lines)
    entries = (first, own) if lines and "nc" in lines[0] else (own,)
    assert answer(server.line(*entries)) == "reached"


@pytest.mark.parametrize("hops", ["jump1", "jump1,jump2"])
def test_jump_hosts_are_passed_in_order(server: Server, hops: str) -> None:
    login = (f"User {getpass.getuser()}", f"IdentityFile {server.folder}/user", "IdentitiesOnly yes")
    jumps = [server.entry(name, *login) for name in ("jump1", "jump2")]
    assert answer(server.line(*jumps, server.entry("leaf01", *login, f"ProxyJump {hops}"))) == "reached"


def test_a_key_in_access_yaml_overrides_that_of_the_entry(server: Server) -> None:
    entry = server.entry("leaf01", f"User {getpass.getuser()}", f"IdentityFile {server.folder}/other")
    assert answer(server.line(entry, key="user")) == "reached"


def test_a_wrong_key_is_reported(server: Server) -> None:
    login = (f"User {getpass.getuser()}", f"IdentityFile {server.folder}/other", "IdentitiesOnly yes")
    line = server.line(server.entry("leaf01", *login))
    with pytest.raises(AccessError, match="leaf01: refuses the login"):
        answer(line)


def test_an_unreachable_jump_host_is_reported_at_once(server: Server) -> None:
    login = (f"User {getpass.getuser()}", f"IdentityFile {server.folder}/user")
    dead = "Host dead\n  HostName 127.0.0.1\n  Port 1\n"
    line = server.line(dead, server.entry("leaf01", *login, "ProxyJump dead"), timeout_s=3600)
    with pytest.raises(AccessError, match="leaf01: no SSH session at leaf01 port 22: "):
        answer(line)


def test_a_proxy_command_gets_no_secret_of_netkit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETKIT_SECRET_SNMP_AUTH", "hidden")
    line = server.line(server.entry("leaf01", f'ProxyCommand sh -c "env >{server.folder}/environment"'), timeout_s=3600)
    with pytest.raises(AccessError, match="leaf01: no SSH session at leaf01 port 22: "):
        answer(line)
    given = (server.folder / "environment").read_text(encoding="utf-8")
    assert "PATH=" in given
    assert "hidden" not in given


@pytest.mark.parametrize(
    ("lines", "source"),
    [
        (("HostName 127.0.0.1",), ""),
        (("HostName 127.0.0.1", "ProxyJump 198.51.100.7"), "198.51.100.7"),
        (("ProxyJump me@198.51.100.6:22,me@198.51.100.7:2222",), "198.51.100.7"),
        (("ProxyJump bastion",), "198.51.100.9"),
        (("ProxyJump none", "HostName 127.0.0.1"), ""),
        (("ProxyCommand nc %h %p",), ""),
    ],
)
def test_connections_come_from_this_machine_or_the_last_jump_host(
    lines: tuple[str, ...], source: str, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    entry = "\n  ".join(("Host leaf01", *lines))
    config.write_text(f"Host bastion\n  HostName 198.51.100.9\n{entry}\n", encoding="utf-8")
    assert source_address("leaf01", config) == source

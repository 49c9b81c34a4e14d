"""How Ansible reaches a GPU host, as the variables of an inventory."""

import shlex
from pathlib import Path
from typing import Protocol


class Reachable(Protocol):
    """What says where a host is, and as whom to log in."""

    @property
    def host(self) -> str:
        """Address or name."""

    @property
    def port(self) -> int:
        """Where its sshd listens."""

    @property
    def user(self) -> str:
        """The account."""

    @property
    def key_file(self) -> Path | None:
        """Private key; without one the agent is asked."""

    @property
    def known_hosts(self) -> Path | None:
        """The only file that is asked which key the host has; by default the user's own."""

    @property
    def ssh_config(self) -> Path | None:
        """OpenSSH's configuration, for jump hosts."""

    @property
    def timeout_s(self) -> float:
        """How long to wait for it."""


def variables(target: Reachable) -> dict[str, object]:
    """Return how Ansible reaches a host; its password, if it has one, is not among them."""
    words = ["-oStrictHostKeyChecking=yes"]
    words += [f"-oUserKnownHostsFile={target.known_hosts}"] if target.known_hosts is not None else []
    words += ["-F", str(target.ssh_config)] if target.ssh_config is not None else []
    words += ["-oIdentitiesOnly=yes"] if target.key_file is not None else []
    found: dict[str, object] = {
        "ansible_host": target.host,
        "ansible_port": target.port,
        "ansible_user": target.user,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_pipelining": True,
        # One connection a step: what is checked after a change is checked over a new one, and the host key with it.
        "ansible_ssh_args": "-o ControlMaster=no -o ControlPath=none",
        "ansible_ssh_common_args": shlex.join(words),
        "ansible_timeout": max(1, round(target.timeout_s)),
    }
    if target.key_file is not None:
        found["ansible_ssh_private_key_file"] = str(target.key_file)
    if target.user != "root":
        found["ansible_become"] = True
    return found

"""Known SSH host keys, read from one file; connecting never adds any."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import paramiko
from paramiko.hostkeys import HostKeyEntry, HostKeys

from netkit.errors import AccessError, Problem
from netkit.private import read_text

OWN_FILE = "~/.ssh/known_hosts"


def known_as(host: str, port: int) -> str:
    """What known_hosts calls a server."""
    return host if port == 22 else f"[{host}]:{port}"


def known_keys(file: Path | None, name: str) -> Iterator[Any]:
    """Yield the keys of `host`, or `[host]:port`, in a known_hosts file; only lines that may match are decoded."""
    file = file or Path(OWN_FILE).expanduser()
    try:
        lines = [line.strip() for line in read_text(file, "replace").splitlines()]
    except FileNotFoundError:
        return
    except OSError as error:
        raise AccessError(Problem(f"{file} cannot be read: {error.strerror}", "fix its permissions")) from None
    revoked = {line.split()[-1] for line in lines if line.startswith("@revoked ")}
    for line in lines:
        if line.startswith(("#", "@")) or not (line.startswith("|") or name in line.partition(" ")[0].split(",")):
            continue
        try:
            entry = HostKeyEntry.from_line(line)
        except (ValueError, paramiko.SSHException):
            continue
        if entry is None or entry.key is None or entry.key.get_base64() in revoked:
            continue
        for known in entry.hostnames:
            if known in {name, HostKeys.hash_host(name, known) if known.startswith("|1|") else name}:
                yield entry.key
                break


class MissingKey(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    """Refuses a device with an unknown key and reports the key it presented."""

    def __init__(self, device: str, file: Path | None) -> None:
        self.device = device
        self.file = file

    def missing_host_key(self, client: object, hostname: str, key: Any) -> NoReturn:
        del client
        place = self.file or OWN_FILE
        presented = f"{hostname} presents {key.get_name()} {key.fingerprint}"
        raise AccessError(
            Problem(
                f"{self.device}: its SSH host key is not in {place}: {presented}", "compare it, then run netkit trust"
            )
        )


class KeyShownError(Exception):
    """Ends a connection that was only opened to read the key."""


class KeptKey(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    """Records the key a device presents and stops."""

    key: Any = None

    def missing_host_key(self, client: object, hostname: str, key: Any) -> NoReturn:
        del client, hostname
        self.key = key
        raise KeyShownError

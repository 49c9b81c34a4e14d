"""The SSH host keys that are known: read from one file, and never added to by connecting."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import paramiko
from paramiko.hostkeys import HostKeyEntry, HostKeys

from netkit.errors import AccessError, Problem

OWN_FILE = "~/.ssh/known_hosts"


def known_keys(file: Path | None, name: str) -> Iterator[Any]:
    """Yield the keys a file has for `host`, or `[host]:port`; only lines that may be about it are decoded."""
    lines = _lines(file or Path(OWN_FILE).expanduser())
    revoked = {line.split()[-1] for line in lines if line.startswith("@revoked ")}
    for line in lines:
        if line.startswith(("#", "@")) or not (line.startswith("|") or name in line.partition(" ")[0].split(",")):
            continue
        entry = _entry(line)
        if entry is not None and entry.key.get_base64() not in revoked and _is_about(entry, name):
            yield entry.key


def _lines(file: Path) -> list[str]:
    try:
        return [line.strip() for line in file.read_text(encoding="utf-8", errors="replace").splitlines()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise AccessError(Problem(f"{file} cannot be read: {error.strerror}", "mend its permissions")) from None


def _entry(line: str) -> Any:
    try:
        entry = HostKeyEntry.from_line(line)
    except (ValueError, paramiko.SSHException):
        return None
    return entry if entry is not None and entry.key is not None else None


def _is_about(entry: Any, name: str) -> bool:
    """Whether an entry is about a host; names may be hashed."""
    return any(known in {name, _hashed(name, known)} for known in entry.hostnames)


def _hashed(name: str, like: str) -> str:
    return str(HostKeys.hash_host(name, like)) if like.startswith("|1|") else name


class MissingKey(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    """Refuses a device whose key is not known, with what it showed."""

    def __init__(self, device: str, file: Path | None) -> None:
        self.device = device
        self.file = file

    def missing_host_key(self, client: object, hostname: str, key: Any) -> NoReturn:
        """Refuse."""
        del client
        place = self.file or OWN_FILE
        shown = f"{hostname} shows {key.get_name()} {key.fingerprint}"
        raise AccessError(
            Problem(f"{self.device}: its SSH host key is not in {place}: {shown}", "compare it, then run netkit trust")
        )


class KeyShownError(Exception):
    """Ends a connection that was only made to see the key."""


class KeptKey(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    """Keeps the key a device shows, and goes no further."""

    key: Any = None

    def missing_host_key(self, client: object, hostname: str, key: Any) -> NoReturn:
        """Keep it."""
        del client, hostname
        self.key = key
        raise KeyShownError

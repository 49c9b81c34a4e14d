"""What is private: files and folders only for their owner, and secrets in the environment of programs.

Only regular files are read: a pipe in the place of one would block, and a device may never end.
"""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_folder(path: Path) -> None:
    """Create a private folder and its missing parents."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    keep_private(path)


def open_file(file: Path, flags: int) -> int:
    """Open a private file, and create it when it is missing."""
    handle = os.open(file, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    keep_private(file)
    return handle


def regular(path: str, flags: int) -> int:
    """Open a regular file, as the opener of `open`, which refuses folders itself; raise OSError for anything else."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return handle


def read_bytes(file: Path) -> bytes:
    """Read a regular file."""
    with open(file, "rb", opener=regular) as stream:
        return stream.read()


def read_text(file: Path, errors: str = "strict") -> str:
    """Read a regular file of UTF-8."""
    with open(file, encoding="utf-8", errors=errors, opener=regular) as stream:
        return stream.read()


def keep_private(path: Path) -> None:
    """Remove the permissions of group and others, if the path exists; OSError when it belongs to another user."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if stat.S_IMODE(status.st_mode) & OTHERS and (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        path.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS)


SECRET_PREFIX = "NETKIT_SECRET_"  # noqa: S105 (how names of variables begin)
PASSWORD = "NETKIT_PASSWORD"  # noqa: S105 (the name of a variable)
WITH_PASSWORDS = frozenset({PASSWORD, "NETKIT_STORE"})
"""The URL of a store may hold the password of its database."""


def without_secrets(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Copy an environment, by default that of this process, without netkit's secrets."""
    known = os.environ if environment is None else environment
    return {
        name: value
        for name, value in known.items()
        if name not in WITH_PASSWORDS and not name.startswith(SECRET_PREFIX)
    }

"""One deploy at a time for each fabric. The lock dies with its process, so none is ever left behind."""

import fcntl
import getpass
import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netkit.errors import DeployError, Problem

UNSAFE = re.compile(r"[^\w.-]")


class LockedError(DeployError):
    """Somebody else is changing this fabric."""


@contextmanager
def held(folder: Path, fabric: str, run: str) -> Iterator[None]:
    """Hold the lock of a fabric for the length of a block; LockedError names who has it already."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{UNSAFE.sub('_', fabric)}.lock"
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remedy = "wait until it has ended, or end it"
            raise LockedError(Problem(f"{fabric} is being deployed by {_holder(file)}", remedy)) from None
        _write(handle, _me(run))
        yield
        _write(handle, "")
    finally:
        os.close(handle)


def _write(handle: int, text: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)


def _me(run: str) -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return json.dumps({"user": user, "pid": os.getpid(), "host": socket.gethostname(), "run": run})


def _holder(file: Path) -> str:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return f"{found['user']} on {found['host']}, process {found['pid']}, run {found['run']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "somebody who has just begun"

"""Locks that end with the last process that holds them, however it ends."""

import fcntl
import os
from pathlib import Path


def taken(file: Path) -> int | None:
    """Take a lock and return the open file that holds it; None when another process has it.

    Children that are given the open file hold the lock too: when this process is killed, they keep it to their end.
    """
    held = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    return held

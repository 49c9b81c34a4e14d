"""Locks that end with the last process that holds them, however it ends."""

import fcntl
import os
from pathlib import Path

from netkit.private import open_file


def taken(file: Path) -> int | None:
    """Take a lock and return the open file that holds it; None when another process has it.

    Children that are given the open file hold the lock too: when this process is killed, they keep it to their end.
    """
    held = open_file(file, os.O_RDWR)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    return held

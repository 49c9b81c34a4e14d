"""Folders and files for their owner alone, whatever the umask says and whoever made them before."""

import os
import stat
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing; OSError when that cannot be."""
    for one in reversed([one for one in (path, *path.parents) if not one.exists()]):
        one.mkdir(mode=0o700, exist_ok=True)
    keep_private(path)


def open_file(file: Path, flags: int) -> int:
    """Open a file that is made when it is missing; OSError when that cannot be."""
    handle = os.open(file, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    keep_private(file)
    return handle


def keep_private(path: Path) -> None:
    """Take away what others may do with something, where it exists; OSError when it is somebody else's."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    if stat.S_IMODE(found.st_mode) & OTHERS and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)

"""Usage of a device's file systems and whether they are writable, read through its shell.

Only the folders that are written to are queried, so that a hanging network file system elsewhere does not block.
"""

import re
from collections.abc import Sequence

from netkit.facts import Absent, Facts
from netkit.facts.device import FileSystem
from netkit.platforms.view import View

WRITTEN = ("/etc", "/tmp", "/var", "/var/log")  # noqa: S108 - only queried
"""Where settings, uploads, state and logs go on every NOS."""
COLUMNS = "fstype,size,used,avail,itotal,iavail,target"
BLOCK_BYTES = 1024
ROW = re.compile(r"(\S{1,40})((?: +(?:-?[0-9]{1,18}|-)){5}) (/.{0,200})", re.ASCII)
MOUNT = re.compile(r"\S+ (/\S*) \S+ (\S+) [0-9]+ [0-9]+", re.ASCII)
READ_ONLY = frozenset({"ro", "emergency_ro", "shutdown"})
"""After an error, newer ext4 keeps `rw` among the options and adds the actual state."""
NOT_SHOWN = Absent("df shows no file system")


def view(*more: str) -> View:
    """Build the view of the file systems that hold the usual folders and `more`; missing folders are skipped."""
    return View((command(*more),), frozenset({"file_systems"}), parse)


def command(*more: str) -> str:
    """Build the command that prints usage and mount options of those file systems."""
    folders = (*WRITTEN, *more)
    parts = [folder.split("/") for folder in folders]
    above = sorted({"/", *("/".join(names[:count]) for names in parts for count in range(2, len(names) + 1))})
    mounts = f"grep -E '^[^ ]+ ({'|'.join(above)}) ' /proc/mounts"
    return f"df -k --output={COLUMNS} {' '.join(folders)} 2>/dev/null; {mounts}"


def parse(output: str) -> Facts:
    """Parse file systems by mount point."""
    lines = output.splitlines()
    options = {found[1]: found[2].split(",") for found in map(MOUNT.fullmatch, lines) if found}
    rows = (found for found in map(ROW.fullmatch, lines) if found)
    file_systems = {row[3]: _file_system(row[1], row[2].split(), options.get(row[3])) for row in rows}
    return Facts(file_systems=file_systems or NOT_SHOWN)


def _file_system(kind: str, numbers: Sequence[str], options: Sequence[str] | None) -> FileSystem:
    size, used, free, files, free_files = (max(0, int(number)) if number != "-" else None for number in numbers)
    return FileSystem(
        size_bytes=_bytes(size),
        used_bytes=_bytes(used),
        free_bytes=_bytes(free),
        files=files or None,
        free_files=free_files if files else None,
        is_read_only=None if options is None else not READ_ONLY.isdisjoint(options),
        kind=kind,
    )


def _bytes(blocks: int | None) -> int | None:
    return None if blocks is None else blocks * BLOCK_BYTES

"""How full the file systems of a device are, and whether they can be written to: by its shell.

Only the folders that are written to are asked about, so that a file server that hangs elsewhere keeps nobody waiting.
"""

import re
from collections.abc import Iterator, Sequence

from netkit.facts import Absent, Facts
from netkit.facts.device import FileSystem
from netkit.platforms.view import View

WRITTEN = ("/etc", "/tmp", "/var", "/var/log")  # noqa: S108 - only asked about
"""Where settings, uploads, state and logs go on any of them."""
COLUMNS = "fstype,size,used,avail,itotal,iavail,target"
BLOCK_BYTES = 1024
ROW = re.compile(r"(\S{1,40})((?: +(?:-?[0-9]{1,18}|-)){5}) (/.{0,200})", re.ASCII)
MOUNT = re.compile(r"\S+ (/\S*) \S+ (\S+) [0-9]+ [0-9]+", re.ASCII)
READ_ONLY = frozenset({"ro", "emergency_ro", "shutdown"})
"""After an error newer ext4 leaves `rw` where it stands, and adds what it has become."""
NOT_SHOWN = Absent("df shows no file system")


def view(*more: str) -> View:
    """Return the view of what the usual folders and some more are on; a folder that is not there is on nothing."""
    return View((command(*more),), frozenset({"file_systems"}), parse)


def command(*more: str) -> str:
    """Return the command that asks for the room in those folders, and how what they are on is mounted."""
    folders = (*WRITTEN, *more)
    above = sorted({"/", *(part for folder in folders for part in _way_to(folder))})
    mounts = f"grep -E '^[^ ]+ ({'|'.join(above)}) ' /proc/mounts"
    return f"df -k --output={COLUMNS} {' '.join(folders)} 2>/dev/null; {mounts}"


def _way_to(folder: str) -> Iterator[str]:
    parts = folder.split("/")
    yield from ("/".join(parts[:count]) for count in range(2, len(parts) + 1))


def parse(shown: str) -> Facts:
    """Return the file systems by where they are mounted."""
    lines = shown.splitlines()
    options = {found[1]: found[2].split(",") for found in map(MOUNT.fullmatch, lines) if found}
    rows = (found for found in map(ROW.fullmatch, lines) if found)
    told = {row[3]: _file_system(row[1], row[2].split(), options.get(row[3])) for row in rows}
    return Facts(file_systems=told or NOT_SHOWN)


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

"""The flash, and what EOS itself runs on."""

from netkit.facts import Absent, Facts
from netkit.facts.system import FileSystem
from netkit.platforms.eos.facts.command import FILE_SYSTEMS
from netkit.platforms.shown import Shown, parsed, rows, table, text, whole

WRITTEN = ("file:", "flash:")
"""Startup-config and images are in flash; sessions and logs below the root, which lies in memory."""
BLOCK_BYTES = 1024
PERMISSIONS = {"rw": False, "ro": True}


def file_systems(shown: str) -> Facts:
    """Return those that EOS and whoever configures it write to, by their prefix."""
    listed = {text(one.get("prefix")): one for one in rows(table(parsed(shown)).get("fileSystems"))}
    found = {name: _file_system(listed[name]) for name in WRITTEN if name in listed}
    return Facts(file_systems=found or Absent(f"{FILE_SYSTEMS} lists no flash"))


def _file_system(one: Shown) -> FileSystem:
    """Return a file system; sizes are told in kB."""
    size, free = (_bytes(whole(one.get(key))) for key in ("size", "free"))
    return FileSystem(
        size_bytes=size,
        used_bytes=None if size is None or free is None else max(0, size - free),
        free_bytes=free,
        is_read_only=PERMISSIONS.get(text(one.get("permission"))),
        kind=text(one.get("linuxFs")) or text(one.get("fsType")),
    )


def _bytes(blocks: int | None) -> int | None:
    return None if blocks is None else blocks * BLOCK_BYTES

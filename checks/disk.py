"""Disks: space for a configuration, a log and an upload, and permission to write them."""

from collections.abc import Iterator, Mapping

from netkit.facts import Absent
from netkit.facts.device import FileSystem
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fail, skip, warn

ROOM_BYTES = 8 << 20
"""Room for a configuration, a copy to restore, and logs; on a small file system, a part of this."""
ROOM_FILES = 100
KB = 1024
PART = 0.01
"""Of a file system that is small itself, this part is room enough."""


@device_check(layer="host", needs=["file_systems"], follows=[])
def room(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The file systems that a device writes to have free space.

    On a full one a configuration is not saved, a change stops half way or is lost at the next boot, and nothing is
    logged. Look for old images, core dumps, logs and packages: `du -xh / | sort -h | tail`, on EOS `dir flash:`.
    """
    most = context.limits.disk_warn_percent
    full, filling = list[str](), list[str]()
    for name, one in _file_systems(device).items():
        left, shares = next(_too_little(one), ""), tuple(_shares(one))
        if left:
            full.append(f"{name} ({left})")
        elif not shares:
            yield skip("", f"how full {name} is was not reported")
        elif max(shares) > most:
            filling.append(f"{name} ({max(shares):.0f} % used)")
        else:
            yield PASSED
    if full:
        yield fail("", f"no room is left on {_listed(full)}", "remove what is old there before anything is changed")
    if filling:
        yield warn("", f"little room is left on {_listed(filling)}", "remove what is old there", limit_percent=most)


@device_check(layer="host", needs=["file_systems"], follows=[])
def writable(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The file systems that a device writes to are not mounted read-only.

    Linux remounts a file system read-only once its disk returns errors: the device keeps running, but nothing can be
    saved or logged. See `dmesg`; the disk may be about to fail.
    """
    del context
    systems = _file_systems(device)
    found = [name for name, one in systems.items() if one.is_read_only]
    if found:
        yield fail("", f"{_listed(found)} can only be read", "see dmesg; check the disk before the next boot")
    for name, one in systems.items():
        if one.is_read_only is None:
            yield skip("", f"whether {name} can be written to was not reported")
        elif not one.is_read_only:
            yield PASSED


def _file_systems(device: DeviceContext) -> Mapping[str, FileSystem]:
    found = device.facts.file_systems
    return {} if isinstance(found, Absent) else found


def _too_little(one: FileSystem) -> Iterator[str]:
    """Yield what is left, where that is not enough to save a configuration."""
    if one.size_bytes and one.free_bytes is not None and one.free_bytes < min(ROOM_BYTES, one.size_bytes * PART):
        yield f"{one.free_bytes / KB:,.0f} of {one.size_bytes / KB:,.0f} kB"
    if one.files and one.free_files is not None and one.free_files < min(ROOM_FILES, one.files * PART):
        yield f"{one.free_files:,} of {one.files:,} files"


def _shares(one: FileSystem) -> Iterator[float]:
    """Yield how much of a file system is used, as `df` reports it, and of the files it can hold, in percent."""
    if one.used_bytes is not None and one.free_bytes is not None and one.used_bytes + one.free_bytes:
        yield 100 * one.used_bytes / (one.used_bytes + one.free_bytes)
    if one.free_files is not None and one.files:
        yield 100 * (one.files - one.free_files) / one.files


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

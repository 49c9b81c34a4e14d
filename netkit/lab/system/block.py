"""Loopback networks: a lab takes one for itself, by an address that only one process of the machine can hold."""

import secrets
import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netkit.errors import LabError, Problem

BLOCKS = range(64, 120)
PREFIX = "netkit-lab-127."


def claim(lab: str) -> tuple[str, socket.socket]:
    """Return a loopback network such as `127.64` that no other lab has, and what holds it as long as it is open."""
    holder = socket.socket(socket.AF_UNIX)
    first = zlib.crc32(lab.encode()) % len(BLOCKS)
    for offset in range(len(BLOCKS)):
        number = BLOCKS[(first + offset) % len(BLOCKS)]
        try:
            holder.bind(f"\0{PREFIX}{number}")
        except OSError:
            continue
        return f"127.{number}", holder
    raise LabError(Problem("every loopback network for labs is taken", "end a lab: netkit lab down"))


@contextmanager
def announced() -> Iterator[None]:
    """Count as a lab already while one is being started, until it has a network of its own."""
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind(f"\0{PREFIX}start-{secrets.token_hex(8)}")
        yield


def any_claimed() -> bool:
    """Whether any lab runs or starts on this machine, whoever's it is."""
    return f"@{PREFIX}" in Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")

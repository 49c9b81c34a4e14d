"""Loopback networks: a lab takes one for itself, by an address that only one process of the machine can hold."""

import fcntl
import json
import os
import secrets
import socket
import zlib
from collections.abc import Iterator, Mapping
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


KEYS = ("gc_thresh1", "gc_thresh2", "gc_thresh3")
PLACES = tuple(f"{family}/{key}" for family in ("ipv4", "ipv6") for key in KEYS)
ENTRIES_PER_CABLE = 5
ROOM = 3  # times what is needed, where it costs nothing
SAVED = Path("/run/netkit-neighbor-table.json")


def needed(cables: int, neighbors: int = 0) -> Mapping[str, int]:
    """Return thresholds for a number of cables: both ends learn each other, by IPv4 and IPv6."""
    most = max(1024, (cables * ENTRIES_PER_CABLE + neighbors) * (ROOM if os.geteuid() == 0 else 1))
    return {"gc_thresh1": most // 4, "gc_thresh2": most // 2, "gc_thresh3": most}


def make_room(cables: int) -> None:
    """Raise the thresholds, and write down what they were before the first lab did."""
    wanted = needed(cables)
    now = {place: _read(place) for place in PLACES}
    short = {place: wanted[place.partition("/")[2]] for place in now if now[place] < wanted[place.partition("/")[2]]}
    if os.geteuid() != 0:
        short = {place: value for place, value in short.items() if place.endswith("gc_thresh3")}
    if not short:
        return
    if os.geteuid() != 0:
        limit = min(now["ipv4/gc_thresh3"], now["ipv6/gc_thresh3"])
        raise LabError(
            Problem(
                f"{cables} cables need a larger neighbour table than this machine's ({limit} entries)",
                f"as root: sysctl net.ipv4.neigh.default.gc_thresh3={wanted['gc_thresh3']} "
                f"net.ipv6.neigh.default.gc_thresh3={wanted['gc_thresh3']}, or run the lab as root",
            )
        )
    with _alone():
        if not SAVED.exists():
            SAVED.write_text(json.dumps({place: _read(place) for place in PLACES}), encoding="utf-8")
        for place in sorted(short, reverse=True):  # the highest first: the kernel wants them in order
            _write(place, max(short[place], _read(place)))


def give_back() -> None:
    """Restore the thresholds when the last lab of the machine is gone, whoever's it is."""
    if os.geteuid() != 0:
        return
    with _alone():
        if not SAVED.exists() or any_claimed():
            return
        for place, value in sorted(json.loads(SAVED.read_text(encoding="utf-8")).items()):
            _write(place, value)
        SAVED.unlink()


@contextmanager
def _alone() -> Iterator[None]:
    """Keep out labs of other folders, whose common lock is another."""
    folder = os.open(SAVED.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _place(place: str) -> Path:
    family, _, key = place.partition("/")
    return Path(f"/proc/sys/net/{family}/neigh/default/{key}")


def _read(place: str) -> int:
    return int(_place(place).read_text(encoding="ascii"))


def _write(place: str, value: int) -> None:
    _place(place).write_text(str(value), encoding="ascii")

"""Whether the rails of a GPU host carry traffic, by what the host itself shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

QUIET_BYTES_PS = 1 << 16
"""LLDP, ARP and a few pings do not count as traffic."""
CONNECTED = frozenset({"RC", "UC", "XRC_INI", "XRC_TGT"})
"""Queue pairs of the kernel that carry data; those of other types are there on every host."""
PHYSICAL = re.compile(r"^ *([rt]x_bytes_phy): (\d+)$", re.MULTILINE)
WORD_BYTES = 4
NET = Path("/sys/class/net")
Counters = dict[str, dict[str, int]]


def counters(rails: Iterable[str]) -> Counters:
    """The bytes each rail has moved: as an interface, by RDMA, and on the wire, with what bypasses the host."""
    return {rail: {**_files(rail), **_wire(rail)} for rail in rails}


def verdict(rails: list[str], before: Counters, since: float, window_s: float) -> tuple[bool, str]:
    """Whether the rails carry no traffic, and why; `before` are counters of the time `since`."""
    addresses = _addresses(rails)
    busy = _queue_pairs(rails) or _connections(addresses)
    if busy:
        return False, busy
    if not addresses:
        return True, "none of its rails had an address"
    time.sleep(max(0.0, since + window_s - time.monotonic()))
    after, passed_s = counters(rails), time.monotonic() - since
    for rail in rails:
        if before[rail].keys() != after[rail].keys():
            return False, f"the counters of {rail} cannot be compared"
        moved = [after[rail][name] - count for name, count in before[rail].items()]
        if min(moved, default=0) < 0:
            return False, f"counters of {rail} were reset"
        if max(moved, default=0) > QUIET_BYTES_PS * passed_s:
            return False, f"{rail} carries {max(moved) / passed_s / 1e6:.1f} MB/s"
    return True, f"its rails carried nothing for {window_s:g} s, with no queue pairs and no TCP sessions"


def _files(rail: str) -> dict[str, int]:
    places = [
        *(NET / rail / "statistics").glob("[rt]x_bytes"),
        *(NET / rail / "device" / "infiniband").glob("*/ports/*/counters/port_*_data"),
    ]
    return {str(place): int(place.read_text()) * (WORD_BYTES if "infiniband" in str(place) else 1) for place in places}


def _wire(rail: str) -> dict[str, int]:
    return {name: int(count) for name, count in PHYSICAL.findall(_printed("ethtool", "-S", rail))}


def _addresses(rails: list[str]) -> set[str]:
    links: list[dict[str, Any]] = json.loads(_printed("ip", "-j", "address", "show") or "[]")
    return {
        one["local"]
        for link in links
        for one in link.get("addr_info", [])
        if link.get("ifname") in rails and one.get("scope") == "global"
    }


def _queue_pairs(rails: list[str]) -> str:
    """Which program or part of the kernel has queue pairs on a rail, if any has."""
    devices = {place.name: rail for rail in rails for place in (NET / rail / "device" / "infiniband").glob("*")}
    if not devices:
        return ""
    try:
        rows: list[dict[str, Any]] = json.loads(_printed("rdma", "-j", "resource", "show", "qp"))
    except ValueError:
        return _openers()
    for row in rows:
        is_used = row.get("type") in CONNECTED or ("pid" in row and row.get("type") not in {"GSI", "SMI"})
        if row.get("ifname") in devices and is_used:
            return f"{row.get('comm') or 'a program'} has queue pairs on {devices[row['ifname']]}"
    return ""


def _openers() -> str:
    """The programs with an open RDMA device, if `rdma` does not list those with queue pairs."""
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = str(place.readlink())
        except OSError:
            continue  # it has ended meanwhile
        if target.startswith("/dev/infiniband/uverbs"):
            return f"process {place.parts[2]} has {target} open"
    return ""


def _connections(addresses: set[str]) -> str:
    if not addresses:
        return ""
    for line in _printed("ss", "-H", "-t", "-n", "state", "established").splitlines():
        for end in line.split()[2:3]:
            local = end.rpartition(":")[0].strip("[]").partition("%")[0].removeprefix("::ffff:")
            if local in addresses:
                return f"there are TCP sessions over {local}"
    return ""


def _printed(*command: str) -> str:
    """What a command prints; nothing when it is not there or fails."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)  # noqa: S603
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""

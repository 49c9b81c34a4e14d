"""One GPU host in its own network namespace: veth rails, and any configuration that a test runs.

The namespace has no name and no uplink, and ends with the process that opened it.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

NETWORKD = Path("/lib/systemd/systemd-networkd")
needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
needs_networkd = pytest.mark.skipif(not NETWORKD.exists(), reason="systemd-networkd is not installed")


@dataclass(frozen=True)
class Lookup:
    """One query of the routing tables; empty parts are left out."""

    to: str
    source: str = ""
    oif: str = ""

    @property
    def command(self) -> str:
        """The query in iproute2 syntax."""
        return f"route get {self.to}" + f" from {self.source}" * bool(self.source) + f" oif {self.oif}" * bool(self.oif)


@dataclass(frozen=True)
class Answer:
    """The NIC and gateway that a lookup chose; both empty when it failed."""

    nic: str = ""
    gateway: str = ""


@dataclass(frozen=True)
class Kernel:
    """The kernel state of the namespace, and its answers."""

    routes: list[dict[str, Any]]
    rules: list[dict[str, Any]]
    links: list[dict[str, Any]]
    answers: dict[Lookup, Answer]
    output: str


def rails_up(interfaces: Iterable[str]) -> list[str]:
    """Commands that make rails with a far end, as a cable would."""
    lines = ["mount --make-rprivate /", "ip link set lo up"]
    for name in interfaces:
        lines += [f"ip link add {name} type veth peer name far-{name}", f"ip link set far-{name} up"]
    return lines


def networkd(units: Path, rules: int, routes: int) -> list[str]:
    """Commands that run systemd-networkd on a folder of units until that many rules and routes exist."""
    return [
        "mount -t tmpfs none /run",
        "mount -t tmpfs none /etc/systemd/network",
        "mount -t sysfs -o ro none /sys",  # so that networkd does not wait for udev
        f"cp -r {units}/. /etc/systemd/network/",
        "chmod -R a+rX /etc/systemd/network",
        "mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp",
        "chown -R systemd-network: /run/systemd/netif",
        f"{NETWORKD} 2>&1 & daemon=$!",
        "for try in $(seq 150); do",
        f'  [ "$(ip rule | grep -c "proto static")" -lt {rules} ] ||',
        f'  [ "$(ip -4 route show table all proto static | wc -l)" -lt {routes} ] || break',
        "  sleep 0.1",
        "done",
        "sleep 0.3",
        "kill $daemon; wait $daemon || true",
    ]


def run(folder: Path, setup: Iterable[str], lookups: Iterable[Lookup] = ()) -> Kernel:
    """Run commands in a fresh namespace, then return its state and its answers."""
    asked = list(lookups)
    batch, script = folder / "lookups", folder / "script"
    batch.write_text("".join(f"{lookup.command}\n" for lookup in asked), encoding="utf-8")
    shown = {"routes": "-4 route show table all", "rules": "-4 rule", "links": "-4 addr"}
    lines = ["set -eu", *setup]
    lines += [f"ip -j {command} >{folder}/{name}.json" for name, command in shown.items()]
    lines += [f"ip -j -force -batch {batch} >{folder}/answers 2>{folder}/failures || true"]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", str(script)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in shown}
    return Kernel(**found, answers=_answers(folder, asked), output=done.stdout)


def _answers(folder: Path, asked: list[Lookup]) -> dict[Lookup, Answer]:
    failures = (folder / "failures").read_text(encoding="utf-8")
    failed = {int(line) - 1 for line in re.findall(r"^Command failed .*:(\d+)$", failures, re.MULTILINE)}
    decoder, text, at, replies = json.JSONDecoder(), (folder / "answers").read_text(encoding="utf-8"), 0, []
    while at < len(text.rstrip()):
        reply, at = decoder.raw_decode(text, at)
        replies.append(Answer(reply[0]["dev"], reply[0].get("gateway", "")))
        at += len(text[at:]) - len(text[at:].lstrip())
    succeeded = [lookup for index, lookup in enumerate(asked) if index not in failed]
    assert len(replies) == len(succeeded)
    return {**dict.fromkeys(asked, Answer()), **dict(zip(succeeded, replies, strict=True))}

"""A lab of an unprivileged user, who exists only in a mount namespace of the test."""

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.command import ROOT
from tests.lab.running import PATIENCE_S, intent, lab_home, needs_lab, write_fabric

pytestmark = needs_lab

USER, UID = "netkit-test", 61234
RANGE = "3000000:65536"


def as_user(home: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """Run commands as a user with subordinate IDs, who sees this checkout wherever it is."""
    folders = {"repo": str(ROOT), "python": sys.base_prefix, "site": sysconfig.get_paths()["purelib"]}
    for name in (*folders, "home"):
        (home / name).mkdir()
    os.chown(home / "home", UID, UID)
    files = {
        "subuid": "",
        "subgid": "",
        "passwd": f"{USER}:x:{UID}:{UID}::{home}/home:/bin/sh",
        "group": f"{USER}:x:{UID}:",
    }
    steps = [f"mount --bind {shlex.quote(source)} {home}/{name}" for name, source in folders.items()]
    for name, line in files.items():
        before = Path("/etc", name).read_text(encoding="utf-8") if line else f"{USER}:{RANGE}\n"
        (home / name).write_text(before + (f"{line}\n" if line else ""), encoding="utf-8")
        steps += [f"touch /etc/{name}", f"mount --bind {home}/{name} /etc/{name}"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    environment = {
        "HOME": f"{home}/home",
        "NETKIT_LAB_DIR": f"{home}/home/l",
        "PYTHONPATH": f"{home}/repo:{home}/site",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LD_LIBRARY_PATH": f"{home}/python/lib",
        "PYTHON": f"{home}/python/bin/{version}",
        "NETKIT": f"{home}/python/bin/{version} -m netkit",
    }
    (home / "commands").write_text("set -e\n" + "\n".join(commands) + "\n", encoding="utf-8")
    words = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "env", "-i"]
    words += [f"{name}={value}" for name, value in environment.items()] + ["sh", f"{home}/commands"]
    script = "\n".join(["set -e", *steps, "cd /", f"exec {shlex.join(words)}"])
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_user_without_root_runs_a_whole_lab() -> None:
    with lab_home() as home:
        fabric = write_fabric(home / "fabric", intent())
        done = as_user(
            home,
            "trap '$NETKIT lab down --all >/dev/null' EXIT",
            f"$NETKIT lab up --fabric {fabric} --lab u",
            "$NETKIT lab check",
            "$NETKIT lab ssh leaf01 hostname",
            "$NETKIT lab exec gpu01 -- cat /etc/hostname",
            "$NETKIT lab break cnp-loss gpu01:rail0",
            "$NETKIT lab incast gpu01:rail0 --senders 1",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        block = done.stdout.partition(" on ")[2].partition("\n")[0]
        assert done.stdout.splitlines() == [
            f"u is up: 6 devices on {block}",
            "every host reaches every other: 4 pings on their own rail, 4 across",
            "leaf01",
            "gpu01",
            "cnp-loss at gpu01:rail0",
            "1 NICs send to gpu01:rail0 at line rate for 60 s",
        ]


def test_a_lab_too_large_for_the_neighbour_table_is_refused_with_the_sysctl() -> None:
    question = "from netkit.errors import LabError\nfrom netkit.lab import netlink\n"
    question += "try: netlink.make_room(10**7)\nexcept LabError as error: print(error)"
    with lab_home() as home:
        done = as_user(home, f"$PYTHON -c {shlex.quote(question)}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("10000000 cables need a larger neighbour table than this machine's (")
    assert "; as root: sysctl net.ipv4.neigh.default.gc_thresh3=50000000 net.ipv6." in done.stdout

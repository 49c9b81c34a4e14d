"""Whether this machine can run a lab, and in one line what is missing when it cannot."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from netkit.environment import without_secrets
from netkit.errors import LabError, Problem

TOOLS = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "vtysh": "frr",
    "nft": "nftables",
    "ssh-keygen": "openssh-client",
    "ping": "iputils-ping",
    "openssl": "openssl",
}
PROGRAMS = {
    "/usr/lib/frr/zebra": "frr",
    "/usr/lib/frr/frr-reload.py": "frr-pythontools",
    "/usr/sbin/sshd": "openssh-server",
    "/usr/sbin/snmpd": "snmpd",
    "/usr/sbin/lldpd": "lldpd",
    "/usr/sbin/netplan": "netplan.io",
    "/usr/bin/perl": "perl-base",
}
SUDO_SYSCTLS = {
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": ("0", "kernel.apparmor_restrict_unprivileged_userns"),
    "/proc/sys/kernel/unprivileged_userns_clone": ("1", "kernel.unprivileged_userns_clone"),
}
FIND_ON = os.pathsep.join(["/usr/sbin", "/sbin", "/usr/bin", "/bin"])


def check() -> None:
    """Refuse to start what cannot run here."""
    packages = sorted(set(missing_packages()))
    if packages:
        raise LabError(
            Problem(
                f"the lab needs packages that are not installed: {' '.join(packages)}",
                f"apt-get install {' '.join(packages)}",
            )
        )
    if os.geteuid() != 0:
        problem = without_root()
        if problem:
            raise LabError(problem)


def missing_packages() -> Iterator[str]:
    """Yield the Debian packages that are not there."""
    for tool, package in TOOLS.items():
        if not shutil.which(tool) and not shutil.which(tool, path=FIND_ON):
            yield package
    for program, package in PROGRAMS.items():
        if not Path(program).exists():
            yield package


def without_root() -> Problem | None:
    """Return what keeps an ordinary user from running a lab."""
    if not shutil.which("newuidmap"):
        return Problem("without root the lab needs newuidmap", "apt-get install uidmap, or run it as root")
    words = ["unshare", "-U", "-r", "-n", "true"]
    tried = subprocess.run(words, env=without_secrets(), capture_output=True, check=False)  # noqa: S603
    if tried.returncode == 0:
        return None
    for file, (value, name) in SUDO_SYSCTLS.items():
        if Path(file).exists() and Path(file).read_text(encoding="ascii").strip() != value:
            return Problem("this kernel keeps users from making namespaces", f"as root: sysctl {name}={value}")
    return Problem("this kernel keeps users from making namespaces", "run the lab as root")

"""The interface of a personality, the NOS or host simulated on a node; and the requirements of a lab."""

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Protocol

from netkit.errors import LabError, Problem
from netkit.lab.model.wiring import NicSettings
from netkit.lab.node import Node
from netkit.lab.services import RdmaBench
from netkit.lab.traffic.flow import ROCE_TOS
from netkit.private import without_secrets

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
    """Raise LabError if this machine cannot run a lab."""
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
    """Yield the Debian packages that are not installed."""
    for tool, package in TOOLS.items():
        if not shutil.which(tool) and not shutil.which(tool, path=FIND_ON):
            yield package
    for program, package in PROGRAMS.items():
        if not Path(program).exists():
            yield package


def without_root() -> Problem | None:
    """Why an ordinary user cannot run a lab here, or None."""
    if not shutil.which("newuidmap"):
        return Problem("without root the lab needs newuidmap", "apt-get install uidmap, or run the lab as root")
    words = ["unshare", "-U", "-r", "-n", "true"]
    tried = subprocess.run(words, env=without_secrets(), capture_output=True, check=False)  # noqa: S603
    if tried.returncode == 0:
        return None
    for file, (value, name) in SUDO_SYSCTLS.items():
        if Path(file).exists() and Path(file).read_text(encoding="ascii").strip() != value:
            return Problem("this kernel does not let users create namespaces", f"as root: sysctl {name}={value}")
    return Problem("this kernel does not let users create namespaces", "run the lab as root")


Elem = tuple[str, Mapping[str, str]]
"""An element of a gNMI path: a name and keys."""
GnmiLeaf = tuple[tuple[Elem, ...], object]
"""A path and its value: a number, a string, or a tree."""


class Call(Protocol):
    """A command typed on a node, with its terminal."""

    program: str
    arguments: tuple[str, ...]
    user: str
    folder: str
    """The caller's working directory, as the node sees it."""

    def out(self, text: str) -> None:
        """Print."""

    def err(self, text: str) -> None:
        """Print to standard error."""

    def ask(self, prompt: str) -> str:
        """Print a prompt and return the line typed; empty at the end of input."""

    def stdin(self) -> str:
        """All of standard input."""

    def file(self, path: str) -> Path:
        """The path on this side of a file named on the node; relative names start from the caller's folder."""


class Personality(ABC):
    """The NOS of one node. Calls are made with the node locked, so methods need no lock."""

    programs: ClassVar[tuple[str, ...]] = ()
    """The commands that `run` answers; everything else on the node's PATH is the real program."""
    login: ClassVar[str] = "root"
    rdma: RdmaBench | None = None
    """The RDMA runs of the lab, for hosts."""
    refreshes: ClassVar[bool] = False
    """Whether files below /sys are updated at login."""
    prompt: ClassVar[str] = "{user}@{host}:~$ "

    def __init__(self, node: Node) -> None:
        self.node = node
        self.nic_changes = 0
        """The number of NIC changes by commands."""

    @classmethod
    def locks(cls, call: Call) -> bool:
        """Whether the node is locked during a call.

        Not for calls that change nothing, and take long or are answered during a change.
        """
        del call
        return True

    def installed(self) -> tuple[str, ...]:
        """The programs of this device."""
        return self.programs

    @abstractmethod
    def provision(self, files: Mapping[str, str]) -> None:
        """Save rendered files as the startup configuration; raise ConfigRefusedError with every reason not to."""

    @abstractmethod
    def boot(self) -> None:
        """Apply the saved configuration, or factory defaults if nothing is saved."""

    @abstractmethod
    def run(self, call: Call) -> int:
        """Run one of `programs` and return its exit code."""

    def settings(self, interface: str) -> NicSettings | None:  # noqa: ARG002 - only hosts have NICs
        """How a host's NIC is set."""
        return None

    def data_tos(self, interface: str) -> int:
        """The IP TOS byte of a host's RoCE packets on a NIC."""
        del interface
        return ROCE_TOS

    https_port: ClassVar[int] = 0
    """The port of the NOS's HTTPS API; 0 if it has none."""

    def https(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        user: str = "",
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Answer an authenticated request: status, headers, body."""
        del method, path, headers, body, user
        return 404, {}, b""

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[GnmiLeaf]:
        """Yield what a gNMI server exposes below a path; raise LookupError if there is nothing."""
        raise LookupError(f"{target}{path}")

    def refresh(self) -> None:  # noqa: B027 - only hosts have files that move by themselves
        """Update files that programs read directly, such as counters below /sys."""

    def stop(self) -> None:  # noqa: B027 - most have nothing to stop
        """Stop what the personality itself started; processes inside the node end by themselves."""

"""A device of the lab as its personality sees it: its namespaces, files, daemons and hardware."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from netkit.design.fabric import Host, Switch
from netkit.lab.reading import NicReading, SwitchPortReading
from netkit.lab.state import SwitchState


class ConfigRefusedError(Exception):
    """The node rejects a configuration; the text is what its NOS would print."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """Exit code and output of a program."""

    exit_code: int
    stdout: str
    stderr: str


class Node(Protocol):
    """The view of a node that a personality acts on."""

    name: str
    device: Switch | Host
    kernel_names: Mapping[str, str]
    """NOS port name → kernel interface name."""
    saved: Path
    """The flash: a folder that survives a restart of the node."""

    def file(self, path: str) -> Path:
        """The path on this side of a file of the node, such as /etc/frr/frr.conf."""

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:
        """Run a program inside the node's namespaces."""

    def spawn(self, name: str, *command: str) -> None:
        """Start a long-running program inside the node under a name; its output goes to the log."""

    def end(self, name: str) -> None:
        """Stop a spawned program, and wait for it."""

    def is_running(self, name: str) -> bool:
        """Whether a spawned program still runs."""

    def ip(self, commands: Iterable[str]) -> str:
        """Run `ip -batch`; raise RuntimeError with the kernel's error."""

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        """Run a command in a running FRR daemon, over its own socket."""

    def realise(self, state: SwitchState) -> None:
        """Apply a configuration to kernel, FRR, SNMP, LLDP and the hardware model; raise ConfigRefusedError."""

    def ports(self) -> tuple[SwitchPortReading, ...]:
        """Read every port of a switch, in the order of the design."""

    def port(self, name: str) -> SwitchPortReading | None:
        """Read one port by its NOS name; None if the switch has no such port in use."""

    def nics(self, only: str = "") -> tuple[NicReading, ...]:
        """Read the NICs of a host, or only the one of an interface."""

    def clear_counters(self, port: str = "") -> None:
        """Reset the counters a NOS command resets."""

    def log(self, line: str) -> None:
        """Append a line to the node's log, which `netkit lab logs` shows."""

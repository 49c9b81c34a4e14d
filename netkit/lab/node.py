"""One device of the lab as its personality handles it: its namespaces, files, daemons and hardware."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from netkit.design.fabric import Host, Switch
from netkit.lab.reading import NicReading, SwitchPortReading
from netkit.lab.state import SwitchState


class ConfigRefusedError(Exception):
    """The node does not accept what it was given; the text is what its NOS would say."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """A program that ended."""

    exit_code: int
    stdout: str
    stderr: str


class Node(Protocol):
    """What a personality acts on."""

    name: str
    device: Switch | Host
    kernel_names: Mapping[str, str]
    """NOS port name → kernel interface name."""
    saved: Path
    """A folder that survives a restart of the node: flash. Only what is saved belongs here."""

    def file(self, path: str) -> Path:
        """Return where a file of the node, such as /etc/frr/frr.conf, is for this process."""

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60) -> ProgramResult:
        """Run a program inside the node's namespaces."""

    def spawn(self, name: str, *command: str) -> None:
        """Start a long-running program inside the node, under a name to end it by; its output goes to the log."""

    def end(self, name: str) -> None:
        """End what was spawned under a name, and wait for it."""

    def is_running(self, name: str) -> bool:
        """Whether what was spawned under a name still runs."""

    def ip(self, commands: Iterable[str]) -> str:
        """Run `ip -batch` with commands; raises RuntimeError with what the kernel refused."""

    def vty(self, command: str, daemon: str = "bgpd") -> str:
        """Ask a running FRR daemon over its own socket."""

    def realise(self, state: SwitchState) -> None:
        """Make kernel, FRR, SNMP, LLDP and the hardware model what a state says, or raise RefusedError."""

    def ports(self) -> tuple[SwitchPortReading, ...]:
        """Return what each port of a switch shows now, in the order of the design."""

    def port(self, name: str) -> SwitchPortReading | None:
        """Return what one port shows now, by its NOS name; None when the switch has no such port in use."""

    def nics(self, only: str = "") -> tuple[NicReading, ...]:
        """Return what each NIC of a host shows now, or only that of one interface."""

    def clear_counters(self, port: str = "") -> None:
        """Reset the counters a NOS command resets."""

    def log(self, line: str) -> None:
        """Add a line to the node's log, which `netkit lab logs` shows."""

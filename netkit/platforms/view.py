"""Reading the state of a device: commands, and pure parsers of their output.

A parser takes the output of each command and returns `Facts`; it never raises, whatever the input. A value the device
does not expose is absent, with the reason. Only the fields a view lists in `yields` are used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from netkit.facts import Facts  # connections that only change a device never import it


EXITED = "exit code"
"""Prefix of the failure of a command that exited with an error."""
ENDLESS = "does not end"
"""The failure of a command that ran into its timeout."""
SHARE = 3
"""One command may use this fraction of the time limit of a device, so that a slow one does not hold up the rest."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A device's reply to one command."""

    text: str
    failure: str = ""
    """Why the command failed; empty on success. Output of a failed command is in `text`."""
    at_s: float = 0.0
    """Time of arrival, in seconds since the epoch."""

    @property
    def has_ended(self) -> bool:
        """Whether the command ended, successfully or not, or timed out."""
        return not self.failure or self.failure == ENDLESS or self.failure.startswith(EXITED)


@dataclass(frozen=True, slots=True)
class SubjectNic:
    """A NIC of a host's design."""

    interface: str
    pci: str
    rdma: str


@dataclass(frozen=True, slots=True)
class ViewSubject:
    """What the views of a device depend on."""

    device: str
    version: str = ""
    ports: tuple[str, ...] = ()
    """Switch ports in use, by their name in the design."""
    nics: tuple[SubjectNic, ...] = ()
    beside: tuple[str, ...] = ()
    """NICs of networks beside the rails."""
    has_lags: bool = False
    has_pair: bool = False
    """Whether the switch forms a pair with another one."""
    lookups: tuple[tuple[str, str, str], ...] = ()
    """Route lookups for a host: source address, which may be left out, interface, destination."""
    lossless: tuple[int, ...] = ()
    """Lossless priorities of the design."""
    platform: str = ""
    neighbors: tuple[tuple[str, str], ...] = ()
    """BGP neighbours by address, and the port that leads to each."""
    probes: tuple[tuple[str, str, str], ...] = ()
    """Probes: source address, interface, destination."""
    probe_bytes: tuple[int, ...] = ()
    """IP packet sizes to probe with."""
    probe_tos: int = 0
    """ToS byte of the lossless class."""


@dataclass(frozen=True, slots=True)
class View:
    """Commands that are read together, and the parser of their output."""

    commands: tuple[str, ...]
    yields: frozenset[str]
    """Fields of `Facts` it fills, `counters` among them."""
    parse: Callable[..., "Facts"] = field(repr=False)
    """Outputs of the commands, in order → facts. A failed command yields an empty text."""
    is_costly: bool = False
    """Whether it is slow on a real device; the light profile skips it.

    Quick views whose facts and commands are all among its own give nothing more, and are skipped beside it.
    """
    fallback: "View | None" = None
    """Fallback for devices that answer these commands but expose nothing."""

    @property
    def counts(self) -> bool:
        """Whether it is read at both ends of a measurement window."""
        return "counters" in self.yields

    def is_within(self, other: "View") -> bool:
        """Whether another view gives all of its facts from its commands and more."""
        return self.yields <= other.yields and frozenset(self.commands) < frozenset(other.commands)


class Viewer(Protocol):
    """A read-only connection to a device. Every driver is one."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Disconnect."""

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Run commands and return a reply to each, in order; a command that fails is a reply with a failure.

        AccessError only if the connection is lost.
        """

    def running_files(self) -> Mapping[str, str | None]:
        """Read the running configuration, by the names under which netkit renders it; None for an absent file."""

    def os_version(self) -> str:
        """Read the version the device runs."""

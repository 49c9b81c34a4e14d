"""Reading the state of a device: commands, and pure parsers of what they answer.

A parser takes one text per command and returns what it found; whatever the bytes, it never raises. What the device did
not tell is absent, with the reason. Only fields a view says it yields count.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from netkit.facts import Facts  # a connection that only changes a device never makes any


EXITED = "exit code"
"""How the failure of a command begins that was refused."""
ENDLESS = "does not end"
"""The failure of a command that took all of its time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a device answered to one command."""

    text: str
    failure: str = ""
    """Why there is no answer; empty when there is one. What the command printed beside is the text."""
    at_s: float = 0.0
    """When the answer was there, in seconds of the epoch."""

    @property
    def has_ended(self) -> bool:
        """Whether the command came to its end, well or not, or to the end of its time."""
        return not self.failure or self.failure == ENDLESS or self.failure.startswith(EXITED)


@dataclass(frozen=True, slots=True)
class SubjectNic:
    """A NIC a host is designed to have."""

    interface: str
    pci: str
    rdma: str


@dataclass(frozen=True, slots=True)
class ViewSubject:
    """The device that is to be looked at, as far as its views depend on it."""

    device: str
    version: str = ""
    ports: tuple[str, ...] = ()
    """Switch ports in use, as the design calls them."""
    nics: tuple[SubjectNic, ...] = ()
    lookups: tuple[tuple[str, str, str], ...] = ()
    """Routes to ask a host for: source address, interface, destination."""
    lossless: tuple[int, ...] = ()
    """Priorities that are lossless by design."""
    platform: str = ""
    probes: tuple[tuple[str, str, str], ...] = ()
    """What to probe: source address, interface, destination."""
    probe_bytes: tuple[int, ...] = ()
    """Sizes of the IP packets to probe with."""
    probe_tos: int = 0
    """What marks packets of the lossless class."""


@dataclass(frozen=True, slots=True)
class View:
    """Commands that belong together, and what their answers tell."""

    commands: tuple[str, ...]
    yields: frozenset[str]
    """Names of the fields of `Facts` it finds, `counters` among them."""
    parse: Callable[..., "Facts"] = field(repr=False)
    """Texts of the commands, in their order → facts. An answer that failed is an empty text."""
    is_costly: bool = False
    """Whether it takes long on a real device; the light profile leaves it out."""
    otherwise: "View | None" = None
    """What to ask instead where these commands are answered and tell nothing."""

    @property
    def counts(self) -> bool:
        """Whether it is asked at both ends of a window."""
        return "counters" in self.yields


class Viewer(Protocol):
    """A connection to a device that can only be asked. Every driver is one."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Hang up."""

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return the answer to each command, in order; one that fails is an answer with a failure.

        AccessError only when the connection is gone.
        """

    def running_files(self) -> Mapping[str, str | None]:
        """Return the running configuration by the names netkit renders; None for a file that is not there."""

    def os_version(self) -> str:
        """Return the version the device runs."""

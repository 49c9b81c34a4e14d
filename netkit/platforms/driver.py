"""What netkit asks of a device, whatever its NOS: NAPALM's contract for changes, and reading that cannot change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from netkit.errors import NetkitError
from netkit.platforms.change import Change
from netkit.platforms.config import Files

Secrets = Callable[[str], str]
"""Name of a secret → its value; raises a NetkitError that names it when it is not to be had."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is to be put on a device: its intended files, the changes a plan found, and the method it chose."""

    files: Files
    changes: tuple[Change, ...]
    method: str


@dataclass(frozen=True, slots=True)
class SessionState:
    """A BGP session as the device sees it, by the interface it runs on."""

    interface: str
    is_established: bool
    received_prefixes: int
    uptime_s: int


@dataclass(frozen=True, slots=True)
class RailState:
    """A rail as its host sees it."""

    interface: str
    is_configured: bool
    is_dark: bool
    """Whether it has no carrier, or is not there at all: then nothing else is asked."""
    problems: tuple[str, ...]
    """How its link, its address and its routes are not what they are configured to be."""
    answers: tuple[str, ...]
    """Who of those that were called over it answered."""
    address: str = ""
    """The first address it has, whatever its files say."""


class Reader(Protocol):
    """Reading. Planning and observing are handed nothing more."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Hang up."""

    def running_files(self) -> Mapping[str, str | None]:
        """Return the running configuration by the names netkit renders; None for a file that is not there."""

    def os_version(self) -> str:
        """Return the version the device runs."""

    def sessions(self) -> tuple[SessionState, ...]:
        """Return the BGP sessions; a host has none."""


class Driver(Reader, Protocol):
    """Changing, in NAPALM's words. Nothing is saved to startup before `confirm_commit`."""

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage a change on the device without applying it; whatever was staged before is discarded."""

    def compare_config(self) -> str:
        """Return the device's own idea of the staged change."""

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in` seconds the device itself takes it back unless confirmed in time."""

    def has_pending_commit(self) -> bool:
        """Whether the device waits for a confirmation."""

    def confirm_commit(self) -> None:
        """Keep what was applied, and save it to startup."""

    def discard_config(self) -> None:
        """Forget what is staged."""

    def rollback(self) -> None:
        """Take back a commit that waits for its confirmation, at once."""

    def drain(self) -> None:
        """Ask the neighbours to send traffic elsewhere, in the running configuration only."""

    def undrain(self) -> None:
        """End a drain."""


@runtime_checkable
class Foresight(Protocol):
    """A driver that reads several things at once when it knows before what it will be asked."""

    def foresee_sessions(self, version: str) -> None:
        """Read the sessions along with the configuration that is read next; `version` is what the device runs."""


@runtime_checkable
class ConfirmsFirst(Protocol):
    """A driver whose drain may have to wait for the confirmation: its device takes no second change meanwhile."""

    @property
    def confirms_first(self) -> bool:
        """Whether `undrain` is refused while a commit waits for its confirmation."""


@runtime_checkable
class LeavesOut(Protocol):
    """A driver that leaves out what its device refuses, where nothing depends on it: see `ConfigModel.is_apart`."""

    def left_out(self) -> tuple[str, ...]:
        """Return what the device refused of a change whose rest it took."""


@runtime_checkable
class RailReader(Protocol):
    """What a driver of hosts can read beside configuration."""

    def rail_states(self, far: Mapping[str, Sequence[str]]) -> tuple[RailState, ...]:
        """Return how the rails are, and who of some addresses answers on which interface."""


@runtime_checkable
class InStep(Protocol):
    """A driver whose devices change together: each rail on all of them, then the next, so that no job loses two."""

    def strategy(self) -> str:
        """Return how the last commit went about the rails, and why; nothing if there was no choice."""

    def is_applied(self) -> bool:
        """Whether the change that waits for its confirmation was applied to the end."""

    def check_in_step(self, others: Sequence[Self]) -> Mapping[str, NetkitError]:
        """Try what is staged here and on others without writing anything; return what stands against it where."""

    def commit_in_step(self, others: Sequence[Self], revert_in: int | None = None) -> Mapping[str, NetkitError]:
        """Apply what is staged here and on others as `commit_config` does; return what went wrong on which device."""


def given_text(filename: str | None, config: str | None) -> str:
    """Return the configuration that NAPALM's load methods are given: a file or a text."""
    return Path(filename).read_text(encoding="utf-8") if filename else config or ""

"""The contract of drivers for every NOS: NAPALM's for changes, and a reader that cannot change anything."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from netkit.errors import NetkitError
from netkit.platforms.change import Change
from netkit.platforms.config import Files

Secrets = Callable[[str], str]
"""Name of a secret → its value; raises a NetkitError that names it if it is not found."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What to apply to a device: its intended files, the changes of the plan, and the method it chose."""

    files: Files
    changes: tuple[Change, ...]
    method: str


@dataclass(frozen=True, slots=True)
class SessionState:
    """A BGP session reported by a device, by the interface it runs on."""

    interface: str
    is_established: bool
    received_prefixes: int
    uptime_s: int


@dataclass(frozen=True, slots=True)
class RailState:
    """A rail as reported by its host."""

    interface: str
    is_configured: bool
    is_dark: bool
    """Whether it has no carrier or does not exist; nothing else is read then."""
    problems: tuple[str, ...]
    """How its link, address and routes differ from their configuration."""
    answers: tuple[str, ...]
    """Probed addresses that answered over it."""
    address: str = ""
    """Its first actual address, which its files may contradict."""
    address_v6: str = ""
    """Its first global IPv6 address."""
    whole: tuple[str, ...] = ()
    """Those of `answers` that also answer packets of the whole MTU, if asked."""


class Reader(Protocol):
    """Read-only access, all that planning and observing get."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Disconnect."""

    def running_files(self) -> Mapping[str, str | None]:
        """Read the running configuration, by the names under which netkit renders it; None for an absent file."""

    def os_version(self) -> str:
        """Read the version the device runs."""

    def sessions(self) -> tuple[SessionState, ...]:
        """Read the BGP sessions; a host has none."""


class Driver(Reader, Protocol):
    """Changes, by NAPALM's contract. Nothing is saved to the startup configuration before `confirm_commit`."""

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage a change on the device without applying it; anything staged before is discarded."""

    def compare_config(self) -> str:
        """Read the device's own diff of the staged change."""

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in`, the device itself reverts after that many seconds unless confirmed."""

    def has_pending_commit(self) -> bool:
        """Whether a commit waits for its confirmation."""

    def confirm_commit(self) -> None:
        """Keep the applied change, and save it to the startup configuration."""

    def discard_config(self) -> None:
        """Discard the staged change."""

    def rollback(self) -> None:
        """Revert a commit that waits for its confirmation, without waiting for the timer."""

    def drain(self) -> None:
        """Signal neighbours to route around the device, in the running configuration only."""

    def undrain(self) -> None:
        """End a drain."""


@runtime_checkable
class Foresight(Protocol):
    """A driver that can combine reads if it knows the next ones in advance."""

    def foresee_sessions(self, version: str) -> None:
        """Read the sessions along with the next read of the configuration; `version` is what the device runs."""


@runtime_checkable
class ConfirmsFirst(Protocol):
    """A driver whose undrain may have to wait for the confirmation: its device accepts no second change until then."""

    @property
    def confirms_first(self) -> bool:
        """Whether `undrain` is refused while a commit waits for its confirmation."""


@runtime_checkable
class LeavesOut(Protocol):
    """A driver that skips changes its device refuses, if nothing depends on them: see `ConfigModel.is_apart`."""

    def left_out(self) -> tuple[str, ...]:
        """List the parts of the last change that the device refused."""


@runtime_checkable
class RailReader(Protocol):
    """What a host driver reads besides the configuration."""

    def rail_states(self, far: Mapping[str, Sequence[str]], mtu_bytes: int = 0) -> tuple[RailState, ...]:
        """Read the state of the rails, and which addresses of `far` answer on which interface.

        With an MTU, they are asked with packets of that size first.
        """


@runtime_checkable
class InStep(Protocol):
    """A driver whose devices change in lockstep, one rail at a time, so that no job loses two rails."""

    def strategy(self) -> str:
        """Describe how the last commit handled the rails, and why; empty if there was no choice."""

    def is_applied(self) -> bool:
        """Whether the commit that waits for its confirmation was applied completely."""

    def check_in_step(self, others: Sequence[Self]) -> Mapping[str, NetkitError]:
        """Check what is staged here and on others without writing anything; return the errors by device."""

    def commit_in_step(self, others: Sequence[Self], revert_in: int | None = None) -> Mapping[str, NetkitError]:
        """Apply what is staged here and on others as `commit_config` does; return the errors by device."""


def given_text(filename: str | None, config: str | None) -> str:
    """Resolve the arguments of NAPALM's load methods: a file or a text."""
    return Path(filename).read_text(encoding="utf-8") if filename else config or ""

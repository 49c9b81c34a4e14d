"""What the driver asks of a switch, whatever it is spoken over."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol

from netkit.platforms.nvue.patch import NvuePatch
from netkit.platforms.view import Reply


class ConfirmedState(Enum):
    """What became of a change that was confirmed."""

    SAVED = "saved"
    UNSAVED = "unsaved"
    UNSAVED_ON_PURPOSE = "unsaved on purpose"
    """Auto-save was turned off for a change of several applies, and is to be turned on again."""


class Transport(Protocol):
    """NVUE's revisions: staged, compared, applied for a while or for good."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Hang up."""

    @property
    def is_alive(self) -> bool:
        """Whether the connection stands."""

    def config(self, revision: str = "applied") -> str:
        """Return a revision as JSON text."""

    def config_and(self, path: str, view: str = "") -> tuple[str, dict[str, Any] | None]:
        """Return what is applied, and an object of the running switch beside it; None where that cannot be told."""

    def show(self, path: str, view: str = "") -> dict[str, Any]:
        """Return an object of the running switch; empty where there is none."""

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return the answer to each command, in order; one that fails is an answer with a failure."""

    def stage(self, document: NvuePatch, *, replaces: bool = False) -> str:
        """Make a revision of what is applied and a document, or of the document alone; return its name."""

    def stage_text(self, text: str, *, replaces: bool = False) -> str:
        """Make the same of a file as a person writes it, in YAML or in lines of nv set and nv unset."""

    def add(self, revision: str, text: str) -> None:
        """Add to a staged revision what a file says; DeviceError when it is refused, and the revision is as before."""

    def difference(self, running: str, intended: str) -> Any:
        """Return what differs between two revisions."""

    def apply(self, revision: str, message: str, confirm_s: int | None) -> Any:
        """Apply a revision, for some seconds or for good; return how what runs then differs from it.

        DeviceError when the switch says that it failed.
        """

    def is_waiting(self) -> bool:
        """Whether an applied revision waits to be confirmed."""

    def confirm(self) -> ConfirmedState:
        """Keep what waits; return what became of it."""

    def abort(self) -> None:
        """Take back what waits."""

    def save(self) -> None:
        """Save what is applied to startup."""

    def discard(self) -> None:
        """Forget what is staged."""

    def applied(self) -> str:
        """Return the name of the revision that runs."""

"""The contract of NVUE transports, and parsers that SSH and REST share."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

from netkit.platforms.config import Files
from netkit.platforms.driver import SessionState
from netkit.platforms.nvue.model import FILE
from netkit.platforms.nvue.patch import NvuePatch
from netkit.platforms.view import Reply


class ConfirmedState(Enum):
    """Whether a confirmed change is saved to startup."""

    SAVED = "saved"
    UNSAVED = "unsaved"
    UNSAVED_ON_PURPOSE = "unsaved on purpose"
    """Auto-save was turned off for a change of several applies, and has to be turned on again."""


class Transport(Protocol):
    """NVUE over some transport: state, and revisions that are staged, compared, applied and confirmed."""

    def open(self) -> None:
        """Connect; raises AccessError."""

    def close(self) -> None:
        """Disconnect."""

    @property
    def is_alive(self) -> bool:
        """Whether the connection is up."""

    def config(self, revision: str = "applied") -> str:
        """A revision as JSON text."""

    def config_and(self, path: str, view: str = "") -> tuple[str, dict[str, Any] | None]:
        """The applied configuration, and an object of the running switch; None if that fails."""

    def show(self, path: str, view: str = "") -> dict[str, Any]:
        """An object of the running switch; empty if there is none."""

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Run commands in order; a command that fails gives a reply with a failure."""

    def stage(self, document: NvuePatch, *, replaces: bool = False) -> str:
        """Create a revision from the applied one and a patch, or from the patch alone; return its name."""

    def stage_text(self, text: str, *, replaces: bool = False) -> str:
        """Do the same with a file: YAML, or `nv set` and `nv unset` lines."""

    def add(self, revision: str, text: str) -> None:
        """Add a file to a staged revision; DeviceError if it is refused, which leaves the revision as it was."""

    def difference(self, running: str, intended: str) -> Any:
        """The difference between two revisions, as a list of `set` and `unset`."""

    def apply(self, revision: str, message: str, confirm_s: int | None) -> Any:
        """Apply a revision, with `confirm_s` for some seconds only; return how the result differs from the revision.

        DeviceError if the switch reports a failure.
        """

    def is_waiting(self) -> bool:
        """Whether an applied revision waits for confirmation."""

    def confirm(self) -> ConfirmedState:
        """Confirm the revision that waits."""

    def abort(self) -> None:
        """Revert the revision that waits."""

    def save(self) -> None:
        """Save the applied revision to startup."""

    def discard(self) -> None:
        """Discard what is staged."""

    def applied(self) -> str:
        """The name of the applied revision; empty if it is unknown."""


# Final states of a revision, and messages (NVUE API guide). An apply was seen to fail with exit code 0.
FAILED = re.compile(r"\b(?:invalid|ignore_fail|ays_fail|Failure during apply|Aborted apply|Error:)", re.IGNORECASE)
SAVED = re.compile(r"\b(?:applied_and_saved|saved)\b")
REVISION = re.compile(r"\[rev_id: ?([^\]\s]+)\]")
APPLIED = ("applied", "applied_and_saved")
NOT_WAITING = re.compile(r"\b(?:no|not|nothing|none)\b", re.IGNORECASE)
CLOCK = re.compile(r"(?:(\d+)(?:d| days?),? ?)?(?:(\d+):)?(\d+):(\d+)")


def revision_in(output: str) -> str:
    """Find the name of a revision in output; empty if there is none."""
    found = REVISION.search(output)
    return found[1] if found else ""


def applied_in(table: str) -> tuple[str, ...]:
    """List the revisions that may be applied, the latest first, from the table that `nv config revision` prints.

    Every revision that was ever applied keeps its state, and the time of an apply is printed to the second only.
    """
    rows = [line.split() for line in table.splitlines() if line.strip()]
    applied: list[tuple[str, int, str]] = []
    for at, row in enumerate(rows):
        if len(row) > 1 and row[1] in APPLIED:
            has_date = len(row) > 4 and row[2].startswith("rev_")  # the factory revision has none
            applied.append((" ".join(row[3:5]) if has_date else "", at, row[0]))
    return tuple(name for _, _, name in sorted(applied, reverse=True))


def is_empty_difference(found: object) -> bool:
    """Whether a list of `set` and `unset`, each of which may be empty, holds nothing."""
    items = found if isinstance(found, list) else [found]
    return not any(item and any(item.values()) for item in items if isinstance(item, dict))


def version_in(text: str) -> str:
    """Find the release in the header of `nv config show`; empty without a header (up to 5.15)."""
    found = re.search(r'"version":\s*"Cumulus Linux ([0-9][^"\s]*)"', text[:2000])
    return found[1] if found else ""


def version_of(system: Mapping[str, Any]) -> str:
    """Find the release in `nv show system`, where it moved in 5.14."""
    version = system.get("version")
    nested = version.get("product-release", "") if isinstance(version, dict) else ""
    return str(nested or system.get("product-release", ""))


def as_files(text: str) -> Files:
    return {FILE: text}


def sessions(neighbors: Mapping[str, Any]) -> tuple[SessionState, ...]:
    """Parse `nv show vrf default router bgp neighbor`."""
    states = []
    for name, neighbor in neighbors.items():
        if isinstance(neighbor, dict):
            families = neighbor.get("address-family")
            family = families.get("ipv4-unicast") if isinstance(families, dict) else None
            received = family.get("rx-prefix", 0) if isinstance(family, dict) else 0
            is_established = str(neighbor.get("session-state", neighbor.get("state", ""))).lower() == "established"
            states.append(SessionState(name, is_established, int(received or 0), seconds(neighbor.get("uptime", 0))))
    return tuple(states)


def seconds(value: object) -> int:
    """Parse a duration: a number, or `1d, 23:45:21`."""
    if isinstance(value, int | float):
        return int(value)
    found = CLOCK.fullmatch(str(value).strip())
    if not found:
        return int(str(value)) if str(value).isdecimal() else 0
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest

"""What the driver asks of a switch, whatever it is spoken over."""

import json
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


# The states a revision can end in, and words beside them (NVUE API guide; an apply has been seen to fail and exit 0).
FAILED = re.compile(r"\b(?:invalid|ignore_fail|ays_fail|Failure during apply|Aborted apply|Error:)", re.IGNORECASE)
SAVED = re.compile(r"\b(?:applied_and_saved|saved)\b")
REVISION = re.compile(r"\[rev_id: ?([^\]\s]+)\]")
APPLIED = ("applied", "applied_and_saved")
NOT_WAITING = re.compile(r"\b(?:no|not|nothing|none)\b", re.IGNORECASE)
CLOCK = re.compile(r"(?:(\d+)(?:d| days?),? ?)?(?:(\d+):)?(\d+):(\d+)")


def objects(text: str) -> Any:
    """Return a JSON answer; ValueError when it is none."""
    return json.loads(text)


def revision_in(said: str) -> str:
    """Return the revision a command speaks of; empty when it names none."""
    found = REVISION.search(said)
    return found[1] if found else ""


def applied_in(table: str) -> tuple[str, ...]:
    """Return the revisions that may be what runs, from the table `nv config revision` prints: the latest applied first.

    Every revision that ever ran keeps its state, and the date of an apply is told to the second only.
    """
    rows = [line.split() for line in table.splitlines() if line.strip()]
    ran = [(_date(row), at, row[0]) for at, row in enumerate(rows) if len(row) > 1 and row[1] in APPLIED]
    return tuple(name for _, _, name in sorted(ran, reverse=True))


def _date(row: list[str]) -> str:
    """Return when a revision was applied; one that came with the switch has no date."""
    return " ".join(row[3:5]) if len(row) > 4 and row[2].startswith("rev_") else ""


def is_empty_difference(found: object) -> bool:
    """Whether a difference holds nothing; a list of `set` and `unset`, each of which may be empty."""
    items = found if isinstance(found, list) else [found]
    return not any(item and any(item.values()) for item in items if isinstance(item, dict))


def version_in(text: str) -> str:
    """Return the release in the header of `nv config show`; empty where there is no header (up to 5.15)."""
    found = re.search(r'"version":\s*"Cumulus Linux ([0-9][^"\s]*)"', text[:2000])
    return found[1] if found else ""


def version_of(system: Mapping[str, Any]) -> str:
    """Return the release from `nv show system`, which keeps it elsewhere since 5.14."""
    version = system.get("version")
    nested = version.get("product-release", "") if isinstance(version, dict) else ""
    return str(nested or system.get("product-release", ""))


def as_files(text: str) -> Files:
    """Return a configuration under the name netkit renders it."""
    return {FILE: text}


def sessions(neighbors: Mapping[str, Any]) -> tuple[SessionState, ...]:
    """Return the BGP sessions from `nv show vrf default router bgp neighbor`."""
    return tuple(_session(name, found) for name, found in neighbors.items() if isinstance(found, dict))


def _session(name: str, found: Mapping[str, Any]) -> SessionState:
    families = found.get("address-family")
    family = families.get("ipv4-unicast") if isinstance(families, dict) else None
    received = family.get("rx-prefix", 0) if isinstance(family, dict) else 0
    is_established = str(found.get("session-state", found.get("state", ""))).lower() == "established"
    return SessionState(name, is_established, int(received or 0), seconds(found.get("uptime", 0)))


def seconds(value: object) -> int:
    """Return a duration in seconds, whether it is a number or written as 1d, 23:45:21."""
    if isinstance(value, int | float):
        return int(value)
    found = CLOCK.fullmatch(str(value).strip())
    if not found:
        return int(str(value)) if str(value).isdecimal() else 0
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest

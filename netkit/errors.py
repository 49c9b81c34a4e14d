"""Errors of all stages: each carries problems with a place, a message and a remedy."""

from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_PART = 60
Path = tuple[str | int, ...]
"""The location of a value in the intent, as keys and list indexes."""


class RowIndex(int):
    """The index of a row of a table in a path. The parts before it are not printed, since file and line show them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One error or warning about the input: what, where, and the remedy."""

    message: str
    remedy: str = ""
    path: Path = ()
    file: str = ""
    line: int = 0
    severity: str = "error"

    def __str__(self) -> str:
        place = self.file + (f":{self.line}" if self.line else "")
        head = ": ".join(part for part in (place, dotted(self.path), self.message) if part)
        whole = f"{head}; {self.remedy}" if self.remedy else head
        if whole.isprintable():
            return whole
        # Text from a file must not move the cursor of a terminal.
        return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in whole)


def dotted(path: Path) -> str:
    """Format a path as people write it: `units[0].hosts`; within a table, the column."""
    text = ""
    rows = [index for index, part in enumerate(path) if isinstance(part, RowIndex)]
    for part in path[rows[-1] + 1 :] if rows else path:
        shown = (
            f"[{part}]" if isinstance(part, int) else part if len(part) <= LONGEST_PART else f"{part[:LONGEST_PART]}…"
        )
        text += f".{shown}" if text and isinstance(part, str) else shown
    return text


class NetkitError(Exception):
    """A stage cannot continue; carries every problem it found."""

    exit_code = 3

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class IntentError(NetkitError):
    """The intent cannot be read or does not describe a fabric."""


class HardwareError(NetkitError):
    """A hardware model cannot be read, or lacks a required value."""


class DesignError(NetkitError):
    """The intent is well formed, but the fabric it describes cannot or must not be built."""


class RenderError(NetkitError):
    """A template failed."""


class OutputError(NetkitError):
    """The output folder cannot be written."""


class ConfigError(NetkitError):
    """A device's configuration cannot be read."""


class PlanError(NetkitError):
    """A plan cannot be made or read."""


class DeployError(NetkitError):
    """A deploy must not start, or no run exists to continue."""


class LabError(NetkitError):
    """The lab cannot be built, or does not have what was requested."""


class AccessError(NetkitError):
    """A device cannot be reached, refuses the login, or gives an unexpected answer."""

    exit_code = 4


class DeviceError(NetkitError):
    """A device refused a change, or did not apply it."""

    exit_code = 1


class SnapshotError(NetkitError):
    """A snapshot cannot be read or written."""


class CheckError(NetkitError):
    """A check does not exist or cannot be loaded."""


class StoreError(NetkitError):
    """The history cannot be read or written."""


class UsageError(NetkitError):
    """The command line asks for something that does not exist."""


class NotifyError(NetkitError):
    """A notification is configured wrongly, or a receiver rejects it."""


class AdoptError(NetkitError):
    """Configurations that describe no fabric an intent could express."""


class SilenceError(NetkitError):
    """A silence is invalid or refers to something that does not exist."""


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C.

    After a plain KeyboardInterrupt has left an `exec`, Python ends by the signal even if the exception is caught.
    """

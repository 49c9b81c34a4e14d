"""What can go wrong, said in one shape: where, what, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_PART = 60
Path = tuple[str | int, ...]
"""Where in the intent a value stands, as keys and list positions."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the input: what it is, where it stands, and the remedy."""

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
        return whole if whole.isprintable() else "".join(map(_visible, whole))


def dotted(path: Path) -> str:
    """Return a path as people write it: `units[0].hosts`."""
    text = ""
    for part in path:
        shown = (
            f"[{part}]" if isinstance(part, int) else part if len(part) <= LONGEST_PART else f"{part[:LONGEST_PART]}…"
        )
        text += f".{shown}" if text and isinstance(part, str) else shown
    return text


def _visible(char: str) -> str:
    """Return a character as a terminal may show it: what comes from a file must not move the cursor."""
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


class NetkitError(Exception):
    """A stage could not go on; carries every problem it found."""

    exit_code = 3

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class IntentError(NetkitError):
    """The intent cannot be read or does not describe a fabric."""


class HardwareError(NetkitError):
    """A hardware model cannot be read, or lacks a value that is needed."""


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
    """A deploy must not start, or there is none to go on with."""


class LabError(NetkitError):
    """The lab cannot be built, or what was asked of it does not exist."""


class AccessError(NetkitError):
    """A device cannot be reached, does not let netkit in, or does not answer as it should."""

    exit_code = 4


class DeviceError(NetkitError):
    """A device refused a change, or did not do what it was told."""

    exit_code = 1


class SnapshotError(NetkitError):
    """A snapshot that cannot be read or written."""


class CheckError(NetkitError):
    """A check that does not exist, or cannot be loaded."""


class StoreError(NetkitError):
    """The history cannot be read or written."""


class UsageError(NetkitError):
    """The command line asks for something that does not exist."""


class NotifyError(NetkitError):
    """A notification is set up wrongly, or a receiver does not take it."""


class SilenceError(NetkitError):
    """Silences are written wrongly, or about what does not exist."""


class Interrupted(KeyboardInterrupt):
    """What Ctrl-C raises: when Python's own kind once left an `exec`, Python ends by the signal, caught or not."""

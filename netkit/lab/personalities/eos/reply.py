"""What a command answers, and how it fails, with the error codes of eAPI."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from netkit.lab.node import RefusedError

Data = Mapping[str, Any]
"""One answer as JSON has it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in both forms; no data means that the command has no JSON."""

    data: Data | None
    text: str = ""


DONE = Reply({})


class CommandError(RefusedError):
    """A command that could not be run."""

    code: ClassVar[int] = 1000
    summary: ClassVar[str] = "could not run command"

    def __init__(self, *errors: str) -> None:
        super().__init__("; ".join(errors))
        self.errors: Sequence[str] = errors


class InvalidCommandError(CommandError):
    """A command EOS does not understand."""

    code = 1002
    summary = "invalid command"


class NoJsonError(CommandError):
    """A command that has only text."""

    code = 1003
    summary = "unconverted command"


def invalid(words: Sequence[str], understood: int) -> InvalidCommandError:
    """Return the complaint about the first word that was not understood."""
    if understood >= len(words):
        return InvalidCommandError(
            f"Incomplete command (at token {len(words) - 1}: '{words[-1]}')" if words else "Incomplete command"
        )
    return InvalidCommandError(f"Invalid input (at token {understood}: '{words[understood]}')")

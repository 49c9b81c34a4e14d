"""What a command answers, and how it fails, with the error codes of eAPI."""

import errno
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from netkit.lab.node import ConfigRefusedError

Data = Mapping[str, Any]
"""One answer as JSON has it."""


@dataclass(frozen=True, slots=True)
class EosReply:
    """An answer in both forms; no data means that the command has no JSON."""

    data: Data | None
    text: str = ""


DONE = EosReply({})


class EosCommandError(ConfigRefusedError):
    """A command that could not be run."""

    code: ClassVar[int] = 1000
    summary: ClassVar[str] = "could not run command"

    def __init__(self, *errors: str) -> None:
        super().__init__("; ".join(errors))
        self.errors: Sequence[str] = errors


class InvalidCommandError(EosCommandError):
    """A command EOS does not understand."""

    code = 1002
    summary = "invalid command"


class NoJsonError(EosCommandError):
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


STARTUP = "startup-config"
CHECKPOINTS = "checkpoints"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class EosFlash:
    """Files by name; what is no plain name is refused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def startup(self) -> str:
        """Return the startup-config; empty when there is none."""
        path = self._folder / STARTUP
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @startup.setter
    def startup(self, text: str) -> None:
        self.write(STARTUP, text)

    def read(self, name: str) -> str:
        """Return a file."""
        path = self._path(name)
        if not path.is_file():
            raise EosCommandError(f"Error opening flash:/{name} (No such file or directory)")
        return path.read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """Write a file whole, or not at all."""
        path = self._path(name)
        half = path.with_name(f".{path.name}.half")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            half.write_text(text, encoding="utf-8")
            half.replace(path)
        except OSError as error:
            half.unlink(missing_ok=True)
            said = "No space left on device" if error.errno == errno.ENOSPC else str(error.strerror)
            raise EosCommandError(f"Error copying to flash:/{name} ({said})") from error

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._path(name).unlink(missing_ok=True)

    def checkpoints(self) -> tuple[tuple[str, float], ...]:
        """Return the checkpoints with the time each was made."""
        found = sorted((self._folder / CHECKPOINTS).glob("[A-Za-z0-9]*"))
        return tuple((path.name, path.stat().st_mtime) for path in found)

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if not all(_NAME.fullmatch(part) for part in parts) or len(parts) > 2:
            raise EosCommandError(f"Invalid file name: {name}")
        return self._folder.joinpath(*parts)


Filter = Callable[[Sequence[str], re.Pattern[str]], Iterator[str]]


def through(reply: EosReply, filters: Sequence[str]) -> EosReply:
    """Return an answer after its filters; a filtered answer is text."""
    for words in filters:
        name, _, pattern = words.partition(" ")
        if name == "json":
            if reply.data is None:
                raise NoJsonError("This is an unconverted command")
            reply = EosReply(None, f"{json.dumps(reply.data, indent=4)}\n")
        elif name == "no-more":
            continue
        elif name in FILTERS:
            kept = FILTERS[name](reply.text.splitlines(), _compiled(pattern))
            reply = EosReply(None, "".join(f"{line}\n" for line in kept))
        else:
            raise InvalidCommandError(f"Invalid input (at token 0: '{name}')")
    return reply


def section(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines that match, each with what is indented under it."""
    depth = -1
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if depth >= 0 and indent > depth:
            yield line
            continue
        depth = -1
        if pattern.search(line):
            depth = indent
            yield line


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern.strip('"'), re.IGNORECASE)
    except re.error as error:
        raise InvalidCommandError(f"Invalid regular expression: {error}") from error


def _include(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    return (line for line in lines if pattern.search(line))


def _exclude(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    return (line for line in lines if not pattern.search(line))


def _begin(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    start = next((index for index, line in enumerate(lines) if pattern.search(line)), len(lines))
    return iter(lines[start:])


FILTERS: Mapping[str, Filter] = {
    "include": _include,
    "grep": _include,
    "exclude": _exclude,
    "begin": _begin,
    "section": section,
}

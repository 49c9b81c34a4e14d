"""Replies of commands, their errors with the codes of eAPI, the flash file system and pipe filters."""

import errno
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, filterfalse
from pathlib import Path
from typing import Any, ClassVar

from netkit.lab.node import ConfigRefusedError

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EosReply:
    """A reply as JSON and as text; `data` is None when the command has no JSON form."""

    data: Data | None
    text: str = ""


DONE = EosReply({})


class EosCommandError(ConfigRefusedError):
    """A command that failed, with eAPI's error code."""

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
    """A command without a JSON form."""

    code = 1003
    summary = "unconverted command"


def invalid(words: Sequence[str], understood: int) -> InvalidCommandError:
    """The error for the first word that was not understood."""
    if understood >= len(words):
        return InvalidCommandError(
            f"Incomplete command (at token {len(words) - 1}: '{words[-1]}')" if words else "Incomplete command"
        )
    return InvalidCommandError(f"Invalid input (at token {understood}: '{words[understood]}')")


STARTUP = "startup-config"
CHECKPOINTS = "checkpoints"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class EosFlash:
    """Files in flash by name; anything but a plain name is refused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def startup(self) -> str:
        path = self._folder / STARTUP
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @startup.setter
    def startup(self, text: str) -> None:
        self.write(STARTUP, text)

    def read(self, name: str) -> str:
        path = self._path(name)
        if not path.is_file():
            raise EosCommandError(f"Error opening flash:/{name} (No such file or directory)")
        return path.read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """Write a file atomically."""
        path = self._path(name)
        half = path.with_name(f".{path.name}.half")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            half.write_text(text, encoding="utf-8")
            half.replace(path)
        except OSError as error:
            half.unlink(missing_ok=True)
            reason = "No space left on device" if error.errno == errno.ENOSPC else str(error.strerror)
            raise EosCommandError(f"Error copying to flash:/{name} ({reason})") from error

    def delete(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def checkpoints(self) -> tuple[tuple[str, float], ...]:
        """The checkpoints with their modification times."""
        found = sorted((self._folder / CHECKPOINTS).glob("[A-Za-z0-9]*"))
        return tuple((path.name, path.stat().st_mtime) for path in found)

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if not all(_NAME.fullmatch(part) for part in parts) or len(parts) > 2:
            raise EosCommandError(f"Invalid file name: {name}")
        return self._folder.joinpath(*parts)


Filter = Callable[[Sequence[str], re.Pattern[str]], Iterator[str]]


def through(reply: EosReply, filters: Sequence[str]) -> EosReply:
    """Apply the pipe filters to a reply; a filtered reply is text."""
    for words in filters:
        name, _, pattern = words.partition(" ")
        if name == "json":
            if reply.data is None:
                raise NoJsonError("This is an unconverted command")
            reply = EosReply(None, f"{json.dumps(reply.data, indent=4)}\n")
        elif name == "no-more":
            continue
        elif name in FILTERS:
            try:
                compiled = re.compile(pattern.strip('"'), re.IGNORECASE)
            except re.error as error:
                raise InvalidCommandError(f"Invalid regular expression: {error}") from error
            lines = FILTERS[name](reply.text.splitlines(), compiled)
            reply = EosReply(None, "".join(f"{line}\n" for line in lines))
        else:
            raise InvalidCommandError(f"Invalid input (at token 0: '{name}')")
    return reply


def section(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield each matching line with the lines indented below it."""
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


def _include(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[str]:
    return filter(pattern.search, lines)


FILTERS: Mapping[str, Filter] = {
    "include": _include,
    "grep": _include,
    "exclude": lambda lines, pattern: filterfalse(pattern.search, lines),
    "begin": lambda lines, pattern: dropwhile(lambda line: not pattern.search(line), lines),
    "section": section,
}

"""Output: streams that survive a closed reader, CSV, JSON, files that are never half written, and a question."""

import csv
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TextIO

from netkit.errors import OutputError, Problem, UsageError


def say(stream: TextIO, text: str) -> None:
    """Write a text; once the reader has closed, discard all further output."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class OutputStream:
    """A stream for libraries that write by themselves: like `say`, it survives a closed reader."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        say(self._stream, text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def write_json(value: object) -> None:
    """Write a value as JSON, with dataclasses as mappings."""
    sys.stdout.write(json.dumps(_plain(value), indent=1, default=str) + "\n")


def write_csv(rows: Iterable[Any]) -> None:
    """Write dataclass rows of one type as CSV."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names: list[str] = []
    for row in rows:
        if not names:
            names = [field.name for field in fields(row)]
            writer.writerow(names)
        writer.writerow([getattr(row, name) for name in names])


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def check_format(output: str) -> None:
    """Refuse any output format but text and json."""
    if output not in {"text", "json"}:
        raise UsageError(Problem(f"unknown format {output!r}", "use text or json"))


def is_agreed(question: str, *, yes: bool) -> bool:
    """Ask the user; without a terminal, --yes is required."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(Problem(f"{question} There is no terminal to ask on", "use --yes"))
    sys.stdout.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def write_named(file: Path, content: str | bytes) -> None:
    """Write a file the user named: atomically and through links; pipes and devices are written, not replaced."""
    data = content.encode() if isinstance(content, str) else content
    is_stream = file.exists() and not file.is_file() and not file.is_dir()  # a pipe, or a device such as /dev/null
    try:
        if is_stream:
            file.write_bytes(data)
        else:
            _replace(file.resolve(), data)
    except OSError as error:
        raise OutputError(Problem(f"{file} cannot be written: {error.strerror}", "check its folder and disk")) from None


def write_whole(file: Path, text: str) -> bool:
    """Write a file only if its content changes; return whether it did."""
    with suppress(OSError):  # an unreadable file may still be writable
        if file.is_file() and file.read_bytes() == text.encode():
            return False
    write_named(file, text)
    return True


def _replace(file: Path, data: bytes) -> None:
    draft = file.with_name(f".{file.name[:200]}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise

"""Plain text: lines whose reader may be gone, aligned columns, CSV, JSON, and a question."""

import csv
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TextIO

from netkit.errors import Problem, UsageError


def say(stream: TextIO, text: str) -> None:
    """Write; once the reader has closed, nothing more is written there, and only the exit code reports."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class OutputStream:
    """A stream for what writes by itself: as `say`, it goes on when its reader has closed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
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
    """Refuse an output format netkit does not have."""
    if output not in {"text", "json"}:
        raise UsageError(Problem(f"no output format {output!r}", "use text or json"))


def is_agreed(question: str, *, yes: bool) -> bool:
    """Return whether the user agrees; without a terminal nobody can be asked, and --yes has to say it."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(Problem(f"{question} Nobody is there to ask", "say --yes"))
    sys.stdout.flush()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}

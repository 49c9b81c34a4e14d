"""A file that only grows: each line is on disk before what it announces happens."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from netkit import private


class Ledger:
    """Lines written by many threads; those that come together are brought to disk together."""

    def __init__(self, file: Path) -> None:
        self._handle = private.open_file(file, os.O_WRONLY | os.O_APPEND)
        self._adding, self._syncing = threading.Lock(), threading.Lock()
        self._written = self._synced = 0
        self._is_broken = False
        if os.fstat(self._handle).st_size:  # what a killed process left half written announced nothing
            os.ftruncate(self._handle, file.read_bytes().rfind(b"\n") + 1)

    def add(self, line: str) -> None:
        """Write a line, and return when it is on disk; OSError when it is not, and of every line after that.

        A disk that took less than it was given may have lost more, and tells only once.
        """
        try:
            self._add(line.encode() + b"\n")
        except OSError:
            self._is_broken = True
            raise

    def _add(self, line: bytes) -> None:
        with self._adding:
            if self._is_broken or os.write(self._handle, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._written += 1
            mine = self._written
        with self._syncing:
            if self._synced >= mine:
                return
            reached = self._written
            os.fsync(self._handle)
            self._synced = reached

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def lines(file: Path) -> Iterator[str]:
    """Yield the lines of a ledger."""
    with file.open(encoding="utf-8", errors="replace") as stream:
        yield from stream

"""An append-only file: each line is on disk before the step it announces happens."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from netkit import private


class Ledger:
    """A file that many threads append lines to; one fsync serves all lines that are waiting."""

    def __init__(self, file: Path) -> None:
        self._handle = private.open_file(file, os.O_WRONLY | os.O_APPEND)
        self._adding, self._syncing = threading.Lock(), threading.Lock()
        self._written = self._synced = 0
        self._is_broken = False
        if os.fstat(self._handle).st_size:  # a line that a killed process left half written announced nothing
            os.ftruncate(self._handle, file.read_bytes().rfind(b"\n") + 1)

    def add(self, line: str) -> None:
        """Write a line and return once it is on disk; if that fails, raise OSError for it and for every later line.

        A disk that took less than it was given may have lost more, and reports the error only once.
        """
        try:
            self._append(line.encode() + b"\n")
        except OSError:
            self._is_broken = True
            raise

    def _append(self, line: bytes) -> None:
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
        os.close(self._handle)


def lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8", errors="replace") as stream:
        yield from stream

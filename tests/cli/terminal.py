"""A pseudo-terminal of a given size in which a program runs."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.command import ROOT, environment
from tests.lab.running import until

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOME = "\x1b[H"
CHUNK_BYTES = 1 << 16


class Terminal:
    """The screen and the keyboard."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, slave: int) -> None:
        self.process, self._master, self._slave = process, master, slave
        self.shown = ""
        self.before = termios.tcgetattr(slave)

    def read(self) -> None:
        """Read what the program has written so far."""
        with contextlib.suppress(OSError):
            while select.select([self._master], [], [], 0)[0]:
                self.shown += os.read(self._master, CHUNK_BYTES).decode("utf-8", "replace")

    def screen(self) -> list[str]:
        """The lines of the last complete screen."""
        self.read()
        whole = [part for part in self.shown.split(HOME)[1:] if part.endswith("\x1b[J")]
        return [CODES.sub("", line).rstrip() for line in whole[-1].split("\r\n")] if whole else []

    def until(self, text: str) -> list[str]:
        """Wait until a text is on the screen."""
        until(lambda: any(text in line for line in self.screen()), f"a screen with {text!r}")
        return self.screen()

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def ended(self) -> int:
        """Wait for the program to exit, and return its exit code."""
        until(self._has_ended, "the program ends")
        self.read()
        return self.process.returncode

    def _has_ended(self) -> bool:
        self.read()  # drain it, or the program would block on a full buffer
        return self.process.poll() is not None

    def settings(self) -> list[Any]:
        """The current termios settings."""
        return termios.tcgetattr(self._slave)


@contextmanager
def terminal(words: Sequence[str | Path], columns: int = 100, lines: int = 24, **changes: str) -> Iterator[Terminal]:
    """Run a program in a terminal for the length of a block."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    known: Mapping[str, str] = {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **changes}
    variables = {name: value for name, value in environment(**known).items() if name not in {"COLUMNS", "LINES"}}
    setsid = ["setsid", "--ctty", *map(str, words)]  # so that Ctrl-C reaches the program
    process = subprocess.Popen(setsid, cwd=ROOT, env=variables, stdin=slave, stdout=slave, stderr=slave)
    try:
        yield Terminal(process, master, slave)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)

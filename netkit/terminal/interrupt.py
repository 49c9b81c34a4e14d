"""Ctrl-C during a deploy: once to end in order, twice to leave the devices to their timers.

A terminal that is closed, as by an SSH connection that is lost, asks the same as the first Ctrl-C. It never counts as a
second one: shells and the kernel may both tell of it.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from netkit.terminal.ctrl_c import INTERRUPTED

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ASKED = "interrupted: no other device is begun, those begun end in order; again to leave at once"
SHOW_CURSOR = "\x1b[?25h"


class Interrupt:
    """Whether the user wants a deploy to end; asked by the deploy between its steps."""

    def __init__(self, go_on: str, within_s: int) -> None:
        self._go_on, self._within_s = go_on, within_s
        self._is_asked = False
        self._before = {number: signal.getsignal(number) for number in SIGNALS}

    def __call__(self) -> bool:
        """Whether to end."""
        return self._is_asked

    def __enter__(self) -> Self:
        for number, handler in self._before.items():
            if number is not signal.SIGHUP or handler is not signal.SIG_IGN:  # nohup means to go on
                signal.signal(number, self._heard)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if not self._is_asked:
            self._is_asked = True
            if not sys.stderr.isatty():  # on a terminal the table says it, and anything else would tear that
                _say(ASKED)
            return
        if number == signal.SIGHUP:
            return
        if sys.stderr.isatty():
            _say(SHOW_CURSOR.rstrip("\n"))
        _say(f"left: devices take back by themselves what is not confirmed within {self._within_s} s")
        _say(f"to go on: {self._go_on}")
        os._exit(INTERRUPTED)


def _say(text: str) -> None:
    """Write past every buffer: a signal may come in the middle of another line."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())

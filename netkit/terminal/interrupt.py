"""Ctrl-C during a deploy: once to stop in order, twice to leave the devices to their timers.

Closing the terminal, as by a lost SSH connection, counts as a first Ctrl-C but never as a second one: both the shell
and the kernel may send a SIGHUP.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from netkit.terminal.ctrl_c import INTERRUPTED

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ASKED = "interrupted: no further device starts, running ones finish; Ctrl-C or SIGTERM again leaves at once"
SHOW_CURSOR = "\x1b[?25h"


class Interrupt:
    """Whether the user wants a deploy to stop; the deploy asks between its steps."""

    was_asked = False
    """Whether the user has wanted it of any deploy of this process."""

    def __init__(self, go_on: str, within_s: int, left: str = "", asked: str = ASKED) -> None:
        """`asked` describes the effect of the first Ctrl-C, `left` the state of devices after an immediate exit."""
        self._asked = asked
        self._go_on = go_on
        self._left = left or f"devices revert by themselves what is not confirmed within {within_s} s"
        self._is_asked = False
        self._before = {number: signal.getsignal(number) for number in SIGNALS}

    def __call__(self) -> bool:
        return self._is_asked

    def __enter__(self) -> Self:
        for number, handler in self._before.items():
            if number is not signal.SIGHUP or handler is not signal.SIG_IGN:  # under nohup, continue
                signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if not self._is_asked:
            self._is_asked = Interrupt.was_asked = True
            if not sys.stderr.isatty():  # on a terminal the live table shows it
                _write(self._asked)
            return
        if number == signal.SIGHUP:
            return
        if sys.stderr.isatty():
            _write(SHOW_CURSOR)
        _write(f"left: {self._left}")
        _write(f"to continue: {self._go_on}")
        os._exit(INTERRUPTED)


def _write(text: str) -> None:
    """Write unbuffered: the signal may have interrupted another write."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())

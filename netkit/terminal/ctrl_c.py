"""Ctrl-C ends a verb by an exception, wherever it comes and even if that exception is lost."""

import signal
import sys
import threading
from types import FrameType
from typing import Self

from netkit.errors import Interrupted

INTERRUPTED = 130
AGAIN_S = 0.05


class CtrlC:
    """Handles Ctrl-C during a block, unless it is ignored, as under nohup."""

    is_heard = False
    """Whether an error may stem from an interrupt: class creation wraps one in another error."""

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._heard)
            sys.unraisablehook = self._lost
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the default: another Ctrl-C ends the process at once."""
        if signal.getsignal(signal.SIGINT) == self._heard:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        self.is_heard = True
        raise Interrupted

    def _lost(self, lost: "sys.UnraisableHookArgs") -> None:
        """Send the signal again if it came where Python cannot raise, as in a weak reference's callback.

        It goes to this thread: one that another thread receives does not end what this one waits for.
        """
        if lost.exc_type is Interrupted:
            threading.Timer(AGAIN_S, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
        else:
            sys.__unraisablehook__(lost)


def interrupt_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the verb as Ctrl-C does, so that it can give up its jobs at other machines.

    A SIGHUP that is ignored, as under `nohup`, stays ignored.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)

"""Ctrl-C: it ends a verb by an exception wherever it comes, and whatever becomes of the exception there."""

import signal
import sys
import threading
from types import FrameType
from typing import Self

from netkit.errors import Interrupted

INTERRUPTED = 130
AGAIN_S = 0.05


class CtrlC:
    """Hears Ctrl-C for the length of a block, unless somebody else does: nohup has it ignored."""

    is_heard = False
    """Whether an error may have been an interrupt: a class that is being made turns one into its own."""

    def __enter__(self) -> Self:
        """Begin to hear."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._heard)
            sys.unraisablehook = self._lost
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to say: another one ends at once, without a word."""
        if signal.getsignal(signal.SIGINT) == self._heard:
            signal.signal(signal.SIGINT, signal.SIG_DFL)

    def _heard(self, _number: int, _frame: FrameType | None) -> None:
        self.is_heard = True
        raise Interrupted

    def _lost(self, lost: "sys.UnraisableHookArgs") -> None:
        """Raise once more what came while Python was where nothing can be raised, as in a weak reference's end."""
        if lost.exc_type is Interrupted:
            threading.Timer(AGAIN_S, signal.raise_signal, (signal.SIGINT,)).start()
        else:
            sys.__unraisablehook__(lost)

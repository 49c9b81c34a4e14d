"""The command line."""

import importlib
import signal
import sys
from types import FrameType

INTERRUPTED = 130


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. Python lets the signal end a process in which its own kind once left an `exec`, caught or not."""


def main() -> None:
    """Run netkit; an interrupt that comes while it is still being imported ends it quietly too."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nohup, say, has it ignored
        signal.signal(signal.SIGINT, _interrupt)
    try:
        importlib.import_module("netkit.cli.app").main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to say: another one ends at once and quietly


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted

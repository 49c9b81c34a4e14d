"""Report an unexpected error as a defect of netkit: a few plain lines, and the traceback in a file."""

import os
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from pathlib import Path

from netkit import __version__
from netkit.errors import Problem

DEFECT = os.EX_SOFTWARE
LONGEST = 200
ADVICE = "please report it with the output of netkit diagnose"
PACKAGE = Path(__file__).parents[1]


def report(error: BaseException) -> int:
    """Print the error, where the traceback is and what to do; return the exit code."""
    lines = (f"error: {Problem(f'a defect of netkit: {_message(error)}{_place(error)}')}", _save(error), ADVICE)
    with suppress(OSError, ValueError):  # standard error may be closed
        sys.stderr.write("".join(f"{line}\n" for line in lines))
    return DEFECT


def report_threads() -> None:
    """Report unexpected errors in threads of this process in the same way, each once."""
    reported: set[str] = set()
    here = os.getpid()

    def handle(ending: threading.ExceptHookArgs) -> None:
        error = ending.exc_value
        if os.getpid() != here or error is None or isinstance(error, SystemExit):  # a lab has its own log
            threading.__excepthook__(ending)
        elif _place(error) not in reported:
            reported.add(_place(error))
            report(error)

    threading.excepthook = handle


def _message(error: BaseException) -> str:
    text = type(error).__name__
    with suppress(Exception):  # the type alone if the error cannot be printed
        text = " ".join(f"{text}: {error}".split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _place(error: BaseException) -> str:
    """The innermost line of netkit in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGE)]
    return f" ({Path(ours[-1].filename).relative_to(PACKAGE.parent)}:{ours[-1].lineno})" if ours else ""


def _save(error: BaseException) -> str:
    """Write the traceback to a file that only the user can read, and return a line that names it."""
    text = f"netkit {__version__}, Python {sys.version}\n{''.join(traceback.format_exception(error))}"
    name = ""
    try:
        handle, name = tempfile.mkstemp(prefix="netkit-defect-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as full:
        with suppress(OSError):
            Path(name).unlink()
        return f"its traceback could not be saved: {(full.strerror or str(full)).lower()}"
    return f"its traceback is in {name}: check it for secrets before you pass it on"

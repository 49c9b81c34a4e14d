"""The last resort: an unexpected error is a defect of netkit, reported in plain lines, its traceback in a file."""

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
ADVICE = "please report it with what netkit diagnose prints"
PACKAGE = Path(__file__).parents[1]


def tell(error: BaseException) -> int:
    """Print what happened, where the traceback is and what to do; return the exit code."""
    lines = (f"error: {Problem(f'a defect of netkit: {_said(error)}{_place(error)}')}", _kept(error), ADVICE)
    with suppress(OSError, ValueError):  # standard error may be closed
        sys.stderr.write("".join(f"{line}\n" for line in lines))
    return DEFECT


def tell_of_threads() -> None:
    """Report what ends a thread of this process in the same way, each defect once."""
    told: set[str] = set()
    here = os.getpid()

    def ended(ending: threading.ExceptHookArgs) -> None:
        error = ending.exc_value
        if os.getpid() != here or error is None or isinstance(error, SystemExit):  # a lab keeps a log of its own
            threading.__excepthook__(ending)
        elif _place(error) not in told:
            told.add(_place(error))
            tell(error)

    threading.excepthook = ended


def _said(error: BaseException) -> str:
    """Return an error in one line."""
    text = type(error).__name__
    with suppress(Exception):  # of an error that cannot even be printed, its kind
        text = " ".join(f"{text}: {error}".split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _place(error: BaseException) -> str:
    """Return the innermost line of netkit an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f" ({Path(frame.filename).relative_to(PACKAGE.parent)}:{frame.lineno})" for frame in frames if _is_ours(frame)
    ]
    return places[-1] if places else ""


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return Path(frame.filename).is_relative_to(PACKAGE)


def _kept(error: BaseException) -> str:
    """Write the traceback where only the user can read it, and say where."""
    text = f"netkit {__version__}, Python {sys.version}\n{''.join(traceback.format_exception(error))}"
    name = ""
    try:
        handle, name = tempfile.mkstemp(prefix="netkit-defect-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as full:
        with suppress(OSError):
            Path(name).unlink()
        return f"its traceback could not be kept: {(full.strerror or str(full)).lower()}"
    return f"its traceback is in {name}, for your eyes only: see that it names nothing secret before you pass it on"

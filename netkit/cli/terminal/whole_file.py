"""Files that others read at any time: the one that was there, or the one that is written now, never a part."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from netkit.errors import OutputError, Problem


def write_named(file: Path, text: str) -> None:
    """Write a file that a user named: in one step, through a link, and into a pipe or a device rather than over it."""
    place = file.resolve() if file.is_file() else file
    is_plain = place.is_file() or not place.exists()
    draft = place.with_name(f".{place.name[:200]}.{os.getpid()}") if is_plain else place
    try:
        with draft.open("x" if is_plain else "w", encoding="utf-8") as stream:
            stream.write(text)
        if is_plain:
            draft.replace(place)
    except OSError as error:
        if is_plain:
            with suppress(OSError):
                draft.unlink()
        raise OutputError(Problem(f"{file} cannot be written: {error.strerror}", "check its folder")) from None


def write_whole(file: Path, text: str) -> bool:
    """Write a file in one step, and only when it says something else; return whether it did."""
    if file.exists() and not file.is_file():
        write_named(file, text)
        return True
    draft = ""
    try:
        if is_stream(file):
            file.write_text(text, encoding="utf-8")
            return True
        file = file.resolve()  # a link stays one
        if file.exists() and file.read_text(encoding="utf-8", errors="replace") == text:
            return False
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            os.fchmod(handle, 0o644)
        Path(draft).replace(file)
    except OSError as error:
        if draft:
            with suppress(OSError):
                Path(draft).unlink()
        remedy = "make room or check permissions; what was there stays"
        raise OutputError(Problem(f"{file} cannot be written: {error.strerror}", remedy)) from None
    return True


def is_stream(file: Path) -> bool:
    """Whether a name leads to a pipe or a device, /dev/null say: putting a file in its place would break others."""
    return file.exists() and not file.is_file() and not file.is_dir()

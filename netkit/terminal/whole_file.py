"""Files that others read at any time: the one that was there, or the one that is written now, never a part."""

import os
from contextlib import suppress
from pathlib import Path

from netkit.errors import OutputError, Problem


def write_named(file: Path, content: str | bytes) -> None:
    """Write a file that a user named: in one step, through a link, and into a pipe or a device rather than over it."""
    data = content.encode() if isinstance(content, str) else content
    try:
        if _is_stream(file):
            file.write_bytes(data)
        else:
            _replace(file.resolve(), data)
    except OSError as error:
        raise OutputError(Problem(f"{file} cannot be written: {error.strerror}", "check its folder and disk")) from None


def write_whole(file: Path, text: str) -> bool:
    """Write a file only when it says something else; return whether it did."""
    with suppress(OSError):  # what cannot be read may still be written
        if file.is_file() and file.read_bytes() == text.encode():
            return False
    write_named(file, text)
    return True


def _is_stream(file: Path) -> bool:
    """Whether a name leads to a pipe or a device, /dev/null say: putting a file in its place would break others."""
    return file.exists() and not file.is_file() and not file.is_dir()


def _replace(file: Path, data: bytes) -> None:
    draft = file.with_name(f".{file.name[:200]}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise

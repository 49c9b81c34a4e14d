"""Files that may be read at any time: a reader sees the old or the new content, never a part."""

import os
from contextlib import suppress
from pathlib import Path

from netkit.errors import OutputError, Problem


def write_named(file: Path, content: str | bytes) -> None:
    """Write a file the user named: atomically and through links; pipes and devices are written, not replaced."""
    data = content.encode() if isinstance(content, str) else content
    is_stream = file.exists() and not file.is_file() and not file.is_dir()  # a pipe, or a device such as /dev/null
    try:
        if is_stream:
            file.write_bytes(data)
        else:
            _replace(file.resolve(), data)
    except OSError as error:
        raise OutputError(Problem(f"{file} cannot be written: {error.strerror}", "check its folder and disk")) from None


def write_whole(file: Path, text: str) -> bool:
    """Write a file only if its content changes; return whether it did."""
    with suppress(OSError):  # an unreadable file may still be writable
        if file.is_file() and file.read_bytes() == text.encode():
            return False
    write_named(file, text)
    return True


def _replace(file: Path, data: bytes) -> None:
    draft = file.with_name(f".{file.name[:200]}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise

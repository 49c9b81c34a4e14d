"""Configurations already compared equal, cached between runs: what has not changed is not parsed twice.

The key is a digest of both texts, of netkit and of the platform, the value the digest of their content, and how many
entries are not netkit's: there is no configuration and no secret in it. The file is used only if nobody but the user
can write it, because a writer could hide a difference; if its digest is right; and if the same code wrote it that runs
now. Otherwise it is ignored.
"""

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

FILE = "plan-pairs"
MOST = 50_000
LARGEST_BYTES = 64 << 20
TITLE = b"netkit pairs 3"
DIGEST = rb"[0-9a-f]{64}"
WHOLE = re.compile(rb"(?:%(digest)s %(digest)s:[0-9]{1,7}\n)*" % {b"digest": DIGEST})
COMPARING = ("platforms", "plan")
"""The packages whose code compares configurations."""


def load(folder: Path) -> dict[str, str]:
    """Return the cached pairs of a folder; none if there are none, or none that can be trusted."""
    try:
        content = _private(folder)
    except OSError:
        return {}
    head, _, body = content.partition(b"\n")
    if head != _head(body) or not WHOLE.fullmatch(body):
        return {}
    digests = iter(body.decode("ascii").split())
    return dict(zip(digests, digests, strict=True))


def save(folder: Path, pairs: Mapping[str, str]) -> None:
    """Cache pairs in the user's own folder, the newest if there are too many; errors are ignored."""
    newest = islice(pairs.items(), max(0, len(pairs) - MOST), None)
    body = "".join(f"{pair} {content}\n" for pair, content in newest).encode()
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=FILE)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(_head(body) + b"\n" + body)
            Path(name).replace(folder / FILE)
        except OSError:
            Path(name).unlink(missing_ok=True)


@cache
def code() -> str:
    """Return a digest of the comparing code: results of other code do not count."""
    package = Path(__file__).parent.parent
    whole = hashlib.sha256()
    for file in sorted(file for name in COMPARING for file in (package / name).rglob("*.py")):
        whole.update(f"{file.relative_to(package)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def _head(body: bytes) -> bytes:
    """Return the first line of the file: which code wrote it, and the digest of the body."""
    return b" ".join((TITLE, code().encode(), hashlib.sha256(body).hexdigest().encode()))


def _private(folder: Path) -> bytes:
    """Return the content of the file; nothing if another user could have written it, or it is not a file."""
    if not _is_private(folder.lstat(), stat.S_ISDIR):
        return b""
    with open(folder / FILE, "rb", opener=_opened) as stream:
        return stream.read(LARGEST_BYTES) if _is_private(os.fstat(stream.fileno()), stat.S_ISREG) else b""


def _opened(path: str, flags: int) -> int:
    return os.open(
        path, flags | os.O_NOFOLLOW | os.O_NONBLOCK
    )  # follow no symlink, and do not wait for the other end of a pipe


def _is_private(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """Whether only the user can write here."""
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not others_write

"""Which texts were already found to say the same, kept between runs: what has not changed is not read twice.

The key is a digest of both texts, of netkit and of the platform, the value the digest of what they say: there is no
configuration and no secret in it. Only a file that nobody but the user can write is believed, because whoever writes it
could hide a difference; what cannot be read, or is not believed, is as good as nothing.
"""

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

FILE = "plan-pairs.json"
MOST = 50_000
SCHEMA = 1
DIGEST_LENGTH = 64


def load(folder: Path) -> dict[str, str]:
    """Return the pairs kept in a folder; none when there are none, or none to be believed."""
    file = folder / FILE
    try:
        if not (_is_private(folder) and _is_private(file)):
            return {}
        kept = json.loads(file.read_text(encoding="ascii"))
    except (OSError, ValueError, RecursionError):
        return {}
    pairs = kept.get("pairs") if isinstance(kept, dict) and kept.get("schema") == SCHEMA else None
    if not isinstance(pairs, dict) or not all(_is_digest(item) for pair in pairs.items() for item in pair):
        return {}
    return pairs


def save(folder: Path, pairs: Mapping[str, str]) -> None:
    """Keep pairs in a folder of the user's own, the newest when there are too many. That it fails is no problem."""
    newest = dict(islice(pairs.items(), max(0, len(pairs) - MOST), None))
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=FILE)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as stream:
                json.dump({"schema": SCHEMA, "pairs": newest}, stream)
            Path(name).replace(folder / FILE)
        except OSError:
            Path(name).unlink(missing_ok=True)


def _is_private(path: Path) -> bool:
    """Whether nobody but the user can write here."""
    found = path.lstat()
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid == os.geteuid() and not others_write and not stat.S_ISLNK(found.st_mode)


def _is_digest(item: object) -> bool:
    return isinstance(item, str) and len(item) == DIGEST_LENGTH and item.isalnum()

"""Snapshots as files: JSON, and compressed where the name ends in .gz. What was written is read back equal."""

import gzip
import json
import zlib
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from netkit.errors import Problem, SnapshotError
from netkit.facts.snapshot import Snapshot

FORMAT = 1
LAST_S = 253_402_300_800
"""The end of the year 9999: no calendar goes on."""
ADAPTER = TypeAdapter(Snapshot)


def dump(snapshot: Snapshot) -> bytes:
    """Return a snapshot as JSON."""
    document = {"netkit_snapshot": FORMAT, **ADAPTER.dump_python(snapshot, mode="json", exclude_defaults=True)}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode() + b"\n"


def load(data: bytes, file: str) -> Snapshot:
    """Return the snapshot that a file holds."""
    try:
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        version = document.pop("netkit_snapshot")
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError, EOFError, OSError, zlib.error):
        raise SnapshotError(Problem("is not a snapshot", "make one with netkit snapshot -o FILE", file=file)) from None
    if version != FORMAT:
        what = f"was written in format {version!r}; this netkit reads {FORMAT}"
        raise SnapshotError(Problem(what, "take a new snapshot", file=file))
    try:
        found = ADAPTER.validate_python(document)
    except (ValidationError, RecursionError) as error:
        where = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ()
        what = f"is a damaged snapshot, at {'.'.join(map(str, where)) or 'its beginning'}"
        raise SnapshotError(Problem(what, "take a new one", file=file)) from None
    if not 0 <= found.taken_s < LAST_S:
        raise SnapshotError(Problem("is a damaged snapshot, at taken_s", "take a new one", file=file))
    return found


def read(path: Path) -> Snapshot:
    """Return the snapshot in a file."""
    try:
        return load(path.read_bytes(), str(path))
    except OSError as error:
        raise SnapshotError(Problem(f"cannot be read: {error.strerror}", file=str(path))) from None

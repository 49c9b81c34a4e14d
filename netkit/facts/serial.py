"""Snapshots as files: JSON, and compressed where the name ends in .gz. What was written is read back equal."""

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from netkit.errors import Problem, SnapshotError
from netkit.facts.snapshot import Snapshot

FORMAT = 1
LAST_S = 253_402_300_800
"""The end of the year 9999: no calendar goes on."""
MOST_BYTES = 2**31
"""Unpacked: twice what 8192 hosts of 8 NICs and their switches take, at some 10 kB for a port or a NIC."""
PACKED = b"\x1f\x8b"
ADAPTER = TypeAdapter(Snapshot)


def dump(snapshot: Snapshot) -> bytes:
    """Return a snapshot as JSON."""
    document = {"netkit_snapshot": FORMAT, **ADAPTER.dump_python(snapshot, mode="json", exclude_defaults=True)}
    try:
        text = _written(document)
    except ValueError:  # what is no number is not told, and takes nothing else with it
        text = _written(_without_endless(document))
    return text.encode() + b"\n"


def _written(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False)


def _without_endless(value: object) -> object:
    """Return a value without the floats in it that are infinite or no number."""
    if isinstance(value, dict):
        return {key: _without_endless(one) for key, one in value.items() if not _is_endless(one)}
    return [_without_endless(one) for one in value if not _is_endless(one)] if isinstance(value, list) else value


def _is_endless(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def load(data: bytes, file: str) -> Snapshot:
    """Return the snapshot that a file holds."""
    try:
        document = json.loads(_unpacked(data, file))
        version = document.pop("netkit_snapshot")
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError, EOFError, OSError, zlib.error):
        raise SnapshotError(Problem("is not a snapshot", "make one with netkit snapshot -o FILE", file=file)) from None
    if version != FORMAT:
        what = f"was written in format {version!r}; this netkit reads {FORMAT}"
        raise SnapshotError(Problem(what, "take a new snapshot", file=file))
    try:
        found: Snapshot = _validator().validate_python(document)
    except (ValidationError, RecursionError) as error:
        where = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ()
        what = f"is a damaged snapshot, at {'.'.join(map(str, where)) or 'its beginning'}"
        raise SnapshotError(Problem(what, "take a new one", file=file)) from None
    for place, at_s in _times(found):
        if not 0 <= at_s < LAST_S:
            raise SnapshotError(Problem(f"is a damaged snapshot, at {place}", "take a new one", file=file))
    return found


def _times(found: Snapshot) -> Iterable[tuple[str, float]]:
    yield "taken_s", found.taken_s
    for name, seen in found.devices.items():
        yield from ((f"devices.{name}.samples", sample.at_s) for sample in seen.samples)


@cache
def _validator() -> SchemaValidator:
    return SchemaValidator(_finite(ADAPTER.core_schema))


def _finite(schema: Any) -> Any:
    """Return a schema that refuses what is infinite or no number: checks would compare with it, and never fail."""
    if isinstance(schema, dict):
        found = {key: _finite(one) for key, one in schema.items()}
        return {**found, "allow_inf_nan": False} if schema.get("type") == "float" else found
    return [_finite(one) for one in schema] if isinstance(schema, list) else schema


def _unpacked(data: bytes, file: str) -> bytes:
    """Return what a file holds; a small one may unpack to more than the memory holds."""
    if data.startswith(PACKED):
        with gzip.open(io.BytesIO(data)) as stream:
            data = stream.read(MOST_BYTES + 1)
    return _bounded(data, file)


def _bounded(data: bytes, file: str) -> bytes:
    if len(data) > MOST_BYTES:
        what = f"holds more than {MOST_BYTES / 2**30:g} GiB, more than any snapshot"
        raise SnapshotError(Problem(what, "name a file that netkit snapshot has written", file=file))
    return data


def read(path: Path) -> Snapshot:
    """Return the snapshot in a file."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        return load(_bounded(data, str(path)), str(path))
    except OSError as error:
        raise SnapshotError(Problem(f"cannot be read: {error.strerror}", file=str(path))) from None

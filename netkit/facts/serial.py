"""Snapshots as JSON files, compressed if the name ends in .gz. They are read back equal."""

import gzip
import io
import json
import math
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from netkit.errors import Problem, SnapshotError
from netkit.facts.snapshot import Snapshot

FORMAT = 1
LAST_S = 253_402_300_800
"""The end of the year 9999, the limit of Python's calendar."""
MOST_BYTES = 2**31
"""Unpacked limit: twice the size for 8192 hosts with 8 NICs and their switches, at 10 kB per port or NIC."""
PACKED = b"\x1f\x8b"
ADAPTER = TypeAdapter(Snapshot)


def dump(snapshot: Snapshot) -> bytes:
    document = {"netkit_snapshot": FORMAT, **ADAPTER.dump_python(snapshot, mode="json", exclude_defaults=True)}
    return to_json(document).encode() + b"\n"


def to_json(document: object) -> str:
    """Write plain values; a float that is not finite is dropped, and everything else kept."""
    try:
        return _to_json(document)
    except ValueError:
        return _to_json(_without_infinite(document))


def _to_json(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False)


def _without_infinite(value: object) -> object:
    """Remove floats that are infinite or NaN."""
    if isinstance(value, dict):
        return {key: _without_infinite(one) for key, one in value.items() if not _is_infinite(one)}
    return [_without_infinite(one) for one in value if not _is_infinite(one)] if isinstance(value, list) else value


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def load(data: bytes, file: str) -> Snapshot:
    try:
        if data.startswith(PACKED):  # a small file may unpack to more than the memory holds
            with gzip.open(io.BytesIO(data)) as stream:
                data = stream.read(MOST_BYTES + 1)
        document = json.loads(_bounded(data, file))
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
    times = [("taken_s", found.taken_s)]
    for name, seen in found.devices.items():
        times += ((f"devices.{name}.samples", sample.at_s) for sample in seen.samples)
    for place, at_s in times:
        if not 0 <= at_s < LAST_S:
            raise SnapshotError(Problem(f"is a damaged snapshot, at {place}", "take a new one", file=file))
    return found


@cache
def _validator() -> SchemaValidator:
    return validator(ADAPTER)


def validator(adapter: TypeAdapter[Any]) -> SchemaValidator:
    """What validates plain values, without numbers that are not finite."""
    return SchemaValidator(_finite(adapter.core_schema))


def _finite(schema: Any) -> Any:
    """Make a schema refuse infinity and NaN, with which checks would compare and never fail."""
    if isinstance(schema, dict):
        found = {key: _finite(one) for key, one in schema.items()}
        return {**found, "allow_inf_nan": False} if schema.get("type") == "float" else found
    return [_finite(one) for one in schema] if isinstance(schema, list) else schema


def _bounded(data: bytes, file: str) -> bytes:
    if len(data) > MOST_BYTES:
        what = f"is larger than {MOST_BYTES / 2**30:g} GiB, the limit for snapshots"
        raise SnapshotError(Problem(what, "name a file that netkit snapshot has written", file=file))
    return data


def read(path: Path) -> Snapshot:
    """Load a snapshot from a file."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        return load(_bounded(data, str(path)), str(path))
    except OSError as error:
        raise SnapshotError(Problem(f"cannot be read: {error.strerror}", file=str(path))) from None

"""Write rendered files to a folder, which never holds a mix of two states.

A new folder is written next to its destination and renamed in one step. In an existing folder, changed files are
staged first, and renamed only after everything has been rendered and written. The manifest, which lists every file and
its digest, comes last.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netkit.errors import OutputError, Problem

MANIFEST = "manifest.json"
STAGING = ".netkit-staging"
BOTH = "manifest.both.json"


@dataclass(slots=True)
class Written:
    """The result of writing."""

    changed: list[str] = field(default_factory=list)
    unchanged: int = 0
    removed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rendered:
    """All files of one device, and its entry in the manifest."""

    device: str
    files: Mapping[str, str]
    """By name, which may have one folder before it."""
    about: Mapping[str, Any]


def write(folder: Path, devices: Iterable[Rendered], head: Mapping[str, Any], *, is_complete: bool) -> Written:
    """Write rendered devices below a folder. Only a complete render removes files that are no longer rendered."""
    with _plain_errors(folder):
        previous = read_manifest(folder)
        if folder.exists():
            return _into_existing(folder, devices, head, previous, is_complete=is_complete)
        return _into_new(folder, devices, head)


def _into_new(folder: Path, devices: Iterable[Rendered], head: Mapping[str, Any]) -> Written:
    """Write the tree next to its destination, and rename it in one step."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = folder.with_name(f".{folder.name}{STAGING}")
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        written = Written()
        entries = _stage(staging, staging, devices, written)
        (staging / MANIFEST).write_bytes(_manifest(head, entries))
        staging.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return written


def _into_existing(
    folder: Path,
    devices: Iterable[Rendered],
    head: Mapping[str, Any],
    previous: Mapping[str, Any],
    *,
    is_complete: bool,
) -> Written:
    """Stage changed files inside the folder, and rename them once everything is staged."""
    staging = folder / STAGING
    try:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        written = Written()
        entries: dict[str, Any] = {} if is_complete else dict(previous.get("devices", {}))
        entries.update(_stage(folder, staging, devices, written))
        (staging / MANIFEST).write_bytes(_manifest(head, entries))
        # List old and new files, so that a render killed while renaming leaves no file without a manifest entry.
        both = dict(previous.get("devices", {}))
        for device, entry in entries.items():
            both[device] = {**entry, "files": {**both.get(device, {}).get("files", {}), **entry["files"]}}
        (staging / BOTH).write_bytes(_manifest(head, both))
        _make_room({folder / part for name in written.changed for part in list(Path(name).parents)[:-1]})
        if _listed({"devices": both}) != _listed(previous):
            (staging / BOTH).replace(folder / MANIFEST)
        for name in written.changed:
            (staging / name).replace(folder / name)
        for name in sorted(_listed(previous) - _listed({"devices": entries})):
            if _remove(folder, name):
                written.removed.append(name)
        if not _holds(folder / MANIFEST, (staging / MANIFEST).read_bytes()):
            (staging / MANIFEST).replace(folder / MANIFEST)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return written


def _stage(folder: Path, staging: Path, devices: Iterable[Rendered], written: Written) -> dict[str, Any]:
    """Write files that differ to the staging folder; return the manifest's entries."""
    entries = {}
    for rendered in devices:
        digests = {}
        is_known = folder != staging and (folder / rendered.device).exists()
        place = staging / rendered.device
        place.mkdir(exist_ok=True)
        for name, text in sorted(rendered.files.items()):
            data = text.encode()
            digests[name] = hashlib.sha256(data).hexdigest()
            if is_known and _holds(folder / rendered.device / name, data):
                written.unchanged += 1
                continue
            if "/" in name:
                (place / name).parent.mkdir(exist_ok=True)
            with open(f"{place}/{name}", "wb") as stream:  # noqa: PTH123 (thousands of files: pathlib is measurably slower)
                stream.write(data)
            written.changed.append(f"{rendered.device}/{name}")
        entries[rendered.device] = {**rendered.about, "files": digests}
    return entries


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False


def _manifest(head: Mapping[str, Any], entries: Mapping[str, Any]) -> bytes:
    return (json.dumps({**head, "devices": dict(sorted(entries.items()))}, indent=1, sort_keys=True) + "\n").encode()


def _make_room(wanted: set[Path]) -> None:
    """Create the folders of all devices before the first file is renamed, or none of them."""
    made: list[Path] = []
    try:
        for path in sorted(wanted):
            if not path.is_dir():
                path.mkdir()
                made.append(path)
    except OSError:
        for path in reversed(made):
            path.rmdir()
        raise


def _remove(folder: Path, name: str) -> bool:
    """Remove a file, and the folders below the given one that become empty."""
    path = folder / name
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    for parent in path.parents:
        if parent == folder or any(parent.iterdir()):
            break
        parent.rmdir()
    return True


def _listed(manifest: Mapping[str, Any]) -> set[str]:
    return {
        f"{device}/{name}" for device, entry in manifest.get("devices", {}).items() for name in dict(entry["files"])
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """Load the manifest of an output folder; empty if there is none."""
    path = folder / MANIFEST
    if not path.exists():
        return {}
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        names = _listed(manifest)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        message = "is not a manifest written by netkit"
        raise OutputError(
            Problem(message, "choose another output folder, or remove the file", file=str(path))
        ) from None
    strange = next((name for name in sorted(names) if not _is_ours(folder, name)), None)
    if strange:
        message = f"lists {strange!r}, which is not a file of a device below this folder"
        raise OutputError(Problem(message, "choose another output folder, or remove the manifest", file=str(path)))
    return dict(manifest)


def _is_ours(folder: Path, name: str) -> bool:
    """Report whether this may be a file of a device, or one in a folder of a device, and no link leads elsewhere."""
    parts = name.split("/")
    is_plain = len(parts) in {2, 3} and all(part not in {"", ".", ".."} and part.isprintable() for part in parts)
    return is_plain and not any((folder / part).is_symlink() for part in list(Path(name).parents)[:-1])


@contextmanager
def _plain_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        is_named = error.filename and STAGING not in str(error.filename)
        where = Path(error.filename) if is_named else folder
        raise OutputError(
            Problem(
                f"cannot write: {reason.lower()}", "choose a folder you can write to, with free space", file=str(where)
            )
        ) from None


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a device."""

    file: str
    template: str
    context: Mapping[str, Any]

"""Edits of silences.yaml: whole lines are added or removed, so that the rest of a hand-written file stays as it is.

A lock on the folder serialises writers; readers see the old or the new file. The result of an edit is parsed before it
is written: an edit that would change anything else is refused.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from netkit.errors import Problem, SilenceError
from netkit.intent import document
from netkit.intent.list_edit import BY_HAND, ListEditError, Plain, block, with_entry, without_entry
from netkit.silence.file import FILE, AnyEntry, Known, Silences, check, checked_document, load

HEAD = "# Findings that do not count, by whom, why and until when: netkit silence adds, lists and ends them.\n"


def add(folder: Path, name: str, values: Mapping[str, Plain], known: Known, now_s: float) -> AnyEntry:
    """Add an entry to the list `silences` or `acknowledgements`, replacing one of the same name; return it."""
    with _exclusive(folder):
        before = load(folder)
        text = _text(before.file)
        entry = _checked(name, values, known, now_s)
        if same := _places(before).get(entry.silence().id):
            text = _edited(before.file, without_entry, text, *same)
        text = _edited(before.file, with_entry, text, name, block(values))
        wanted = [one for one in before.found.entries if one.silence().id != entry.silence().id]
        _write(before.file, text, [*wanted, entry])
        return entry


def end(folder: Path, name: str) -> AnyEntry:
    """Remove an entry by its name or the start of its name, and return it."""
    with _exclusive(folder):
        before = load(folder)
        names = [one.silence().id for one in before.found.entries]
        found = [one for one in names if one == name] or [one for one in names if one.startswith(name)]
        if len(found) != 1:
            what = f"{len(found)} entries begin with {name!r}" if found else f"no silence or acknowledgement {name!r}"
            raise SilenceError(Problem(what, "netkit silence list shows them", file=str(before.file)))
        gone = before.found.entries[names.index(found[0])]
        text = _edited(before.file, without_entry, _text(before.file), *_places(before)[found[0]])
        _write(before.file, text, [one for one in before.found.entries if one is not gone])
        return gone


def _checked(name: str, values: Mapping[str, Plain], known: Known, now_s: float) -> AnyEntry:
    """Validate an entry before it is added; its problems have no line yet."""
    try:
        found = _read(f"{name}:\n{block(values)}", Path(FILE))
        check(found, known, now_s)
    except SilenceError as error:
        raise SilenceError(Problem(one.message, one.remedy, one.path[2:3]) for one in error.problems) from None
    (entry,) = found.found.entries
    if entry.silence().is_over(now_s):
        raise SilenceError(Problem("would end before it begins: its time is over", "give a later time"))
    return entry


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Serialise writers; the lock ends with its process."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SilenceError(Problem(f"{folder}: {error.strerror}", "name the folder with --fabric")) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8-sig") if file.exists() else HEAD


def _read(text: str, file: Path) -> Silences:
    return checked_document(document.parse(text, str(file)), file)


def _edited(file: Path, edit: Callable[..., str], *given: object) -> str:
    """Edit a text; SilenceError with the file if that needs a person."""
    try:
        return edit(*given)
    except ListEditError as error:
        raise SilenceError(replace(one, file=str(file)) for one in error.problems) from None


def _places(silences: Silences) -> Mapping[str, tuple[str, int]]:
    """Return where each entry is: its list, and its number there."""
    lists: Mapping[str, tuple[AnyEntry, ...]] = {
        "silences": silences.found.silences or (),
        "acknowledgements": silences.found.acknowledgements or (),
    }
    return {one.silence().id: (key, number) for key, listed in lists.items() for number, one in enumerate(listed)}


def _write(file: Path, text: str, wanted: list[AnyEntry]) -> None:
    """Write a file atomically, after checking that it holds exactly the wanted entries."""
    found = _read(text, file).found.entries
    if sorted(map(repr, found)) != sorted(map(repr, wanted)):
        raise SilenceError(Problem("cannot be edited without a change of what else is in it", BY_HAND, file=str(file)))
    target = file.resolve()
    draft = target.with_name(f".{FILE}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        what = f"cannot be written: {error.strerror}"
        raise SilenceError(Problem(what, "check permissions of the fabric's folder", file=str(file))) from None

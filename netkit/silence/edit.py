"""Edits of silences.yaml: whole lines are added or removed, so that the rest of a hand-written file stays as it is.

A lock on the folder serialises writers; readers see the old or the new file. The result of an edit is parsed before it
is written: an edit that would change anything else is refused.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from netkit.errors import Problem, SilenceError
from netkit.intent import document
from netkit.silence.entry import FILE
from netkit.silence.file import AnyEntry, Known, Silences, check, checked_document, load

HEAD = "# Findings that do not count, by whom, why and until when: netkit silence adds, lists and ends them.\n"
BY_HAND = "edit it by hand: a list with one entry below the other can be edited by netkit"
Plain = str | bool | list[str]


def add(folder: Path, name: str, values: Mapping[str, Plain], known: Known, now_s: float) -> AnyEntry:
    """Add an entry to the list `silences` or `acknowledgements`, replacing one of the same name; return it."""
    with _exclusive(folder):
        before = load(folder)
        text = _text(before.file)
        entry = _checked(name, values, known, now_s)
        if same := _places(before).get(entry.silence().id):
            text = _without(text, same, before.file)
        text = _with(text, name, _block(values), before.file)
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
        text = _without(_text(before.file), _places(before)[found[0]], before.file)
        _write(before.file, text, [one for one in before.found.entries if one is not gone])
        return gone


def _checked(name: str, values: Mapping[str, Plain], known: Known, now_s: float) -> AnyEntry:
    """Validate an entry before it is added; its problems have no line yet."""
    try:
        found = _read(f"{name}:\n{_block(values)}", Path(FILE))
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


def _block(values: Mapping[str, Plain]) -> str:
    """Format an entry as lines of a list; JSON strings are also valid YAML."""
    lines = [f"{key}: {_scalar(value)}" for key, value in values.items()]
    return "".join(f"  {'-' if not number else ' '} {line}\n" for number, line in enumerate(lines))


def _scalar(value: Plain) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    # Some invisible characters would end the line of a quoted text.
    chars = json.dumps(value, ensure_ascii=False)
    quoted = "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in chars)
    with suppress(Exception):  # what does not survive a round trip is quoted
        is_plain = value.isprintable() and document.parse(f"- k: {value}\n", "").value == [{"k": value}]
        in_list = yaml.safe_load(f"[{value}]") == [value]  # other parsers read `on` or a time differently
        return value if is_plain and in_list and " #" not in value else quoted
    return quoted


def _places(silences: Silences) -> Mapping[str, tuple[str, int]]:
    """Return where each entry is: its list, and its number there."""
    lists: Mapping[str, tuple[AnyEntry, ...]] = {
        "silences": silences.found.silences or (),
        "acknowledgements": silences.found.acknowledgements or (),
    }
    return {one.silence().id: (key, number) for key, listed in lists.items() for number, one in enumerate(listed)}


def _nodes(text: str, key: str) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield the nodes of a key of the file and of its value."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    yield from ((one, value) for one, value in (root.value if root else ()) if one.value == key)


def _without(text: str, place: tuple[str, int], file: Path) -> str:
    """Return the file without an entry; an empty list is removed too."""
    key, number = place
    ((name, listed),) = _nodes(text, key)
    _check_block(listed, file)
    lines = text.splitlines(keepends=True)
    begin, stop = _span(lines, listed.value[number])
    if len(listed.value) == 1:
        begin = name.start_mark.line
    return "".join((*lines[:begin], *lines[stop:]))


def _span(lines: list[str], node: yaml.Node) -> tuple[int, int]:
    """Return the lines of an entry, from its dash to its last value."""
    begin = node.start_mark.line
    while not lines[begin].lstrip().startswith("-"):
        begin -= 1
    is_within = bool(node.end_mark.column) and (_is_flow(node) or node.end_mark.line == len(lines) - 1)
    stop = node.end_mark.line + is_within
    while stop > begin + 1 and (not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#")):
        stop -= 1
    return begin, stop


def _with(text: str, key: str, block: str, file: Path) -> str:
    """Return the file with an entry at the end of a list."""
    text = text if text.endswith("\n") or not text else f"{text}\n"
    found = list(_nodes(text, key))
    if not found:
        return f"{text}{key}:\n{block}"
    ((name, listed),) = found
    lines = text.splitlines(keepends=True)
    if not listed.value:
        at = name.start_mark.line
        return "".join((*lines[:at], f"{key}:\n", block, *lines[listed.end_mark.line + 1 :]))
    _check_block(listed, file)
    begin, stop = _span(lines, listed.value[-1])
    dash = len(lines[begin]) - len(lines[begin].lstrip())
    moved = "".join(f"{' ' * dash}{line.removeprefix('  ')}" for line in block.splitlines(keepends=True))
    head = lines[:stop]
    head[-1] = head[-1] if head[-1].endswith("\n") else f"{head[-1]}\n"
    return "".join((*head, moved, *lines[stop:]))


def _is_flow(node: yaml.Node) -> bool:
    """Whether a node is written in brackets or braces."""
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _check_block(listed: yaml.Node, file: Path) -> None:
    if _is_flow(listed):
        line = listed.start_mark.line + 1
        raise SilenceError(Problem("is a list in brackets", BY_HAND, file=str(file), line=line))


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

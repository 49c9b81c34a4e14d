"""Changes as they are handed in: a YAML list of `set` and `unset`, or lines of `nv set` and `nv unset`."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from netkit.lab.personalities.nvue.schema import Issue, NvueSchemaNode, checked, merged
from netkit.lab.personalities.nvue.system import NvueCommandError, NvueSystem, complaint
from netkit.lab.personalities.nvue.tree import Path, Tree, Value, leaves, load, revealed

COMMANDS = re.compile(r"(?:\s*(?:#[^\n]*)?\n)*\s*nv ")
LINES_SINCE = (5, 13)
BOTH_SINCE = (5, 16)


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """What to take away, and then what to set."""

    unset: Tree
    set: Tree


def read(system: NvueSystem, text: str) -> DocumentChanges:
    """Return the changes a file holds; raises CommandError with all that is not accepted."""
    if COMMANDS.match(text):
        if system.chassis.version < LINES_SINCE:
            raise NvueCommandError("Error: a file of commands needs Cumulus Linux 5.13\n")
        changes = _lines(system, text)
    else:
        changes = _document(system.known, text)
    if system.chassis.version < BOTH_SINCE:
        gone = {path for path, _ in leaves(changes.unset)}
        for path, _ in leaves(changes.set):
            if any(path[: len(other)] == other or other[: len(path)] == path for other in gone):
                where = " ".join(path)
                raise NvueCommandError(
                    f"Error: set and unset of the same object in one patch is not supported: {where}\n"
                )
    return DocumentChanges(changes.unset, opened(system, changes.set))


def opened(system: NvueSystem, tree: Tree) -> Tree:
    """Return a tree with the secrets its tokens stand for."""
    unknown: list[str] = []
    result = revealed(tree, system.secrets(), unknown)
    if unknown:
        raise NvueCommandError(f"Error: the encrypted value of {unknown[0]} is not from this switch\n")
    return result


def _document(known: NvueSchemaNode, text: str) -> DocumentChanges:
    try:
        items = load(text)
    except ValueError as error:
        raise NvueCommandError(f"Error: the file is not YAML: {error}\n") from error
    if not isinstance(items, list) or not items:
        raise NvueCommandError("Error: the file must be a list of 'set' and 'unset'\n")
    issues: list[Issue] = []
    changes = DocumentChanges({}, {})
    for item in items:
        changes = _with_item(known, changes, item, issues)
    if issues:
        raise complaint(issues)
    return changes


def _with_item(known: NvueSchemaNode, changes: DocumentChanges, item: object, issues: list[Issue]) -> DocumentChanges:
    if not isinstance(item, dict) or len(item) != 1 or not set(item) <= {"set", "unset", "header"}:
        issues.append(Issue("", "each item of the list is one of 'set', 'unset' and 'header'", "schema"))
        return changes
    for verb, below in item.items():
        given = (
            checked(known, _unsetting(known, below) if verb == "unset" else below, issues) if verb != "header" else {}
        )
        tree = given if isinstance(given, dict) else {}
        if verb == "set":
            return DocumentChanges(changes.unset, merged(known, changes.set, tree))
        return DocumentChanges({**changes.unset, **tree}, changes.set)
    return changes


def _unsetting(known: NvueSchemaNode, given: object) -> object:
    """Return what an `unset` names with null at each end."""
    if isinstance(given, str) and not known.kinds:
        return {given: None}
    if not isinstance(given, dict) or not given:
        return None
    result: dict[object, object] = {}
    for key, below in given.items():
        step = known.step(key) if isinstance(key, str) else None
        result[key] = _unsetting(step[1], below) if step else below
    return result


def _lines(system: NvueSystem, text: str) -> DocumentChanges:
    changes = DocumentChanges({}, {})
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise NvueCommandError(f"Error: line {number}: {error}\n") from error
        if not words:
            continue
        if words[0] != "nv" or words[1:2] not in (["set"], ["unset"]):
            raise NvueCommandError(f"Error: line {number}: only nv set and nv unset are accepted\n")
        made = change(system.known, words[1], words[2:])
        changes = DocumentChanges(
            _joined(changes.unset, made.unset), merged(system.known, changes.set, made.set) if made.set else changes.set
        )
    return changes


def _joined(left: Tree, right: Tree) -> Tree:
    result = dict(left)
    for key, value in right.items():
        before = result.get(key)
        result[key] = _joined(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def change(known: NvueSchemaNode, verb: str, words: Sequence[str]) -> DocumentChanges:
    """Return what one nv set or nv unset says."""
    if not words:
        raise NvueCommandError(f"Error: nv {verb} needs a path\n")
    issues: list[Issue] = []
    given = _walk(known, list(words), verb == "unset", (), issues)
    tree = given if isinstance(given, dict) else {}
    if issues:
        raise complaint(issues)
    return DocumentChanges(tree, {}) if verb == "unset" else DocumentChanges({}, tree)


def _walk(known: NvueSchemaNode, words: list[str], is_unset: bool, path: Path, issues: list[Issue]) -> Value:
    if known.kinds:
        return _end(known, words, is_unset=is_unset, path=path, issues=issues)
    if not words:
        return None if is_unset else {}
    steps = known.steps(words[0])
    if not steps:
        checked(known, {words[0]: {}}, issues, path)
    return {name: _walk(below, words[1:], is_unset, (*path, name), issues) for name, below in steps}


def _end(known: NvueSchemaNode, words: list[str], *, is_unset: bool, path: Path, issues: list[Issue]) -> Value:
    where = ".".join(path)
    if is_unset and not words:
        return None
    if len(words) != 1:
        issues.append(Issue(where, "takes one value" if not words else f"'{words[1]}' is one word too many", "schema"))
        return None
    value = checked(known, words[0], issues, path)
    return None if is_unset else value

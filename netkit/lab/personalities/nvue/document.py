"""Patches: a YAML list of `set` and `unset`, or lines of `nv set` and `nv unset`."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from netkit.lab.personalities.nvue.schema import Issue, NvueSchemaNode, checked, merged
from netkit.lab.personalities.nvue.system import NvueCommandError, NvueSystem, complaint
from netkit.lab.personalities.nvue.tree import Path, Tree, Value, leaves, load, overlay, revealed

COMMANDS = re.compile(r"(?:\s*(?:#[^\n]*)?\n)*\s*nv ")
LINES_SINCE = (5, 13)
BOTH_SINCE = (5, 16)


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """Changes to a configuration: `unset` is applied before `set`."""

    unset: Tree
    set: Tree


def read(system: NvueSystem, text: str) -> DocumentChanges:
    """Parse a patch file; raise NvueCommandError with every problem."""
    if COMMANDS.match(text):
        if system.chassis.version < LINES_SINCE:
            raise NvueCommandError("Error: a file of commands needs Cumulus Linux 5.13\n")
        changes = _lines(system, text)
    else:
        changes = _document(system.known, text)
    if system.chassis.version < BOTH_SINCE:
        unset = {path for path, _ in leaves(changes.unset)}
        for path, _ in leaves(changes.set):
            if any(path[: len(other)] == other or other[: len(path)] == path for other in unset):
                where = " ".join(path)
                raise NvueCommandError(
                    f"Error: set and unset of the same object in one patch is not supported: {where}\n"
                )
    return DocumentChanges(changes.unset, opened(system, changes.set))


def opened(system: NvueSystem, tree: Tree) -> Tree:
    """Replace the tokens in a tree by their secrets."""
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
        issues.append(Issue("", "each item of the list must be one of 'set', 'unset' and 'header'", "schema"))
        return changes
    if "set" in item:
        tree = checked(known, item["set"], issues)
        return DocumentChanges(changes.unset, merged(known, changes.set, tree if isinstance(tree, dict) else {}))
    if "unset" in item:
        tree = checked(known, _nulls(known, item["unset"]), issues)
        return DocumentChanges({**changes.unset, **(tree if isinstance(tree, dict) else {})}, changes.set)
    return changes


def _nulls(known: NvueSchemaNode, value: object) -> object:
    """Convert an `unset` to a tree with null at each end."""
    if isinstance(value, str) and not known.kinds:
        return {value: None}
    if not isinstance(value, dict) or not value:
        return None
    result: dict[object, object] = {}
    for key, below in value.items():
        step = known.step(key) if isinstance(key, str) else None
        result[key] = _nulls(step[1], below) if step else below
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
        more = change(system.known, words[1], words[2:])
        changes = DocumentChanges(overlay(changes.unset, more.unset), merged(system.known, changes.set, more.set))
    return changes


def change(known: NvueSchemaNode, verb: str, words: Sequence[str]) -> DocumentChanges:
    """Parse the path of one `nv set` or `nv unset`."""
    if not words:
        raise NvueCommandError(f"Error: nv {verb} needs a path\n")
    issues: list[Issue] = []
    value = _value(known, list(words), verb == "unset", (), issues)
    tree = value if isinstance(value, dict) else {}
    if issues:
        raise complaint(issues)
    return DocumentChanges(tree, {}) if verb == "unset" else DocumentChanges({}, tree)


def _value(known: NvueSchemaNode, words: list[str], is_unset: bool, path: Path, issues: list[Issue]) -> Value:
    if known.kinds:
        return _leaf(known, words, is_unset=is_unset, path=path, issues=issues)
    if not words:
        return None if is_unset else {}
    steps = known.steps(words[0])
    if not steps:
        checked(known, {words[0]: {}}, issues, path)
    return {name: _value(below, words[1:], is_unset, (*path, name), issues) for name, below in steps}


def _leaf(known: NvueSchemaNode, words: list[str], *, is_unset: bool, path: Path, issues: list[Issue]) -> Value:
    if is_unset and not words:
        return None
    if len(words) != 1:
        reason = f"'{words[1]}' is one word too many" if words else "takes one value"
        issues.append(Issue(".".join(path), reason, "schema"))
        return None
    value = checked(known, words[0], issues, path)
    return None if is_unset else value

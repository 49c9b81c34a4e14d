"""Draining a switch: BGP graceful shutdown that is applied but never saved, so that a reboot ends it too.

NVUE saves what it applies, so a drain also turns auto-save off. Startup keeps the values from before the drain, which
also distinguishes netkit's drain from an intended one. Whether NVUE saves a revision that itself turns auto-save off is
not documented; unverified on a switch.
"""

import json
from typing import Any

from netkit.platforms.nvue.dialects import NvueDialect
from netkit.platforms.nvue.patch import NvuePatch, Tree, Value

SHUTDOWN = ("router", "bgp", "graceful-shutdown")
AUTO_SAVE = ("system", "config", "auto-save")
ON = frozenset({"on", "enabled"})
OFF = frozenset({"off", "disabled"})
HEAD = "set"


def tree_of(text: str) -> Tree:
    """Parse the JSON of a revision; one with a header is a list of `set` items."""
    found = json.loads(text)
    items = found if isinstance(found, list) else [found]
    tree: Tree = {}
    for item in items:
        tree.update(item.get(HEAD) or {} if item.keys() & {HEAD, "header"} else item)
    return tree


def at(tree: Tree, path: tuple[str, ...]) -> Value:
    """Look up a path; None if it is missing."""
    node: Value = tree
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def is_drained(tree: Tree) -> bool:
    """Whether graceful shutdown is on, whoever turned it on."""
    return at(tree, SHUTDOWN) in ON


def is_own(applied: Tree, startup: Tree) -> bool:
    """Whether netkit started the drain: graceful shutdown is applied but not in startup, and auto-save is off."""
    return is_drained(applied) and not is_drained(startup) and _is_unsaved(applied)


def is_ended(applied: Tree, startup: Tree) -> bool:
    """Whether auto-save is off for a change under netkit's timer only, and not (or no longer) for a drain."""
    return _is_unsaved(applied) and not _is_unsaved(startup) and not is_own(applied, startup)


def _is_unsaved(tree: Tree) -> bool:
    saves = at(tree, AUTO_SAVE)
    return isinstance(saves, dict) and any(value in OFF for value in saves.values())


def unsaved(words: NvueDialect) -> NvuePatch:
    """Build the patch that turns auto-save off."""
    return NvuePatch(set=_at(AUTO_SAVE, {words.state: words.off}))


def begun(words: NvueDialect) -> NvuePatch:
    """Build the patch that starts a drain."""
    return NvuePatch(set=_at(SHUTDOWN, words.on)).joined(unsaved(words))


def ended(startup: Tree, applied: Tree) -> NvuePatch:
    """Build the patch that ends a drain and restores auto-save."""
    return back(startup, applied, SHUTDOWN, AUTO_SAVE)


def back(startup: Tree, applied: Tree, *paths: tuple[str, ...]) -> NvuePatch:
    """Build the patch that resets some paths to startup; an object that is left empty is removed too.

    Such an object is left when a change removes all of BGP while the switch is drained.
    """
    unset: Tree = {}
    intended: Tree = {}
    for path in paths:
        found = at(startup, path)
        if found is None:
            unset.update(_at(_emptied(applied, path), None))
        else:
            intended.update(_at(path, found))
    return NvuePatch(unset, intended)


def _emptied(tree: Tree, path: tuple[str, ...]) -> tuple[str, ...]:
    """The highest object, below the root, that holds nothing but the end of a path."""
    for length in range(2, len(path)):
        nodes = [at(tree, path[:end]) for end in range(length, len(path))]
        if all(isinstance(node, dict) and len(node) == 1 for node in nodes):
            return path[:length]
    return path


def unseen(text: str, startup: Tree, *paths: tuple[str, ...]) -> str:
    """Remove netkit's drain from a configuration, or what netkit set at some paths."""
    tree: Any = tree_of(text)
    for path in paths or (SHUTDOWN, AUTO_SAVE):
        node, before = tree, at(startup, path)
        for key in path[:-1]:
            node = node[key]
        node.pop(path[-1], None)
        node.update({} if before is None else {path[-1]: before})
        if not node:
            _prune(tree, path[:-1])
    return json.dumps([{HEAD: tree}])


def _prune(tree: Any, path: tuple[str, ...]) -> None:
    """Remove objects that have become empty, as NVUE does not show them."""
    for length in range(len(path), 0, -1):
        node = tree
        for key in path[: length - 1]:
            node = node[key]
        if node[path[length - 1]]:
            return
        del node[path[length - 1]]


def _at(path: tuple[str, ...], value: Value) -> Tree:
    tree: Value = value
    for key in reversed(path):
        tree = {key: tree}
    return tree if isinstance(tree, dict) else {}

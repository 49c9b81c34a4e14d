"""Draining a switch: BGP graceful shutdown that runs but is never saved, so that a reboot ends it too.

NVUE saves by itself what it applies, so that a drain turns that off as well. What startup says of both is what was
there before, and tells a drain of netkit's from one that is intended. How NVUE saves with auto-save turned off in the
very revision it applies is not documented; unverified on a switch.
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
    """Return the tree in what a switch shows of a revision."""
    found = json.loads(text)
    items = found if isinstance(found, list) else [found]
    tree: Tree = {}
    for item in items:
        tree.update(item.get(HEAD) or {} if item.keys() & {HEAD, "header"} else item)
    return tree


def at(tree: Tree, path: tuple[str, ...]) -> Value:
    """Return what stands at a path; None when nothing does."""
    node: Value = tree
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def is_drained(tree: Tree) -> bool:
    """Whether graceful shutdown runs, whoever asked for it."""
    return at(tree, SHUTDOWN) in ON


def is_own(applied: Tree, startup: Tree) -> bool:
    """Whether a drain is netkit's: it runs, is not saved, and what runs is not being saved."""
    return is_drained(applied) and not is_drained(startup) and _is_unsaved(applied)


def is_ended(applied: Tree, startup: Tree) -> bool:
    """Whether what runs is not being saved for a change under netkit's timer, with no drain of netkit's (any more)."""
    return _is_unsaved(applied) and not _is_unsaved(startup) and not is_own(applied, startup)


def _is_unsaved(tree: Tree) -> bool:
    saves = at(tree, AUTO_SAVE)
    return isinstance(saves, dict) and any(value in OFF for value in saves.values())


def unsaved(words: NvueDialect) -> NvuePatch:
    """Return the document that turns auto-save off."""
    return NvuePatch(set=_at(AUTO_SAVE, {words.state: words.off}))


def begun(words: NvueDialect) -> NvuePatch:
    """Return the document that drains."""
    return NvuePatch(set=_at(SHUTDOWN, words.on)).joined(unsaved(words))


def ended(startup: Tree, applied: Tree) -> NvuePatch:
    """Return the document that makes both what they were."""
    return back(startup, applied, SHUTDOWN, AUTO_SAVE)


def _alone(tree: Tree, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the shortest start of a path, below the root, that leads to nothing but its end."""
    for length in range(2, len(path)):
        nodes = [at(tree, path[:end]) for end in range(length, len(path))]
        if all(isinstance(node, dict) and len(node) == 1 for node in nodes):
            return path[:length]
    return path


def back(startup: Tree, applied: Tree, *paths: tuple[str, ...]) -> NvuePatch:
    """Return the document that makes some places what startup says; an object in which nothing else is left goes too.

    Such an object is what remains when a change takes away all of BGP while the switch is drained.
    """
    unset: Tree = {}
    intended: Tree = {}
    for path in paths:
        found = at(startup, path)
        if found is None:
            unset.update(_at(_alone(applied, path), None))
        else:
            intended.update(_at(path, found))
    return NvuePatch(unset, intended)


def unseen(text: str, startup: Tree, *paths: tuple[str, ...]) -> str:
    """Return a configuration as it would be without netkit's drain, or without what netkit set in some places."""
    tree: Any = tree_of(text)
    for path in paths or (SHUTDOWN, AUTO_SAVE):
        node, was = tree, at(startup, path)
        for key in path[:-1]:
            node = node[key]
        node.pop(path[-1], None)
        node.update({} if was is None else {path[-1]: was})
        if not node:
            _prune(tree, path[:-1])
    return json.dumps([{HEAD: tree}])


def _prune(tree: Any, path: tuple[str, ...]) -> None:
    """Take away objects that have become empty, as NVUE does not show them."""
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

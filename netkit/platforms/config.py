"""A device's configuration as one flat mapping of path → value, in the same form for every NOS.

A CLI line and a node of a tree are both an entry; an entry without a value is the empty string. All values are
strings, so that 9216 and "9216" compare equal.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from netkit.errors import ConfigError, Problem

Path = tuple[str, ...]
Config = Mapping[Path, str]
Files = Mapping[str, str]
"""Name under which netkit renders a file → its text."""
VERSION = "os-version"
"""A file beside those of a switch that was read: the release it runs."""
Tree: TypeAlias = dict[str, "Tree | str"]
Expand = Callable[[Path, str], Iterable[str]]
"""(path, key) → the keys it expands to: some NOSes write `swp1-4` for four ports."""

DEEPEST = 60
MOST_ENTRIES = 500_000
PRESENT = ""


def flat(tree: object, file: str, expand: Expand | None = None) -> dict[Path, str]:
    """Flatten a nested tree."""
    entries: dict[Path, str] = {}
    _flatten(tree, (), entries, expand, file)
    return entries


def _flatten(node: object, path: Path, entries: dict[Path, str], expand: Expand | None, file: str) -> None:
    if isinstance(node, str):
        entries[path] = node
        return
    if isinstance(node, list):
        node = {item if isinstance(item, str) else str(index): item for index, item in enumerate(node)}
        node = {key: PRESENT if key == item else item for key, item in node.items()}
    if not isinstance(node, dict):
        entries[path] = str(node).lower()
        return
    if not node:
        entries[path] = PRESENT
        return
    if len(path) > DEEPEST or len(entries) > MOST_ENTRIES:
        raise ConfigError(Problem("is too deep or too large for a configuration", "read it again", file=file))
    for key, value in node.items():
        if value is None:  # NVUE's notation for an absent side
            continue
        for name in expand(path, key) if expand else (key,):
            _flatten(value, (*path, name), entries, expand, file)


def nested(config: Config) -> Tree:
    """Build a tree from a flat configuration; an entry without a value becomes an empty mapping."""
    tree: Tree = {}
    for path, value in config.items():
        node = tree
        for key in path[:-1]:
            inner = node.setdefault(key, {})
            if isinstance(inner, str):
                inner = node[key] = {}
            node = inner
        if value or path[-1] not in node:
            node[path[-1]] = value or {}
    return tree


def digest(config: Config) -> str:
    joined = "\n".join(map(repr, sorted(config.items())))
    return hashlib.sha256(joined.encode()).hexdigest()

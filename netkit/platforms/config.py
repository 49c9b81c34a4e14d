"""A device's configuration as one flat mapping, the same shape for every NOS: where something stands → what it is.

A line of a command line and a node of a tree are both an entry; what is only there, without a value, is empty text.
Values are text throughout, so that 9216 and "9216" are the same to everybody.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from netkit.errors import ConfigError, Problem

Path = tuple[str, ...]
Config = Mapping[Path, str]
Files = Mapping[str, str]
"""The files of a device, by the name netkit renders them under."""
Tree: TypeAlias = dict[str, "Tree | str"]
Expand = Callable[[Path, str], Iterable[str]]
"""(path, key) → the keys it stands for: some NOSes write `swp1-4` for four ports."""

DEEPEST = 60
MOST_ENTRIES = 500_000
PRESENT = ""


def flat(tree: object, file: str, expand: Expand | None = None) -> dict[Path, str]:
    """Return a nested tree as a flat configuration."""
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
        raise ConfigError(Problem("is too deep or too large to be a configuration", "read it again", file=file))
    for key, value in node.items():
        if value is None:  # NVUE's way to say that there is nothing on this side
            continue
        for name in expand(path, key) if expand else (key,):
            _flatten(value, (*path, name), entries, expand, file)


def nested(config: Config) -> Tree:
    """Return a flat configuration as a tree; what is only there is an empty mapping."""
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
    """Return a stable digest of a configuration."""
    joined = "\n".join(map(repr, sorted(config.items())))
    return hashlib.sha256(joined.encode()).hexdigest()

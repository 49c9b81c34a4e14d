"""Secrets in what is shown: an opaque token stands for each, and is taken back for what it stands for."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from netkit.lab.personalities.nvue.tree import Tree

MARK = "$nvsec$"
HIDDEN = frozenset({"auth-sha", "encrypt-aes"})
"""Objects whose names are secrets."""


def token(secret: str) -> str:
    """Return what stands for a secret."""
    return MARK + hashlib.sha256(secret.encode()).hexdigest()[:32]


def hidden(tree: Tree, *, is_secret: bool = False) -> Tree:
    """Return a tree without secrets."""
    return {
        token(key) if is_secret else key: hidden(below, is_secret=key in HIDDEN) if isinstance(below, dict) else below
        for key, below in tree.items()
    }


def known(trees: Iterable[Tree]) -> Mapping[str, str]:
    """Return what each token of some trees stands for."""
    return {token(secret): secret for tree in trees for secret in _secrets(tree)}


def _secrets(tree: Tree) -> Iterator[str]:
    for key, below in tree.items():
        if isinstance(below, dict):
            yield from below if key in HIDDEN else ()
            yield from _secrets(below)


def revealed(tree: Tree, secrets: Mapping[str, str], unknown: list[str]) -> Tree:
    """Return a tree with its secrets back; where tokens are of another switch, their object is added to the unknown."""
    result: Tree = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            below = revealed(value, secrets, unknown)
            if key in HIDDEN:
                unknown += [key for name in below if name.startswith(MARK) and name not in secrets]
                below = {secrets.get(name, name): inner for name, inner in below.items()}
            result[key] = below
        else:
            result[key] = value
    return result

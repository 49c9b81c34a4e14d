"""Secrets in what is shown: an opaque token stands for each, and is taken back for what it stands for."""

import hashlib
from collections.abc import Iterable, Mapping

from netkit.lab.personalities.nvue.tree import Tree, Value, leaves

MARK = "$nvsec$"
HIDDEN = frozenset({"auth-sha", "encrypt-aes"})


def token(secret: str) -> str:
    """Return what stands for a secret."""
    return MARK + hashlib.sha256(secret.encode()).hexdigest()[:32]


def hidden(tree: Tree) -> Tree:
    """Return a tree without secrets."""
    return {key: _hidden(key, value) for key, value in tree.items()}


def _hidden(key: str, value: Value) -> Value:
    if isinstance(value, dict):
        return hidden(value)
    return token(str(value)) if key in HIDDEN and value is not None else value


def known(trees: Iterable[Tree]) -> Mapping[str, str]:
    """Return what each token of some trees stands for."""
    return {token(str(value)): str(value) for tree in trees for path, value in leaves(tree) if path[-1] in HIDDEN}


def revealed(tree: Tree, secrets: Mapping[str, str], unknown: list[str]) -> Tree:
    """Return a tree with its secrets back; tokens of another switch are added to the unknown."""
    result: Tree = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            result[key] = revealed(value, secrets, unknown)
        elif key in HIDDEN and str(value).startswith(MARK):
            result[key] = secrets.get(str(value), value)
            unknown += [] if str(value) in secrets else [key]
        else:
            result[key] = value
    return result

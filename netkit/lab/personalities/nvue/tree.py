"""NVUE configurations: a tree of objects whose leaves are text or numbers."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

Value = dict[str, "Value"] | str | int | None
"""Null occurs only in changes and removes the value."""
Tree = dict[str, Value]
Path = tuple[str, ...]


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as NVUE reads it: only numbers and null are not strings, so `on` is a word."""


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """YAML as NVUE writes it: `on` is not quoted."""


_KEPT = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
for _tool in (_Loader, _Dumper):
    _tool.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag in _KEPT]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def load(text: str) -> object:
    """Parse YAML; raise ValueError with the location of the error."""
    try:
        found: object = yaml.load(text, _Loader)  # noqa: S506 - a safe loader, with fewer kinds of scalar
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    return found


def dump(value: object) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=200))


def child(tree: Tree, *path: str) -> Tree:
    """The object at a path; empty if there is none."""
    found: Value = tree
    for key in path:
        if not isinstance(found, dict):
            return {}
        found = found.get(key)
    return found if isinstance(found, dict) else {}


def has(tree: Tree, *path: str) -> bool:
    """Whether a path exists, even as an empty object."""
    return path[-1] in child(tree, *path[:-1])


def text(tree: Tree, *path: str) -> str:
    """The leaf at a path as text; empty if there is none."""
    found = child(tree, *path[:-1]).get(path[-1])
    return "" if found is None or isinstance(found, dict) else str(found)


def number(tree: Tree, *path: str, default: int = 0) -> int:
    found = child(tree, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) else default


def is_on(tree: Tree, *path: str, default: bool = False) -> bool:
    """Whether an object is enabled, in the words of any release."""
    found = child(tree, *path)
    word = found.get("state", found.get("enable"))
    return default if word is None else word in {"on", "enabled", "enable"}


def is_set(tree: Tree, *path: str) -> bool:
    """Whether an on/off leaf is on."""
    return text(tree, *path) in {"on", "enabled", "enable"}


def addresses(interface: Tree) -> tuple[str, ...]:
    """The static addresses of an interface, at the path of any release."""
    found = [address for key in ("ip", "ipv4", "ipv6") for address in child(interface, key, "address")]
    return tuple(address for address in found if address != "dhcp")


def nested(path: Sequence[str], value: object) -> object:
    for key in reversed(path):
        value = {key: value}
    return value


def overlay(base: Tree, patch: Tree) -> Tree:
    """Merge two trees; the values of the second win."""
    result = dict(base)
    for key, value in patch.items():
        before = result.get(key)
        result[key] = overlay(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def copy(value: Value) -> Value:
    return {key: copy(below) for key, below in value.items()} if isinstance(value, dict) else value


def leaves(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Value]]:
    """Yield every leaf with its path; an empty object is a leaf."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def without(tree: Tree, path: Path) -> Tree:
    """A tree without a path; parents that become empty are removed too."""
    kept = dict(tree)
    below = kept.get(path[0])
    if len(path) == 1:
        kept.pop(path[0], None)
    elif isinstance(below, dict):
        rest = without(below, path[1:])
        kept[path[0]] = rest
        if below and not rest:
            del kept[path[0]]
    return kept


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """The values to set and to remove to get from one tree to another."""

    added: Tree
    removed: Tree

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def difference(running: Tree, intended: Tree) -> TreeDifference:
    added: Tree = {}
    removed: Tree = {}
    for key, value in intended.items():
        before = running.get(key)
        if isinstance(value, dict) and isinstance(before, dict) and before:
            below = difference(before, value)
            added |= {key: below.added} if below.added else {}
            removed |= {key: below.removed} if below.removed else {}
        elif key not in running or before != value:
            added[key] = copy(value)
    removed |= {key: None for key in running if key not in intended}
    return TreeDifference(added, removed)


MARK = "$nvsec$"
HIDDEN = frozenset({"auth-sha", "encrypt-aes"})
"""Objects whose keys are secrets."""


def token(secret: str) -> str:
    return MARK + hashlib.sha256(secret.encode()).hexdigest()[:32]


def hidden(tree: Tree, *, is_secret: bool = False) -> Tree:
    """Replace the secrets in a tree by tokens."""
    return {
        token(key) if is_secret else key: hidden(below, is_secret=key in HIDDEN) if isinstance(below, dict) else below
        for key, below in tree.items()
    }


def known(trees: Iterable[Tree]) -> Mapping[str, str]:
    """The secret of each token in some trees."""
    return {token(secret): secret for tree in trees for secret in _secrets(tree)}


def _secrets(tree: Tree) -> Iterator[str]:
    for key, below in tree.items():
        if isinstance(below, dict):
            yield from below if key in HIDDEN else ()
            yield from _secrets(below)


def revealed(tree: Tree, secrets: Mapping[str, str], unknown: list[str]) -> Tree:
    """Replace tokens by their secrets; add objects with tokens of another switch to `unknown`."""
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

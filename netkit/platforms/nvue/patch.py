"""From changes to patches for `nv config patch` and REST: one, or two if the breakout of a cage changes."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from netkit.errors import ConfigError, Problem
from netkit.platforms.change import Change
from netkit.platforms.compare import apply
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.nvue import model
from netkit.platforms.nvue.model import FILE, user_of
from netkit.platforms.nvue.strategy import is_breakout, joined_cages
from netkit.platforms.ownership import LEFT
from netkit.platforms.plain_yaml import INTEGER, plain
from netkit.platforms.secrets import SECRET, SecretResolver, has_placeholder

Value: TypeAlias = "dict[str, Value] | str | int | None"
Tree = dict[str, Value]
Entries = Mapping[Path, "str | int | None"]
"""Path → value; None for an object without keys, and in what is unset."""

COMMANDS = re.compile(r"(?:\s*(?:#[^\n]*)?\n)*\s*nv ")
"""The beginning of a file of `nv set` and `nv unset` lines."""
SHORTEST_UNSET = 2
"""Never unset a whole branch such as `interface` or `system`."""


@dataclass(frozen=True, slots=True)
class NvuePatch:
    """What `nv config patch` unsets, and then sets."""

    unset: Tree = field(default_factory=dict)
    set: Tree = field(default_factory=dict)

    def items(self) -> list[dict[str, Tree]]:
        """The list that `nv config patch` reads."""
        return [{verb: tree} for verb, tree in (("unset", self.unset), ("set", self.set)) if tree]

    def joined(self, other: "NvuePatch") -> "NvuePatch":
        """Merge two patches; the other one wins."""
        return NvuePatch(_joined(self.unset, other.unset), _joined(self.set, other.set))


def _joined(left: Tree, right: Tree) -> Tree:
    result = dict(left)
    for key, value in right.items():
        before = result.get(key)
        result[key] = _joined(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


class _Loader(yaml.CBaseLoader):
    """YAML with integers, and everything else as text: `on` is a keyword of NVUE."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", INTEGER, list("-0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _loader, node: int(node.value))


def typed(text: str) -> Any:
    """Parse YAML, with integers as numbers and everything else as text."""
    found = plain(text, has_numbers=True)
    if found is not None:
        return found
    try:
        return yaml.load(text, Loader=_Loader) or []  # noqa: S506 (it makes plain values only)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError(Problem("cannot be read", "write it as YAML", file=FILE)) from None


def filled(text: str, secrets: SecretResolver) -> str:
    """Insert secrets into YAML or `nv set` lines, quoted as the format requires."""
    if not has_placeholder(text):
        return text
    if COMMANDS.match(text):
        return "".join(f"{secrets.command(line)}\n" for line in text.splitlines())
    return json.dumps(secrets.tree(typed(text)))


def document_in(text: str) -> NvuePatch:
    """Parse a file with `set` and `unset`."""
    found = NvuePatch()
    items = typed(text)
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict) or item.keys() - {"set", "unset", "header"}:
            raise ConfigError(Problem("is not an NVUE configuration", "expected `- set:` and `- unset:`", file=FILE))
        found = found.joined(NvuePatch(_ends(item.get("unset") or {}), item.get("set") or {}))
    return found


def _ends(gone: Any) -> Tree:
    """Replace the ends of an unset tree by null, however they are written."""
    return {key: _ends(below) if isinstance(below, dict) and below else None for key, below in gone.items()}


def entries(files: Files) -> dict[Path, str | int | None]:
    """Flatten what intended files set, with placeholders for secrets."""
    items = typed(files.get(FILE, ""))
    found: dict[Path, str | int | None] = {}
    for item in items if isinstance(items, list) else [{"set": items}]:
        _flatten(item.get("set") or {} if isinstance(item, dict) else {}, (), found)
    return found


def whole(files: Files) -> NvuePatch:
    """Build the patch that sets everything in intended files except SNMPv3 users."""
    return NvuePatch(set=_tree({path: value for path, value in entries(files).items() if not user_of(path)}, empty={}))


def users(files: Files, changes: Iterable[Change] | None = None) -> tuple[str, ...]:
    """How to set SNMPv3 users, in the two forms to try: documented `nv set` lines, and YAML as rendered.

    Only the users that `changes` are about, if given; empty if there are none to set.
    """
    changed = None if changes is None else {user_of(change.path) for change in changes}
    wanted = {path: value for path, value in entries(files).items() if user_of(path)}
    wanted = {path: value for path, value in wanted.items() if changed is None or user_of(path) in changed}
    lines = (shlex.join(["nv", "set", *path, *([] if end is None else [str(end)])]) for path, end in wanted.items())
    document = NvuePatch(set=_tree(wanted, empty={})).items()
    return ("".join(f"{line}\n" for line in lines), json.dumps(document)) if wanted else ()


def _flatten(node: Any, path: Path, found: dict[Path, str | int | None]) -> None:
    if not isinstance(node, dict):
        found[path] = node if isinstance(node, int) else str(node) or None
    elif not node and path:
        found.setdefault(path, None)
    else:
        for key, value in node.items():
            for name in model.names(path, str(key)):
                _flatten(value, (*path, name), found)


def documents(files: Files, changes: tuple[Change, ...], running: Config) -> tuple[NvuePatch, ...]:
    """Build the patches that make some changes; each has to be applied before the next.

    If the breakout of a cage changes, the first patch removes its ports, even those that stay: NVUE requires it.
    """
    wanted = entries(files)
    cages = joined_cages(changes, running)
    names = {path[1] for path in running if path[0] == "interface" and len(path) > 1}
    ports = frozenset(name for name in names if name.rpartition("s")[0] in cages and name not in cages)
    if not ports:
        return (_document(changes, wanted, running),)
    ownership = model.MODEL.ownership.on(files)
    wanted |= {
        path: int(value) if INTEGER.match(value) else value or None
        for path, value in running.items()
        if ownership.precedence(path) == LEFT
    }
    removed: dict[Path, str | int | None] = {}
    for path in running:
        if not ports.isdisjoint(path):  # unset everything that names a port, as far as the port
            at = next(at for at, key in enumerate(path) if key in ports)
            removed[path[: at + 1]] = None
    remaining = {path: value for path, value in running.items() if ports.isdisjoint(path)}
    again = [Change(path, None, "") for path in wanted if not ports.isdisjoint(path)]
    others = [change for change in changes if ports.isdisjoint(change.path)]
    return NvuePatch(unset=_tree(removed)), _document((*others, *again), wanted, remaining)


def asks_what_runs(changes: Iterable[Change]) -> bool:
    """Whether building the patches needs the running configuration: for a removal, or a changed breakout."""
    return any(change.is_removal or is_breakout(change) for change in changes)


def _document(changes: Iterable[Change], wanted: Entries, running: Config) -> NvuePatch:
    changes = tuple(changes)
    remaining: set[Path] = set()
    if any(change.is_removal for change in changes):
        remaining = {path[:length] for path in apply(running, changes) for length in range(1, len(path) + 1)}
    unset: dict[Path, str | int | None] = {}
    intended: dict[Path, str | int | None] = {}
    known_users = {user_of(path) for path in running}
    for change in changes:
        path = change.path
        user = user_of(path)
        masked = next((at for at, key in enumerate(path) if SECRET in key), None)
        if user:  # set by a separate document
            unset.update({user: None} if user in known_users else {})
        elif masked is not None:  # the name is itself a secret: replace the object that holds it
            holder = path[:masked]
            unset.update({holder: None} if change.running is not None else {})
            intended.update({path: value for path, value in wanted.items() if path[:masked] == holder})
        elif change.is_removal:  # as high as nothing remains below, so that empty objects go too
            lengths = range(min(SHORTEST_UNSET, len(path)), len(path) + 1)
            unset[next((path[:length] for length in lengths if path[:length] not in remaining), path)] = None
        elif path in wanted:
            intended[path] = wanted[path]
        else:
            where = ".".join(path)
            raise ConfigError(Problem(f"the plan sets {where}, which is not intended", "plan again", file=FILE))
    return NvuePatch(_tree(unset), _tree(intended, empty={}))


def _tree(found: Entries, empty: Value = None) -> Tree:
    """Nest entries; an entry without a value becomes `empty`. A shorter path covers what is below it."""
    tree: Tree = {}
    for path, value in sorted(found.items(), key=lambda item: len(item[0])):
        node = tree
        for key in path[:-1]:
            below = node.setdefault(key, {})
            if not isinstance(below, dict):
                break
            node = below
        else:
            node.setdefault(path[-1], {} if value is None and empty == {} else value)
    return tree

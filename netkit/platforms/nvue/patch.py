"""Changes → what `nv config patch` and the REST interface take: one document, or two where a cage is split anew."""

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
from netkit.platforms.nvue.model import FILE, names, user_of
from netkit.platforms.nvue.strategy import is_breakout, joined_cages
from netkit.platforms.plain_yaml import INTEGER, plain
from netkit.platforms.secrets import SECRET, SecretResolver, has_placeholder

Value: TypeAlias = "dict[str, Value] | str | int | None"
Tree = dict[str, Value]
Entries = Mapping[Path, "str | int | None"]
"""Where something stands → what; None for what is only there, and in what is unset."""

COMMANDS = re.compile(r"(?:\s*(?:#[^\n]*)?\n)*\s*nv ")
"""How a file of nv set and nv unset begins."""
SHORTEST_UNSET = 2
"""Whole branches such as `interface` or `system` are never unset at their root."""


@dataclass(frozen=True, slots=True)
class NvuePatch:
    """What is taken away, and what is then set."""

    unset: Tree = field(default_factory=dict)
    set: Tree = field(default_factory=dict)

    def items(self) -> list[dict[str, Tree]]:
        """Return it as the list `nv config patch` takes."""
        return [{verb: tree} for verb, tree in (("unset", self.unset), ("set", self.set)) if tree]

    def joined(self, other: "NvuePatch") -> "NvuePatch":
        """Return both in one; where they disagree, the other holds."""
        return NvuePatch(_joined(self.unset, other.unset), _joined(self.set, other.set))


def _joined(left: Tree, right: Tree) -> Tree:
    result = dict(left)
    for key, value in right.items():
        before = result.get(key)
        result[key] = _joined(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


class _Loader(yaml.CBaseLoader):
    """YAML in which bare whole numbers are numbers, and all else is text: `on` is a word of NVUE's."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:int", INTEGER, list("-0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _loader, node: int(node.value))


def typed(text: str) -> Any:
    """Return what a YAML file holds, numbers as numbers and all else as text."""
    found = plain(text, has_numbers=True)
    if found is not None:
        return found
    try:
        return yaml.load(text, Loader=_Loader) or []  # noqa: S506 (it makes plain values only)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError(Problem("cannot be read", "write it as YAML", file=FILE)) from None


def filled(text: str, secrets: SecretResolver) -> str:
    """Return a file as a person writes it with its secrets, quoted as its form wants it."""
    if not has_placeholder(text):
        return text
    if COMMANDS.match(text):
        return "".join(f"{secrets.command(line)}\n" for line in text.splitlines())
    return json.dumps(secrets.tree(typed(text)))


def document_in(text: str) -> NvuePatch:
    """Return what a file with `set` and `unset` says."""
    found = NvuePatch()
    items = typed(text)
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict) or item.keys() - {"set", "unset", "header"}:
            raise ConfigError(Problem("is no NVUE configuration", "expected `- set:` and `- unset:`", file=FILE))
        found = found.joined(NvuePatch(_ends(item.get("unset") or {}), item.get("set") or {}))
    return found


def _ends(gone: Any) -> Tree:
    """Return what is unset with null at each end, however its writer ended it."""
    return {key: _ends(below) if isinstance(below, dict) and below else None for key, below in gone.items()}


def entries(files: Files) -> dict[Path, str | int | None]:
    """Return what intended files set, with netkit's placeholders for secrets."""
    items = typed(files.get(FILE, ""))
    found: dict[Path, str | int | None] = {}
    for item in items if isinstance(items, list) else [{"set": items}]:
        _flatten(item.get("set") or {} if isinstance(item, dict) else {}, (), found)
    return found


def whole(files: Files) -> NvuePatch:
    """Return the document that makes intended files all there is, but for SNMPv3 users."""
    return NvuePatch(set=_tree({path: value for path, value in entries(files).items() if not user_of(path)}, empty={}))


def users(files: Files, changes: Iterable[Change] | None = None) -> tuple[str, ...]:
    """Return how SNMPv3 users are set, in the forms to be tried: commands, as NVIDIA lists them, and what is rendered.

    Those that some changes are about, or all; nothing where none is to be set.
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
            for name in names(path, str(key)):
                _flatten(value, (*path, name), found)


def documents(files: Files, changes: tuple[Change, ...], running: Config) -> tuple[NvuePatch, ...]:
    """Return the documents that make some changes, in order; each is to be applied before the next.

    A cage whose breakout changes loses its ports first, whatever stays of them: NVUE wants them gone before.
    """
    wanted = entries(files)
    ports = _ports_of(joined_cages(changes, running), running)
    if not ports:
        return (_document(changes, wanted, running),)
    gone = {path: value for path, value in running.items() if ports.isdisjoint(path)}
    first = NvuePatch(unset=_tree({_up_to(path, ports): None for path in running if not ports.isdisjoint(path)}))
    again = [Change(path, None, "") for path in wanted if not ports.isdisjoint(path)]
    others = [change for change in changes if ports.isdisjoint(change.path)]
    return first, _document((*others, *again), wanted, gone)


def asks_what_runs(changes: Iterable[Change]) -> bool:
    """Whether the documents of some changes depend on what runs beside: where something goes, or a cage is split."""
    return any(change.is_removal or is_breakout(change) for change in changes)


def _ports_of(cages: set[str], running: Config) -> frozenset[str]:
    ports = {path[1] for path in running if path[0] == "interface" and len(path) > 1}
    return frozenset(port for port in ports if port.rpartition("s")[0] in cages and port not in cages)


def _up_to(path: Path, ports: frozenset[str]) -> Path:
    """Return a path as far as the name of a port."""
    return path[: next(at for at, key in enumerate(path) if key in ports) + 1]


def _document(changes: Iterable[Change], wanted: Entries, running: Config) -> NvuePatch:
    changes = tuple(changes)
    remaining = _prefixes(apply(running, changes)) if any(change.is_removal for change in changes) else set()
    taken: dict[Path, str | int | None] = {}
    made: dict[Path, str | int | None] = {}
    known = {user_of(path) for path in running}
    for change in changes:
        user = user_of(change.path)
        if user:  # what it is to be is staged apart
            taken.update({user: None} if user in known else {})
            continue
        masked = next((at for at, key in enumerate(change.path) if SECRET in key), None)
        if masked is not None:  # a name that is itself a secret: what holds it is told anew
            holder = change.path[:masked]
            taken.update({holder: None} if change.running is not None else {})
            made.update({path: value for path, value in wanted.items() if path[:masked] == holder})
        elif change.is_removal:
            taken[_highest_gone(change.path, remaining)] = None
        elif change.path in wanted:
            made[change.path] = wanted[change.path]
        else:
            where = ".".join(change.path)
            raise ConfigError(Problem(f"the plan sets {where}, which is not intended", "plan again", file=FILE))
    return NvuePatch(_tree(taken), _tree(made, empty={}))


def _prefixes(paths: Iterable[Path]) -> set[Path]:
    return {path[:length] for path in paths for length in range(1, len(path) + 1)}


def _highest_gone(path: Path, remaining: set[Path]) -> Path:
    """Return the shortest start of a path below which nothing remains: objects go as a whole."""
    lengths = range(min(SHORTEST_UNSET, len(path)), len(path) + 1)
    return next((path[:length] for length in lengths if path[:length] not in remaining), path)


def _tree(found: Entries, empty: Value = None) -> Tree:
    """Return entries as a tree; what is only there ends in `empty`. A shorter path covers what stands below it."""
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

"""What configuration a release of NVUE knows, from `schema.yaml`."""

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path as File

from netkit.lab.personalities.nvue.kinds import Kind, kind, ranges
from netkit.lab.personalities.nvue.tree import Path, Tree, Value, load

SOURCE = File(__file__).with_name("schema.yaml")
BREAK = (5, 15)
COMPARISONS: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {"<": operator.lt, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Node:
    """One place of the tree: an object with known children, or a leaf of one of some kinds."""

    children: Mapping[str, "Node"]
    patterns: tuple[tuple[Kind, "Node"], ...]
    kinds: tuple[Kind, ...]
    is_exclusive: bool

    def step(self, key: str) -> tuple[str, "Node"] | None:
        """Return what a key is kept as and where it leads; None when it is not known here."""
        if key in self.children:
            return key, self.children[key]
        for pattern, node in self.patterns:
            kept = pattern.read(key)
            if kept is not None:
                return str(kept), node
        return None

    def steps(self, key: str) -> list[tuple[str, "Node"]]:
        """Return the same for a key that may be a range."""
        found = self.step(key)
        if found:
            return [found]
        each = [self.step(part) for part in ranges(key)] if re.search(r"[,-]", key) else [None]
        return [step for step in each if step] if all(each) else []


@dataclass(frozen=True, slots=True)
class Issue:
    """What is wrong with a configuration, and where."""

    location: str
    reason: str
    code: str = "config_invalid"

    @property
    def message(self) -> str:
        """Return both in one line."""
        return f"Config invalid at {self.location}: {self.reason}" if self.location else self.reason


def version_key(version: str) -> tuple[int, ...]:
    """Return a version such as 5.16.1 as numbers to compare."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


@cache
def schema(version: tuple[int, ...]) -> Node:
    """Return what a release knows."""
    return _node(load(SOURCE.read_text(encoding="utf-8")), version)


def _node(said: object, version: tuple[int, ...]) -> Node:
    if isinstance(said, str) and said != "node":
        toggle = "words enabled disabled" if version >= BREAK else "words on off"
        kinds = tuple(kind(toggle if one == "toggle" else one) for one in said.split(" | "))
        return Node({}, (), kinds, is_exclusive=False)
    children: dict[str, Node] = {}
    patterns: list[tuple[Kind, Node]] = []
    items = said if isinstance(said, dict) else {}
    for key, below in items.items():
        name, *limits = str(key).split(" @", 1)
        words = limits[0].split() if limits else []
        if not all(is_within(version, word) for word in words) or name == "ONE":
            continue
        if name == "STATE":
            children["state" if version >= BREAK else "enable"] = _node("toggle", version)
        elif name.startswith("<"):
            patterns.append((kind(name.strip("<>")), _node(below, version)))
        else:
            children[name] = _node(below, version)
    return Node(children, tuple(patterns), (), is_exclusive="ONE" in items)


def is_within(version: tuple[int, ...], limit: str) -> bool:
    """Whether a release is within a limit such as >=5.15."""
    word = limit.lstrip("@")
    sign = ">=" if word.startswith(">=") else "<"
    return COMPARISONS[sign](version, version_key(word))


def checked(node: Node, given: object, issues: list[Issue], path: Path = ()) -> Value:
    """Return what was given as it is kept, ranges spelled out; what is not known is added to the issues."""
    if given is None:
        return None
    if node.kinds:
        return _leaf(node, given, issues, path)
    if not isinstance(given, dict):
        issues.append(Issue(".".join(path), f"'{given}' stands where an object is expected", "schema"))
        return {}
    kept: Tree = {}
    for key, below in given.items():
        if not isinstance(key, str):
            issues.append(Issue(".".join(path), f"the key {key!r} must be quoted", "schema"))
            continue
        steps = node.steps(key)
        if not steps:
            issues.append(Issue(".".join(path), f"'{key}' is not known here{_nearest(node, key)}", "schema"))
        for name, child in steps:
            kept[name] = checked(child, below, issues, (*path, name))
    if node.is_exclusive and len(kept) > 1:
        issues.append(Issue(".".join(path), "only one of " + ", ".join(kept) + " can be set", "schema"))
    return kept


def _leaf(node: Node, given: object, issues: list[Issue], path: Path) -> Value:
    if isinstance(given, str | int):
        for one in node.kinds:
            kept = one.read(str(given))
            if kept is not None:
                return kept
    wanted = " or ".join(one.wanted for one in node.kinds)
    shown = given if isinstance(given, str | int) else "an object"
    issues.append(Issue(".".join(path), f"'{shown}' is not {wanted}", "schema"))
    return None


def _nearest(node: Node, key: str) -> str:
    close = difflib.get_close_matches(key, node.children, 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def merged(node: Node, base: Tree, patch: Tree) -> Tree:
    """Return a tree with changes: null takes away, an object that holds one child at a time is replaced."""
    result = dict(base)
    for key, value in patch.items():
        step = node.step(key)
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(before, dict) and step:
            below = step[1]
            is_replaced = below.is_exclusive and any(item is not None for item in value.values())
            result[key] = merged(below, {} if is_replaced and not set(before) & set(value) else before, value)
        elif isinstance(value, dict) and step:
            result[key] = merged(step[1], {}, value)
        else:
            result[key] = value
    return result


def paths(node: Node, path: Path = ()) -> Iterator[Path]:
    """Yield every leaf a release knows, patterns by what they want."""
    if not node.children and not node.patterns:
        yield path
    for name, below in node.children.items():
        yield from paths(below, (*path, name))
    for pattern, below in node.patterns:
        yield from paths(below, (*path, f"<{pattern.wanted}>"))

"""The kinds of words and numbers a configuration holds, and how each is recognised."""

import difflib
import ipaddress
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path as File

from netkit.hardware import Split, SwitchModel
from netkit.lab.personalities.nvue.tree import Path, Tree, Value, child, load

PORT = re.compile(r"swp[1-9]\d{0,2}(s[0-7])?")
SVI = re.compile(r"vlan[1-9]\d{0,3}")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}")
RESERVED = frozenset({"auto", "none", "null", "any", "all"})
VRFS = ("default", "mgmt")


@dataclass(frozen=True, slots=True)
class NvueLeafKind:
    """What a leaf or key may be: `wanted` says it to people, `read` returns the value as it is kept, or None."""

    wanted: str
    read: Callable[[str], str | int | None]


def kind(said: str) -> NvueLeafKind:
    """Return the kind a schema names, such as `int 1 8`."""
    name, *rest = said.split()
    if name == "words":
        return NvueLeafKind("one of " + ", ".join(rest), lambda given: given if given in rest else None)
    if name == "int":
        low, high = int(rest[0]), int(rest[1])
        return NvueLeafKind(f"a number from {low} to {high}", lambda given: _whole(given, low, high))
    return KINDS[name]


def ranges(given: str) -> Iterator[str]:
    """Yield the names a range such as swp1-3,swp5s0-1 stands for."""
    stem = ""
    for part in given.split(","):
        found = re.fullmatch(r"(|[a-z]+(?:\d+s)?)(\d+)(?:-(\d+))?", part)
        if not found:
            yield part
            continue
        stem = found[1] or stem
        first, last = int(found[2]), int(found[3] or found[2])
        yield from (f"{stem}{at}" for at in range(first, min(last, first + 4095) + 1))


def _whole(given: str, low: int, high: int) -> int | None:
    if not re.fullmatch(r"\d{1,12}", given):
        return None
    return int(given) if low <= int(given) <= high else None


def _text(given: str) -> str | None:
    return given if given and given.isprintable() else None


def _name(given: str) -> str | None:
    return given if NAME.fullmatch(given) and given not in RESERVED else None


def _address(given: str) -> str | None:
    try:
        return str(ipaddress.IPv4Address(given))
    except ValueError:
        return None


def _prefix(given: str) -> str | None:
    try:
        ipaddress.IPv4Interface(given)
    except ValueError:
        return None
    return given if "/" in given else None


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    return lambda given: given if pattern.fullmatch(given) else None


def _interface(given: str) -> str | None:
    return given if PORT.fullmatch(given) or SVI.fullmatch(given) or given in {"lo", "eth0"} else None


def _peer(given: str) -> str | None:
    return given if PORT.fullmatch(given) else _address(given)


KINDS = {
    "text": NvueLeafKind("printable text", _text),
    "name": NvueLeafKind("a name", _name),
    "secret": NvueLeafKind("printable text", _text),
    "address": NvueLeafKind("an IPv4 address", _address),
    "prefix": NvueLeafKind("an IPv4 address with its length", _prefix),
    "port": NvueLeafKind("a port such as swp1 or swp1s0", _matching(PORT)),
    "svi": NvueLeafKind("a VLAN interface such as vlan10", _matching(SVI)),
    "interface": NvueLeafKind("an interface", _interface),
    "peer": NvueLeafKind("a port or an IPv4 address", _peer),
    "vrf": NvueLeafKind("one of " + ", ".join(VRFS), lambda given: given if given in VRFS else None),
}


SOURCE = File(__file__).with_name("schema.yaml")
BREAK = (5, 15)
COMPARISONS: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {"<": operator.lt, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class NvueSchemaNode:
    """One place of the tree: an object with known children, or a leaf of one of some kinds."""

    children: Mapping[str, "NvueSchemaNode"]
    patterns: tuple[tuple[NvueLeafKind, "NvueSchemaNode"], ...]
    kinds: tuple[NvueLeafKind, ...]
    is_exclusive: bool

    def step(self, key: str) -> tuple[str, "NvueSchemaNode"] | None:
        """Return what a key is kept as and where it leads; None when it is not known here."""
        if key in self.children:
            return key, self.children[key]
        for pattern, node in self.patterns:
            kept = pattern.read(key)
            if kept is not None:
                return str(kept), node
        return None

    def steps(self, key: str) -> list[tuple[str, "NvueSchemaNode"]]:
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
def schema(version: tuple[int, ...]) -> NvueSchemaNode:
    """Return what a release knows."""
    return _node(load(SOURCE.read_text(encoding="utf-8")), version)


def _node(said: object, version: tuple[int, ...]) -> NvueSchemaNode:
    if isinstance(said, str) and said != "node":
        toggle = "words enabled disabled" if version >= BREAK else "words on off"
        kinds = tuple(kind(toggle if one == "toggle" else one) for one in said.split(" | "))
        return NvueSchemaNode({}, (), kinds, is_exclusive=False)
    children: dict[str, NvueSchemaNode] = {}
    patterns: list[tuple[NvueLeafKind, NvueSchemaNode]] = []
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
    return NvueSchemaNode(children, tuple(patterns), (), is_exclusive="ONE" in items)


def is_within(version: tuple[int, ...], limit: str) -> bool:
    """Whether a release is within a limit such as >=5.15."""
    word = limit.lstrip("@")
    sign = ">=" if word.startswith(">=") else "<"
    return COMPARISONS[sign](version, version_key(word))


def checked(node: NvueSchemaNode, given: object, issues: list[Issue], path: Path = ()) -> Value:
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
            close = difflib.get_close_matches(key, node.children, 1)
            nearest = f"; did you mean '{close[0]}'?" if close else ""
            issues.append(Issue(".".join(path), f"'{key}' is not known here{nearest}", "schema"))
        for name, subtree in steps:
            kept[name] = checked(subtree, below, issues, (*path, name))
    if node.is_exclusive and len(kept) > 1:
        issues.append(Issue(".".join(path), "only one of " + ", ".join(kept) + " can be set", "schema"))
    return kept


def _leaf(node: NvueSchemaNode, given: object, issues: list[Issue], path: Path) -> Value:
    if isinstance(given, str | int):
        for one in node.kinds:
            kept = one.read(str(given))
            if kept is not None:
                return kept
    wanted = " or ".join(one.wanted for one in node.kinds)
    shown = given if isinstance(given, str | int) else "an object"
    issues.append(Issue(".".join(path), f"'{shown}' is not {wanted}", "schema"))
    return None


def merged(node: NvueSchemaNode, base: Tree, patch: Tree) -> Tree:
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


def paths(node: NvueSchemaNode, path: Path = ()) -> Iterator[Path]:
    """Yield every leaf a release knows, patterns by what they want."""
    if not node.children and not node.patterns:
        yield path
    for name, below in node.children.items():
        yield from paths(below, (*path, name))
    for pattern, below in node.patterns:
        yield from paths(below, (*path, f"<{pattern.wanted}>"))


CAGE = re.compile(r"swp(\d+)")
SUBPORT = re.compile(r"swp(\d+)s(\d)")


@dataclass(frozen=True, slots=True)
class CumulusSwitch:
    """A switch model with a release of Cumulus Linux on it."""

    model: SwitchModel
    release: str

    @property
    def version(self) -> tuple[int, ...]:
        """Return the release as numbers to compare."""
        return version_key(self.release)

    def split(self, ways: int, speed_gbps: int = 0) -> Split | None:
        """Return how the model splits a cage this many ways; without a speed, the fastest way."""
        found = [split for split in self.model.splits if split.ports == ways and speed_gbps in {0, split.speed_gbps}]
        return max(found, key=lambda split: split.speed_gbps, default=None)

    def speeds(self, ways: int) -> frozenset[int]:
        """Return the speeds ports have when a cage is split this many ways."""
        return frozenset(split.speed_gbps for split in self.model.splits if split.ports == ways)


def breakout(interfaces: Tree, cage: str) -> str:
    """Return the breakout a cage is configured for: 1x when there is none."""
    return next(iter(child(interfaces, cage, "link", "breakout")), "1x")


def ways(mode: str) -> int:
    """Return how many ports a breakout makes; none when the cage is disabled."""
    return 0 if mode == "disabled" else int(mode.removesuffix("x"))


def port_ways(interfaces: Tree, chassis: CumulusSwitch) -> Mapping[str, int]:
    """Return every port the switch has with this configuration, and how many ways its cage is split."""
    return dict(_ports(interfaces, chassis))


def _ports(interfaces: Tree, chassis: CumulusSwitch) -> Iterator[tuple[str, int]]:
    for number in range(1, chassis.model.cages + 1):
        cage = f"swp{number}"
        count = ways(breakout(interfaces, cage))
        if count == 1:
            yield cage, 1
        else:
            yield from ((f"{cage}s{sub}", count) for sub in range(count))


def cage_of(port: str) -> str:
    """Return the cage a port is in."""
    found = CAGE.match(port)
    return found[0] if found else port


def blocked_cages(interfaces: Tree, chassis: CumulusSwitch) -> Iterator[tuple[str, str]]:
    """Yield each cage that a neighbour's breakout needs disabled, and that neighbour."""
    for name in interfaces:
        found = CAGE.fullmatch(name)
        split = chassis.split(ways(breakout(interfaces, name))) if found else None
        if found and split and split.blocks_next_cage:
            yield f"swp{int(found[1]) + 1}", name

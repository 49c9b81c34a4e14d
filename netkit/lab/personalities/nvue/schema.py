"""The schema of each release: types of leaves, the tree, breakouts of a switch; normalising and merging of trees."""

import difflib
import ipaddress
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path as File

from netkit.hardware import Split, SwitchModel
from netkit.lab.netlink import PEER_INTERFACE
from netkit.lab.personalities.nvue.tree import Path, Tree, Value, child, load

PORT = re.compile(r"swp[1-9]\d{0,2}(s[0-7])?")
BOND = re.compile(r"bond[1-9]\d{0,4}")
MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
PEERLINK = "peerlink"
SVI = re.compile(r"vlan[1-9]\d{0,3}")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}")
HOSTNAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,61}[A-Za-z0-9])?")
TYPES = {"eth0": "eth", "lo": "loopback", PEERLINK: "peerlink", PEER_INTERFACE: "sub"}
RESERVED = frozenset({"auto", "none", "null", "any", "all"})
VRFS = ("default", "mgmt")


@dataclass(frozen=True, slots=True)
class NvueLeafKind:
    """A type of leaf or key. `read` returns the normalised value, or None if it is invalid."""

    description: str
    read: Callable[[str], str | int | None]


def kind(name: str) -> NvueLeafKind:
    """The type that the schema names, such as `int 1 8`."""
    name, *rest = name.split()
    if name == "words":
        return NvueLeafKind("one of " + ", ".join(rest), lambda value: value if value in rest else None)
    if name == "int":
        low, high = int(rest[0]), int(rest[1])

        def read(value: str) -> int | None:
            return int(value) if re.fullmatch(r"\d{1,12}", value) and low <= int(value) <= high else None

        return NvueLeafKind(f"a number from {low} to {high}", read)
    return KINDS[name]


def interface_type(name: str) -> str:
    """The type of an interface, which its name decides."""
    if name in TYPES:
        return TYPES[name]
    return "svi" if SVI.fullmatch(name) else "bond" if BOND.fullmatch(name) else "swp"


def ranges(text: str) -> Iterator[str]:
    """Expand a range such as swp1-3,swp5s0-1."""
    stem = ""
    for part in text.split(","):
        found = re.fullmatch(r"(|[a-z]+(?:\d+s)?)(\d+)(?:-(\d+))?", part)
        if not found:
            yield part
            continue
        stem = found[1] or stem
        first, last = int(found[2]), int(found[3] or found[2])
        yield from (f"{stem}{at}" for at in range(first, min(last, first + 4095) + 1))


def _is_address(value: str) -> bool:
    try:
        return str(ipaddress.IPv4Address(value)) == value
    except ValueError:
        return False


def _is_prefix(value: str) -> bool:
    try:
        ipaddress.IPv4Interface(value)
    except ValueError:
        return False
    return "/" in value


def _is_ipv6(value: str) -> bool:
    """Whether it is an IPv6 address, or one with its length, in the form in which NVUE prints it."""
    try:
        return str(ipaddress.IPv6Interface(value)).removesuffix("" if "/" in value else "/128") == value
    except ValueError:
        return False


def _matching(description: str, is_valid: Callable[[str], object]) -> NvueLeafKind:
    return NvueLeafKind(description, lambda value: value if is_valid(value) else None)


KINDS = {
    "text": _matching("printable text", lambda value: value and value.isprintable()),
    "name": _matching("a name", lambda value: NAME.fullmatch(value) and value not in RESERVED),
    "hostname": _matching("a host name", HOSTNAME.fullmatch),
    "secret": _matching("printable text", lambda value: value and value.isprintable()),
    "address": _matching("an IPv4 address", _is_address),
    "prefix": _matching("an IPv4 address with its length", _is_prefix),
    "server": _matching("an address", lambda value: "/" not in value and (_is_address(value) or _is_ipv6(value))),
    "address6": _matching("an IPv6 address", lambda value: "/" not in value and _is_ipv6(value)),
    "prefix6": _matching("an IPv6 address with its length", lambda value: "/" in value and _is_ipv6(value)),
    "port": _matching("a port such as swp1 or swp1s0", PORT.fullmatch),
    "bond": _matching("a bond such as bond1", BOND.fullmatch),
    "mac": _matching("a MAC address in lower case", MAC.fullmatch),
    "svi": _matching("a VLAN interface such as vlan10", SVI.fullmatch),
    "interface": _matching(
        "an interface", lambda value: PORT.fullmatch(value) or SVI.fullmatch(value) or value in {"lo", "eth0"}
    ),
    "peer": _matching(
        "a port, peerlink.4094 or an IPv4 address",
        lambda value: PORT.fullmatch(value) or value == PEER_INTERFACE or _is_address(value),
    ),
    "vrf": _matching("one of " + ", ".join(VRFS), VRFS.__contains__),
}


SOURCE = File(__file__).with_name("schema.yaml")
BREAK = (5, 15)
COMPARISONS: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {"<": operator.lt, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class NvueSchemaNode:
    """An object with known children, or a leaf of one of several types."""

    children: Mapping[str, "NvueSchemaNode"]
    patterns: tuple[tuple[NvueLeafKind, "NvueSchemaNode"], ...]
    kinds: tuple[NvueLeafKind, ...]
    is_exclusive: bool

    def step(self, key: str) -> tuple[str, "NvueSchemaNode"] | None:
        """The normalised key and its child; None if it is unknown."""
        if key in self.children:
            return key, self.children[key]
        for pattern, node in self.patterns:
            kept = pattern.read(key)
            if kept is not None:
                return str(kept), node
        return None

    def steps(self, key: str) -> list[tuple[str, "NvueSchemaNode"]]:
        """The children for a key that may be a range."""
        found = self.step(key)
        if found:
            return [found]
        each = [self.step(part) for part in ranges(key)] if re.search(r"[,-]", key) else [None]
        return [step for step in each if step] if all(each) else []


@dataclass(frozen=True, slots=True)
class Issue:
    """A problem of a configuration and its location."""

    location: str
    reason: str
    code: str = "config_invalid"

    @property
    def message(self) -> str:
        return f"Config invalid at {self.location}: {self.reason}" if self.location else self.reason


def version_key(version: str) -> tuple[int, ...]:
    """Split a version such as 5.16.1 into numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


@cache
def schema(version: tuple[int, ...]) -> NvueSchemaNode:
    """Load the schema of a release."""
    return _node(load(SOURCE.read_text(encoding="utf-8")), version)


def _node(definition: object, version: tuple[int, ...]) -> NvueSchemaNode:
    if isinstance(definition, str) and definition != "node":
        toggle = "words enabled disabled" if version >= BREAK else "words on off"
        kinds = tuple(kind(toggle if name == "toggle" else name) for name in definition.split(" | "))
        return NvueSchemaNode({}, (), kinds, is_exclusive=False)
    children: dict[str, NvueSchemaNode] = {}
    patterns: list[tuple[NvueLeafKind, NvueSchemaNode]] = []
    items = definition if isinstance(definition, dict) else {}
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
    """Whether a release satisfies a limit such as >=5.15."""
    word = limit.lstrip("@")
    sign = ">=" if word.startswith(">=") else "<"
    return COMPARISONS[sign](version, version_key(word))


def checked(node: NvueSchemaNode, value: object, issues: list[Issue], path: Path = ()) -> Value:
    """Normalise a value and expand ranges; add unknown keys and invalid values to the issues."""
    if value is None:
        return None
    if node.kinds:
        return _leaf(node, value, issues, path)
    if not isinstance(value, dict):
        issues.append(Issue(".".join(path), f"expected an object, not '{value}'", "schema"))
        return {}
    kept: Tree = {}
    for key, below in value.items():
        if not isinstance(key, str):
            issues.append(Issue(".".join(path), f"the key {key!r} must be quoted", "schema"))
            continue
        steps = node.steps(key)
        if not steps:
            close = difflib.get_close_matches(key, node.children, 1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            issues.append(Issue(".".join(path), f"unknown key '{key}'{hint}", "schema"))
        for name, subtree in steps:
            kept[name] = checked(subtree, below, issues, (*path, name))
    if node.is_exclusive and len(kept) > 1:
        issues.append(Issue(".".join(path), "only one of " + ", ".join(kept) + " can be set", "schema"))
    return kept


def _leaf(node: NvueSchemaNode, value: object, issues: list[Issue], path: Path) -> Value:
    if isinstance(value, str | int):
        for one in node.kinds:
            normalised = one.read(str(value))
            if normalised is not None:
                return normalised
    expected = " or ".join(one.description for one in node.kinds)
    shown = value if isinstance(value, str | int) else "an object"
    issues.append(Issue(".".join(path), f"'{shown}' is not {expected}", "schema"))
    return None


def merged(node: NvueSchemaNode, base: Tree, patch: Tree) -> Tree:
    """Apply changes to a tree: null removes, and an object that allows one child at a time is replaced."""
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
    """Yield every leaf of the schema, patterns by their description."""
    if not node.children and not node.patterns:
        yield path
    for name, below in node.children.items():
        yield from paths(below, (*path, name))
    for pattern, below in node.patterns:
        yield from paths(below, (*path, f"<{pattern.description}>"))


CAGE = re.compile(r"swp(\d+)")
SUBPORT = re.compile(r"swp(\d+)s(\d)")


@dataclass(frozen=True, slots=True)
class CumulusSwitch:
    """A switch model with a release of Cumulus Linux."""

    model: SwitchModel
    release: str

    @property
    def version(self) -> tuple[int, ...]:
        return version_key(self.release)

    def split(self, ways: int, speed_gbps: int = 0) -> Split | None:
        """The split of a cage into this many ports, the fastest unless a speed is given."""
        found = [split for split in self.model.splits if split.ports == ways and speed_gbps in {0, split.speed_gbps}]
        return max(found, key=lambda split: split.speed_gbps, default=None)

    def speeds(self, ways: int) -> frozenset[int]:
        return frozenset(split.speed_gbps for split in self.model.splits if split.ports == ways)


def breakout(interfaces: Tree, cage: str) -> str:
    """The configured breakout of a cage; 1x by default."""
    return next(iter(child(interfaces, cage, "link", "breakout")), "1x")


def ways(mode: str) -> int:
    """The number of ports of a breakout; 0 for a disabled cage."""
    return 0 if mode == "disabled" else int(mode.removesuffix("x"))


def port_ways(interfaces: Tree, chassis: CumulusSwitch) -> Mapping[str, int]:
    """Every port of the switch with the number of ports of its cage."""
    found: dict[str, int] = {}
    for number in range(1, chassis.model.cages + 1):
        cage = f"swp{number}"
        count = ways(breakout(interfaces, cage))
        names = [cage] if count == 1 else [f"{cage}s{sub}" for sub in range(count)]
        found |= dict.fromkeys(names, count)
    return found


def cage_of(port: str) -> str:
    found = CAGE.match(port)
    return found[0] if found else port


def blocked_cages(interfaces: Tree, chassis: CumulusSwitch) -> Iterator[tuple[str, str]]:
    """Yield each cage that must be disabled, and the neighbour whose breakout uses its lanes."""
    for name in interfaces:
        found = CAGE.fullmatch(name)
        split = chassis.split(ways(breakout(interfaces, name))) if found else None
        if found and split and split.blocks_next_cage:
            yield f"swp{int(found[1]) + 1}", name

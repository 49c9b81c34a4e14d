"""Names of route maps, prefix lists, peer groups and profiles: netkit's own, or those that a fabric has already.

A `names.yaml` in a template folder lists, for each kind, the places where such a name occurs, in configurations as they
are rendered, and in `owned` what netkit owns of a kind under any other name. `<name>` is the name, and `*` is anything
within one part of a path. In a tree a place is a path, with the value as its last part; elsewhere it is a line.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import yaml

from netkit.errors import Problem, RenderError
from netkit.platforms import PLATFORMS
from netkit.platforms.config import Config, Files, Path
from netkit.platforms.ownership import SEPARATOR, shipped_templates

NAMES = "names.yaml"
TREES = (".json", ".yaml")
FRR_CONF = "frr.conf"
HOLE = "<>"
Names = Mapping[str, Mapping[str, str]]
"""Kind → netkit's name → the name in use."""
Occurrences = dict[tuple[str, Path], set[str]]
"""(kind, path with a hole) → the names there."""


class NamePlaces:
    """Where names occur: (kind, pattern) of each place."""

    def __init__(self, patterns: Iterable[tuple[str, str]]) -> None:
        self._places = [(kind, re.compile(_expression(pattern))) for kind, pattern in patterns]
        self._any = re.compile("|".join(place.pattern.replace("?P<name>", "?:") for _, place in self._places))

    def matches(self, text: str) -> Iterator[tuple[str, re.Match[str]]]:
        """Yield the kind of each place that a text is, and its match."""
        if self._any.fullmatch(text):  # most texts are no place
            for kind, pattern in self._places:
                if match := pattern.fullmatch(text):
                    yield kind, match


@dataclass(frozen=True, slots=True)
class NosPlaces:
    """All places of a NOS."""

    kinds: tuple[str, ...]
    tree: Mapping[int, NamePlaces]
    """By the number of parts of their paths."""
    line: NamePlaces | None


@cache
def places(platform: str) -> NosPlaces:
    """Load the places of a NOS; none for a NOS without the file."""
    found = _sections(platform)
    tree, lines = found.get("tree", {}), found.get("line", {})
    by_depth: dict[int, list[tuple[str, str]]] = {}
    for kind, pattern in _patterns(tree):
        by_depth.setdefault(pattern.count(SEPARATOR) + 1, []).append((kind, pattern))
    in_tree = {depth: NamePlaces(patterns) for depth, patterns in by_depth.items()}
    return NosPlaces(tuple({**tree, **lines}), in_tree, NamePlaces(_patterns(lines)) if lines else None)


@cache
def _sections(platform: str) -> Mapping[str, Mapping[str, list[str]]]:
    file = shipped_templates() / platform / NAMES
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}


def owned(platform: str, names: Names) -> Iterator[str]:
    """Yield the paths that netkit owns because an intent gives objects there other names."""
    for kind, patterns in _sections(platform).get("owned", {}).items():
        for name in names.get(kind, {}).values():
            yield from (pattern.replace("<name>", name) for pattern in patterns)


def _patterns(kinds: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    yield from ((kind, pattern) for kind, patterns in kinds.items() for pattern in patterns)


def _expression(pattern: str) -> str:
    within = f"(?:(?!{SEPARATOR}).)*"
    return re.escape(pattern).replace(r"\*", within).replace("<name>", r"(?P<name>[\w.-]+)")


def renamed(platform: str, files: Files, names: Names, tier: Sequence[str]) -> dict[str, str]:
    """Put the names in use into rendered files; RenderError if two objects of a device would share a name."""
    known = places(platform)
    for kind in names:
        if kind not in known.kinds:
            offered = ", ".join(known.kinds) or "none"
            message = f"{kind!r} is not a kind of names on {PLATFORMS[platform].title}"
            raise RenderError(Problem(message, f"use one of these: {offered}", (*tier, "object_names", kind)))
    taken: dict[str, set[str]] = {}

    def chosen(kind: str, name: str) -> str:
        taken.setdefault(kind, set()).add(name)
        return names.get(kind, {}).get(name, name)

    found = {file: _replaced(platform, file, text, chosen) for file, text in files.items()}
    for kind, of_kind in taken.items():
        if len({chosen(kind, name) for name in [*of_kind]}) < len(of_kind):
            message = f"two of the kind {kind} would have one name"
            raise RenderError(Problem(message, "give each its own name", (*tier, "object_names", kind)))
    return found


def _replaced(platform: str, file: str, text: str, chosen: Callable[[str, str], str]) -> str:
    """Replace the names in a file, and nothing else of it."""
    if not file.endswith(TREES):
        return "".join(_in_line(platform, line, chosen) for line in text.splitlines(keepends=True))
    parts, end = [], 0
    for one in _named(platform, text):
        value = _chosen(one.value, one.names, chosen)
        if value != one.value:
            parts += [text[end : one.start], text[one.start : one.stop].replace(one.value, value)]
            end = one.stop
    return "".join((*parts, text[end:]))


def _scalars(node: yaml.Node, path: Path) -> Iterator[tuple[Path, yaml.ScalarNode]]:
    """Yield every key and value with its path, in the order of the text."""
    if isinstance(node, yaml.ScalarNode):
        yield (*path, node.value), node
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item, path)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key
            yield from _scalars(value, (*path, key.value) if path or key.value != "set" else ())


@dataclass(frozen=True, slots=True, order=True)
class NameSpan:
    """Where a name stands in a text."""

    start: int
    stop: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class NamedScalar:
    """A key or value with names in it, and where it stands in a text."""

    start: int
    stop: int
    value: str
    names: tuple[NameSpan, ...]


@lru_cache(maxsize=64)  # adopt renders the same devices again and again
def _named(platform: str, text: str) -> tuple[NamedScalar, ...]:
    """The keys and values of a tree that contain names, in the order of the text."""
    root = yaml.compose(text, Loader=yaml.CSafeLoader) if places(platform).tree else None  # JSON is YAML too
    return tuple(
        NamedScalar(node.start_mark.index, node.end_mark.index, node.value, names)
        for path, node in (_scalars(root, ()) if root else ())
        if (names := _names_in_path(platform, path))
    )


def _in_path(platform: str, path: Path, chosen: Callable[[str, str], str]) -> str:
    """The last part of a path, with the names in it replaced; those above are replaced where they stand."""
    return _chosen(path[-1], _names_in_path(platform, path), chosen)


@lru_cache(maxsize=1 << 16)  # many devices of a fabric have the same paths
def _names_in_path(platform: str, path: Path) -> tuple[NameSpan, ...]:
    found = places(platform).tree.get(len(path))
    return tuple(_names(found, SEPARATOR.join((*path[:-1], "")), path[-1])) if found else ()


def _in_line(platform: str, line: str, chosen: Callable[[str, str], str]) -> str:
    text = line.strip()
    spans = _names_in_line(platform, text)
    return line.replace(text, _chosen(text, spans, chosen), 1) if spans else line


@lru_cache(maxsize=1 << 16)  # and the same lines
def _names_in_line(platform: str, text: str) -> tuple[NameSpan, ...]:
    found = places(platform).line
    return tuple(_names(found, "", text)) if found else ()


def _names(places: NamePlaces, above: str, text: str) -> list[NameSpan]:
    """The names in a text below others, the last first; where two kinds have one place, the first counts."""
    spans: dict[tuple[int, int], NameSpan] = {}
    for kind, found in places.matches(above + text):
        if (start := found.start("name") - len(above)) >= 0:
            spans.setdefault(found.span("name"), NameSpan(start, found.end("name") - len(above), kind, found["name"]))
    return sorted(spans.values(), reverse=True)


def _chosen(text: str, spans: Iterable[NameSpan], chosen: Callable[[str, str], str]) -> str:
    for span in spans:
        text = text[: span.start] + chosen(span.kind, span.name) + text[span.stop :]
    return text


def occurrences(platform: str, config: Config, names: Names) -> Occurrences:
    """The names at each place of a configuration, as (kind, path with a hole); `names` apply to other parts."""
    known = places(platform)
    found: Occurrences = {}

    def chosen(kind: str, name: str) -> str:
        return names.get(kind, {}).get(name, name)

    done: set[Path] = set()
    for path, value in config.items():
        if known.line and (not known.tree or path[0] == FRR_CONF):
            above = tuple(_in_line(platform, part, chosen) for part in path[:-1])
            _line_occurrences(platform, above, f"{path[-1]} {value}".strip(), chosen, found)
            continue
        for whole in [(*path, one) for one in _values(value)]:
            for part in (whole[:length] for length in range(2, len(whole) + 1)):
                if part not in done:
                    done.add(part)
                    _tree_occurrences(platform, part, chosen, found)
    return found


def _values(value: str) -> Iterable[str]:
    """The texts of a list, as CONFIG_DB has them in a value, else the value."""
    try:
        found = json.loads(value) if value.startswith("[") else value
    except ValueError:
        found = value
    return map(str, found) if isinstance(found, list) else (value,)


def _line_occurrences(
    platform: str,
    above: Path,
    line: str,
    chosen: Callable[[str, str], str],
    found: Occurrences,
) -> None:
    known = places(platform)
    for kind, match in known.line.matches(line) if known.line else ():
        holed = f"{line[: match.start('name')]}{HOLE}{line[match.end('name') :]}"
        key = (*above, _in_line(platform, holed, chosen))
        found.setdefault((kind, key), set()).add(match["name"])


def _tree_occurrences(platform: str, path: Path, chosen: Callable[[str, str], str], found: Occurrences) -> None:
    for span in reversed(_names_in_path(platform, path)):

        def holed(kind: str, name: str, hole: tuple[str, str] = (span.kind, span.name)) -> str:
            return HOLE if (kind, name) == hole else chosen(kind, name)

        above = (_in_path(platform, path[:length], chosen) for length in range(1, len(path)))
        found.setdefault((span.kind, (*above, _in_path(platform, path, holed))), set()).add(span.name)

"""Names of route maps, prefix lists, peer groups and profiles: netkit's own, or those that a fabric has already.

A `names.yaml` in a template folder lists, for each kind, the places where such a name occurs, in configurations as they
are rendered, and in `owned` what netkit owns of a kind under any other name. `<name>` is the name, and `*` is anything
within one part of a path. In a tree a place is a path, with the value as its last part; elsewhere it is a line.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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

    found = {file: _replaced(known, file, text, chosen) for file, text in files.items()}
    for kind, of_kind in taken.items():
        if len({chosen(kind, name) for name in [*of_kind]}) < len(of_kind):
            message = f"two of the kind {kind} would have one name"
            raise RenderError(Problem(message, "give each its own name", (*tier, "object_names", kind)))
    return found


def _replaced(known: NosPlaces, file: str, text: str, chosen: Callable[[str, str], str]) -> str:
    """Replace the names in a file, and nothing else of it."""
    if not file.endswith(TREES):
        return "".join(_in_line(known, line, chosen) for line in text.splitlines(keepends=True)) if known.line else text
    root = yaml.compose(text, Loader=yaml.CSafeLoader) if known.tree else None  # JSON is YAML too
    parts, end = [], 0
    for path, node in _scalars(root, ()) if root else ():
        value = _in_path(known, path, chosen)
        if value != node.value:
            start, stop = node.start_mark.index, node.end_mark.index
            parts += [text[end:start], text[start:stop].replace(node.value, value)]
            end = stop
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


def _in_path(known: NosPlaces, path: Path, chosen: Callable[[str, str], str]) -> str:
    """The last part of a path, with the names in it replaced; those above are replaced where they stand."""
    places = known.tree.get(len(path))
    return _chosen(places, SEPARATOR.join((*path[:-1], "")), path[-1], chosen) if places else path[-1]


def _in_line(known: NosPlaces, line: str, chosen: Callable[[str, str], str]) -> str:
    text = line.strip()
    return line.replace(text, _chosen(known.line, "", text, chosen), 1) if text and known.line else line


def _chosen(places: NamePlaces, above: str, text: str, chosen: Callable[[str, str], str]) -> str:
    spans: dict[tuple[int, int], str] = {}
    for kind, found in places.matches(above + text):
        if found.start("name") >= len(above):
            spans.setdefault(found.span("name"), chosen(kind, found["name"]))
    for (start, stop), name in sorted(spans.items(), reverse=True):
        text = text[: start - len(above)] + name + text[stop - len(above) :]
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
            above = tuple(_in_line(known, part, chosen) for part in path[:-1])
            _line_occurrences(known, above, f"{path[-1]} {value}".strip(), chosen, found)
            continue
        for whole in [(*path, one) for one in _values(value)]:
            for part in (whole[:length] for length in range(2, len(whole) + 1)):
                if part not in done:
                    done.add(part)
                    _tree_occurrences(known, part, chosen, found)
    return found


def _values(value: str) -> Iterable[str]:
    """The texts of a list, as CONFIG_DB has them in a value, else the value."""
    try:
        found = json.loads(value) if value.startswith("[") else value
    except ValueError:
        found = value
    return map(str, found) if isinstance(found, list) else (value,)


def _line_occurrences(
    known: NosPlaces,
    above: Path,
    line: str,
    chosen: Callable[[str, str], str],
    found: Occurrences,
) -> None:
    for kind, match in known.line.matches(line) if known.line else ():
        holed = f"{line[: match.start('name')]}{HOLE}{line[match.end('name') :]}"
        key = (*above, _in_line(known, holed, chosen))
        found.setdefault((kind, key), set()).add(match["name"])


def _tree_occurrences(known: NosPlaces, path: Path, chosen: Callable[[str, str], str], found: Occurrences) -> None:
    names: list[tuple[str, str]] = []

    def listed(kind: str, name: str) -> str:
        names.append((kind, name))
        return name

    _in_path(known, path, listed)
    for kind, name in names:

        def holed(of_kind: str, one: str, hole: tuple[str, str] = (kind, name)) -> str:
            return HOLE if (of_kind, one) == hole else chosen(of_kind, one)

        above = (_in_path(known, path[:length], chosen) for length in range(1, len(path)))
        found.setdefault((kind, (*above, _in_path(known, path, holed))), set()).add(name)

"""Line-based configurations with indented blocks: EOS, FRR, and settings files.

Each line is an entry; its path is made of the lines above it in the hierarchy. For a line with a single value, such as
`mtu 9214`, the keyword is the path and the rest is the value, so that a new value is one change and not two.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from netkit.errors import ConfigError, Problem
from netkit.platforms.change import Change
from netkit.platforms.config import DEEPEST, MOST_ENTRIES, PRESENT, Config, Path
from netkit.platforms.secrets import PLACEHOLDER, SECRET, has_placeholder

Rewrite = Callable[[str], Iterable[str]]
"""A line → the lines it is normalised to: none for a default, several for a list, one without its secret."""


@dataclass(frozen=True)
class Grammar:
    """Syntax of one kind of file."""

    keyed: tuple[str, ...] = ()
    """Keywords of lines with a single value, as regular expressions without groups."""
    closers: frozenset[str] = frozenset()
    comments: tuple[str, ...] = ("!",)
    verbatim: tuple[str, ...] = ()
    """Prefixes of lines that start a here-document, which a line EOF ends."""
    separator: str = " "
    indent: int = 3
    rewrite: Rewrite | None = None
    _known: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _keyed: re.Pattern[str] = field(default=re.compile(""), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keyed", re.compile(f"({'|'.join(self.keyed)}){re.escape(self.separator)}(.+)"))

    def entries(self, line: str) -> tuple[tuple[str, str], ...]:
        """Split a line into keys and values."""
        known = self._known.get(line)
        if known is None:
            if len(self._known) > MOST_ENTRIES:
                self._known.clear()
            lines = (line,) if self.rewrite is None else self.rewrite(line)
            matches = ((one, self._keyed.fullmatch(one) if self.keyed else None) for one in lines)
            known = tuple((match[1], match[2]) if match else (one, PRESENT) for one, match in matches)
            self._known[line] = known
        return known


def parse(text: str, grammar: Grammar, file: str, root: Path = ()) -> dict[Path, str]:
    """Parse a text into entries below `root`."""
    entries: dict[Path, str] = {}
    above: list[tuple[int, Path]] = [(-1, root)]
    for line, depth in _lines(text, grammar, file):
        while above[-1][0] >= depth:
            above.pop()
        parent = path = above[-1][1]
        for key, value in grammar.entries(line):
            path = (*parent, key)
            if entries.setdefault(path, value) != value:  # one keyword, two values: keep each line whole
                path = (*parent, f"{key}{grammar.separator}{value}" if value else key + grammar.separator[:1])
                entries[path] = PRESENT
        above.append((depth, path))
        if len(above) > DEEPEST:
            raise ConfigError(Problem("is too deep for a configuration", "read it again", file=file))
    return entries


def _lines(text: str, grammar: Grammar, file: str) -> Iterator[tuple[str, int]]:
    """Yield each line that is neither blank nor a comment, and its indentation."""
    lines = iter(text.splitlines())
    for number, raw in enumerate(lines):
        line = raw.strip()
        if not line or line in grammar.closers or line.startswith(grammar.comments):
            continue
        if number > MOST_ENTRIES:
            raise ConfigError(Problem("is too large for a configuration", "read it again", file=file))
        if grammar.verbatim and line.startswith(grammar.verbatim):
            line = "\n".join((line, *_until_eof(lines)))
        yield line, len(raw) - len(raw.lstrip())


def _until_eof(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.strip() == "EOF":
            return


def text(config: Config, grammar: Grammar, root: Path = ()) -> str:
    """Write the entries below `root` as text; the inverse of `parse`."""
    below: dict[Path, list[Path]] = {}
    for path in config:
        if path[: len(root)] == root:
            for length in range(len(root) + 1, len(path) + 1):
                siblings = below.setdefault(path[: length - 1], [])
                if length == len(path) or path[:length] not in config:
                    siblings.append(path[:length])
    written = (
        line for path in dict.fromkeys(below.get(root, ())) for line in _written(path, 0, config, below, grammar)
    )
    return "".join(f"{line}\n" for line in written)


def _written(path: Path, depth: int, config: Config, below: dict[Path, list[Path]], grammar: Grammar) -> Iterator[str]:
    value = config.get(path, PRESENT)
    yield " " * (depth * grammar.indent) + (f"{path[-1]}{grammar.separator}{value}" if value else path[-1])
    for inner in dict.fromkeys(below.get(path, ())):
        yield from _written(inner, depth + 1, config, below, grammar)


Headers = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """One line as written, its parent lines, and the paths of its entries."""

    text: str
    headers: Headers
    paths: tuple[Path, ...]


def lines(text: str, grammar: Grammar, root: Path = ()) -> Iterator[ConfigLine]:
    """Yield the lines of a configuration in order."""
    entries: dict[Path, str] = {}
    above: list[tuple[int, Path, str]] = []
    rows = iter(text.splitlines())
    for raw in rows:
        written = raw.strip()
        if not written or written in grammar.closers or written.startswith(grammar.comments):
            continue
        if grammar.verbatim and written.startswith(grammar.verbatim):
            written = "\n".join((written, *_until_eof(rows)))
        depth = len(raw) - len(raw.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        parent = above[-1][1] if above else root
        paths: list[Path] = []
        for key, value in grammar.entries(PLACEHOLDER.sub(SECRET, written) if has_placeholder(written) else written):
            path = (*parent, key)
            if entries.setdefault(path, value) != value:  # as in `parse`
                path = (*parent, f"{key}{grammar.separator}{value}" if value else key + grammar.separator[:1])
            paths.append(path)
        yield ConfigLine(written, tuple(header for _, _, header in above), tuple(paths))
        above.append((depth, paths[-1] if paths else parent, written))


def missing(changes: Iterable[Change], running: Config) -> list[Change]:
    """Find the changes the running configuration lacks. Secrets are only checked for presence."""
    return [change for change in changes if not _is_applied(change, running)]


def _is_applied(change: Change, running: Config) -> bool:
    found = running.get(change.path)
    if change.intended is None:
        return found is None
    if SECRET in change.intended or any(SECRET in key for key in change.path):
        return found is not None or SECRET in change.path[-1]
    return found == change.intended

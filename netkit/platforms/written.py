"""The lines of a configuration as they are written, with the entries each stands for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from netkit.platforms.change import Change
from netkit.platforms.config import Config, Path
from netkit.platforms.secrets import PLACEHOLDER, SECRET, has_placeholder
from netkit.platforms.section import Grammar

Headers = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """One line as it is written, what it stands below, and the entries it stands for."""

    text: str
    headers: Headers
    paths: tuple[Path, ...]


def lines(text: str, grammar: Grammar, root: Path = ()) -> Iterator[ConfigLine]:
    """Yield the lines of a configuration, in their order."""
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
        paths = tuple(_placed(written, parent, entries, grammar))
        yield ConfigLine(written, tuple(header for _, _, header in above), paths)
        above.append((depth, paths[-1] if paths else parent, written))


def _until_eof(rows: Iterator[str]) -> Iterator[str]:
    for row in rows:
        yield row
        if row.strip() == "EOF":
            return


def _placed(written: str, parent: Path, entries: dict[Path, str], grammar: Grammar) -> Iterator[Path]:
    """Yield where a line stands, as the model says it: a name with two values is two lines."""
    for key, value in grammar.entries(PLACEHOLDER.sub(SECRET, written) if has_placeholder(written) else written):
        path = (*parent, key)
        if entries.setdefault(path, value) != value:
            path = (*parent, f"{key}{grammar.separator}{value}" if value else key + grammar.separator[:1])
        yield path


def missing(changes: Iterable[Change], running: Config) -> list[Change]:
    """Return the changes that are not what runs. Of a secret only its presence can be told."""
    return [change for change in changes if not _is_made(change, running)]


def _is_made(change: Change, running: Config) -> bool:
    found = running.get(change.path)
    if change.intended is None:
        return found is None
    if SECRET in change.intended or any(SECRET in key for key in change.path):
        return found is not None or SECRET in change.path[-1]
    return found == change.intended

"""What is typed into a configuration session so that it makes a plan's changes, and touches nothing else."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from netkit.platforms.change import Change
from netkit.platforms.config import Config, Path
from netkit.platforms.eos.model import GRAMMAR
from netkit.platforms.secret import PLACEHOLDER, SECRET, has_placeholder

NEGATION = "no "
EXIT = "exit"
Headers = tuple[str, ...]
PEER_GROUP = "peer group"
# Another VRF takes the addresses of an interface away; a sequence number that is taken is not given anew.
RESENT = frozenset({"vrf"})
RETYPED = ("seq ",)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a configuration as it is written, and the entries it stands for."""

    text: str
    headers: Headers
    paths: tuple[Path, ...]


def lines(text: str) -> Iterator[Line]:
    """Yield the lines of a configuration, in their order."""
    entries: dict[Path, str] = {}
    above: list[tuple[int, Path, str]] = []
    rows = iter(text.splitlines())
    for raw in rows:
        written = raw.strip()
        if not written or written in GRAMMAR.closers or written.startswith(GRAMMAR.comments):
            continue
        if written.startswith(GRAMMAR.verbatim):
            written = "\n".join((written, *_until_eof(rows)))
        depth = len(raw) - len(raw.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        parent = above[-1][1] if above else ()
        paths = tuple(_placed(written, parent, entries))
        yield Line(written, tuple(header for _, _, header in above), paths)
        above.append((depth, paths[-1] if paths else parent, written))


def _until_eof(rows: Iterator[str]) -> Iterator[str]:
    for row in rows:
        yield row
        if row.strip() == "EOF":
            return


def _placed(written: str, parent: Path, entries: dict[Path, str]) -> Iterator[Path]:
    """Yield where a line stands, as the model says it: a name with two values is two lines."""
    for key, value in GRAMMAR.entries(PLACEHOLDER.sub(SECRET, written) if has_placeholder(written) else written):
        path = (*parent, key)
        if entries.setdefault(path, value) != value:
            path = (*parent, f"{key} {value}" if value else f"{key} ")
        yield path


def commands(changes: Iterable[Change], running: str, intended: str) -> list[str]:
    """Return what makes the changes: first what goes, the last line first, then what comes, in its order."""
    found = {change.path: change for change in changes}
    have, want = tuple(lines(running)), tuple(lines(intended))
    again = _renewed(found, want)
    gone = {path for path, change in found.items() if change.is_removal or path in again.replaced}
    came = {path for path, change in found.items() if not change.is_removal} | again.sent
    sections = frozenset(line.headers for line in want)
    return [*_typed(_removals(gone, have), frozenset()), *_typed(_additions(came, want), sections)]


@dataclass(frozen=True, slots=True)
class _Renewed:
    """What cannot be changed in its place: what is removed before, and what is sent again."""

    replaced: frozenset[Path]
    sent: frozenset[Path]


def _renewed(changes: dict[Path, Change], want: Iterable[Line]) -> _Renewed:
    paths = [path for line in want for path in line.paths]
    headers = {path[:length] for path in paths for length in range(1, len(path))}
    changed = {path for path, change in changes.items() if None not in (change.running, change.intended)}
    replaced = {path for path in changed if path in headers or path[-1].startswith(RETYPED)}
    moved = {path[:-1] for path in changes if path[-1] in RESENT}
    sent = {path for path in paths if any(path[: len(top)] == top for top in replaced | moved)}
    return _Renewed(frozenset(replaced), frozenset(sent))


def _removals(gone: set[Path], have: tuple[Line, ...]) -> Iterator[tuple[Headers, str]]:
    tops = {path for path in gone if not any(path[:length] in gone for length in range(1, len(path)))}
    groups = {(*path[:-1], path[-1].split(" ")[1]) for path in tops if path[-1].endswith(PEER_GROUP)}
    for line in reversed(have):
        for path, (key, value) in zip(line.paths, GRAMMAR.entries(line.text), strict=True):
            if path in tops and not _goes_with(path, groups):
                text = line.text if len(line.paths) == 1 else f"{key} {value}"
                yield line.headers, _negated(text, path, is_secret=SECRET in value)


def _goes_with(path: Path, groups: set[Path]) -> bool:
    """Whether a line says something of a peer group that goes: it goes with the group."""
    words = path[-1].split(" ")
    is_about = words[0] == "neighbor" and len(words) > 2 and not path[-1].endswith(PEER_GROUP)
    return is_about and any(words[1] == group[-1] and path[: len(group) - 1] == group[:-1] for group in groups)


def _negated(text: str, path: Path, *, is_secret: bool) -> str:
    """Return the command that takes a line away."""
    if text.startswith(NEGATION):
        return f"default {text.removeprefix(NEGATION)}"
    if text.startswith("interface Ethernet"):  # a port cannot be removed
        return f"default {text}"
    if is_secret or "\n" in text:
        return f"{NEGATION}{path[-1].splitlines()[0]}"
    return f"{NEGATION}{text}"


def _additions(came: set[Path], want: tuple[Line, ...]) -> Iterator[tuple[Headers, str]]:
    for line in want:
        if any(path in came for path in line.paths):
            yield line.headers, line.text


def _typed(wanted: Iterable[tuple[Headers, str]], sections: frozenset[Headers]) -> Iterator[str]:
    """Yield lines with the headers they stand below, and an exit from each section."""
    above: Headers = ()
    for headers, text in wanted:
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(above, headers, strict=False)))
        yield from (EXIT for _ in above[shared:])
        yield from headers[shared:]
        yield from text.split("\n")
        above = (*headers, text) if (*headers, text) in sections else headers
    yield from (EXIT for _ in above)


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

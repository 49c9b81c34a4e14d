"""What is typed into a configuration session so that it makes a plan's changes, and touches nothing else."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from netkit.platforms.change import Change
from netkit.platforms.config import Config, Path
from netkit.platforms.config_lines import ConfigLine, Headers, lines
from netkit.platforms.eos.model import GRAMMAR
from netkit.platforms.secrets import SECRET

NEGATION = "no "
EXIT = "exit"
PEER_GROUP = "peer group"
# Another VRF takes the addresses of an interface away; a sequence number that is taken is not given anew.
RESENT = frozenset({"vrf"})
RETYPED = ("seq ",)


def commands(changes: Iterable[Change], running: str, intended: str) -> list[str]:
    """Return what makes the changes: first what goes, the last line first, then what comes, in its order."""
    found = {change.path: change for change in changes}
    have, want = tuple(lines(running, GRAMMAR)), tuple(lines(intended, GRAMMAR))
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


def _renewed(changes: dict[Path, Change], want: Iterable[ConfigLine]) -> _Renewed:
    paths = [path for line in want for path in line.paths]
    headers = {path[:length] for path in paths for length in range(1, len(path))}
    changed = {path for path, change in changes.items() if None not in (change.running, change.intended)}
    replaced = {path for path in changed if path in headers or path[-1].startswith(RETYPED)}
    moved = {path[:-1] for path in changes if path[-1] in RESENT}
    sent = {path for path in paths if any(path[: len(top)] == top for top in replaced | moved)}
    return _Renewed(frozenset(replaced), frozenset(sent))


def _removals(gone: set[Path], have: tuple[ConfigLine, ...]) -> Iterator[tuple[Headers, str]]:
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


def _additions(came: set[Path], want: tuple[ConfigLine, ...]) -> Iterator[tuple[Headers, str]]:
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


UNIT = "NETKIT-DRAIN"
GROUP = f"group interface {UNIT}"
MAINTENANCE = "maintenance"
OWN = (GROUP, f"unit {UNIT}")
NEIGHBOR = "neighbor interface "
SYSTEM = (MAINTENANCE, "unit System", "quiesce")


def is_own_drain(text: str) -> bool:
    """Whether a running configuration has netkit's drain."""
    return f"unit {UNIT}" in text


def is_drain_intended(running: Config) -> bool:
    """Whether the whole switch is in maintenance by its configuration."""
    return SYSTEM in running


def drain_lines(running: Config) -> list[str]:
    """Return the lines that drain; none when there is no neighbour to ask."""
    ports = [path[-1].removeprefix(NEIGHBOR) for path in running if path[-1].startswith(NEIGHBOR)]
    members = [f"interface {port}" for port in ports if port.startswith("Ethernet")]
    if not members:
        return []
    return [GROUP, *members, "exit", MAINTENANCE, f"unit {UNIT}", GROUP, "quiesce", "exit", "exit"]


def undrain_lines(text: str) -> list[str]:
    """Return the lines that end it; the section goes too when nothing else is in it."""
    is_alone = all(line.headers[:1] != (MAINTENANCE,) for line in lines(without_drain(text), GRAMMAR))
    unit = [MAINTENANCE, f"unit {UNIT}", "no quiesce", "exit", f"no unit {UNIT}", "exit"]
    return [*unit, *([f"no {MAINTENANCE}"] if is_alone else []), f"no {GROUP}"]


def without_drain(text: str) -> str:
    """Return a running configuration as it would be without netkit's drain."""
    return "".join(_kept(text)) if is_own_drain(text) else text


def _kept(text: str) -> Iterator[str]:
    rows = text.splitlines(keepends=True)
    kept = list(_without(rows, OWN))
    is_empty = not any(row.startswith("   ") and row.strip() != "!" for row in _section(kept, MAINTENANCE))
    return _without(kept, (MAINTENANCE,)) if is_empty else iter(kept)


def _section(rows: list[str], head: str) -> Iterator[str]:
    is_in = False
    for row in rows:
        if not row.startswith(" "):
            is_in = row.strip() == head
        elif is_in:
            yield row


def _without(rows: list[str], heads: tuple[str, ...]) -> Iterator[str]:
    """Yield the rows without some sections; the mark before a section goes with it."""
    depth, marks = -1, list[str]()
    for row in rows:
        indent, words = len(row) - len(row.lstrip()), row.strip()
        if 0 <= depth < indent:
            continue
        depth = indent if words in heads and not (words == GROUP and indent) else -1
        if depth >= 0:
            marks = []
        elif words == "!":
            yield from marks
            marks = [row]
        else:
            yield from marks
            marks = []
            yield row
    yield from marks

"""Commands of a configuration session that make exactly the changes of a plan."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from netkit.platforms.change import Change
from netkit.platforms.config import Config, Path
from netkit.platforms.config_lines import ConfigLine, Headers, lines
from netkit.platforms.eos.model import GRAMMAR
from netkit.platforms.eos.routing import router
from netkit.platforms.secrets import SECRET

NEGATION = "no "
EXIT = "exit"
PEER_GROUP = "peer group"
# Changing the VRF removes the addresses of an interface; a sequence number in use cannot be reused.
RESENT = frozenset({"vrf"})
RETYPED = ("seq ",)


def commands(changes: Iterable[Change], running: str, intended: str) -> list[str]:
    """Write the commands: removals first, from the last line up, then additions in order."""
    found = {change.path: change for change in changes}
    have, want = tuple(lines(running, GRAMMAR)), tuple(lines(intended, GRAMMAR))
    again = _renewed(found, want)
    gone = {path for path, change in found.items() if change.is_removal or path in again.replaced}
    came = {path for path, change in found.items() if not change.is_removal} | again.sent
    sections = frozenset(line.headers for line in want)
    additions = ((line.headers, line.text) for line in want if any(path in came for path in line.paths))
    return [*_with_headers(_removals(gone, have), frozenset()), *_with_headers(additions, sections)]


@dataclass(frozen=True, slots=True)
class _Renewed:
    """Lines that cannot be changed in place: those removed first, and those sent again."""

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
            words = path[-1].split(" ")
            is_setting = words[0] == "neighbor" and len(words) > 2 and not path[-1].endswith(PEER_GROUP)
            if is_setting and any((*path[:depth], words[1]) in groups for depth in range(len(path))):
                continue  # removed along with its peer group
            if path in tops:
                text = line.text if len(line.paths) == 1 else f"{key} {value}"
                yield line.headers, _negated(text, path, is_secret=SECRET in value)


def _negated(text: str, path: Path, *, is_secret: bool) -> str:
    """Write the command that removes a line."""
    if text.startswith(NEGATION):
        return f"default {text.removeprefix(NEGATION)}"
    if text.startswith("interface Ethernet"):  # a port cannot be removed
        return f"default {text}"
    if is_secret or "\n" in text:
        return f"{NEGATION}{path[-1].splitlines()[0]}"
    return f"{NEGATION}{text}"


def _with_headers(wanted: Iterable[tuple[Headers, str]], sections: frozenset[Headers]) -> Iterator[str]:
    """Yield lines with the headers of their sections, and an exit from each section."""
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
    """Whether a running configuration contains netkit's drain."""
    return f"unit {UNIT}" in text


def is_drain_intended(running: Config) -> bool:
    """Whether the configuration puts the switch in maintenance."""
    return SYSTEM in running


def drain_lines(running: Config) -> list[str]:
    """Write the lines that drain; empty without BGP neighbours. A port drains its neighbours by address too."""
    ports = dict.fromkeys(side.interface for side in router(running).sessions)
    members = [f"interface {port}" for port in ports if port.startswith("Ethernet")]
    if not members:
        return []
    return [GROUP, *members, "exit", MAINTENANCE, f"unit {UNIT}", GROUP, "quiesce", "exit", "exit"]


def deaf_groups(running: Config) -> list[str]:
    """The peer groups without communities: their neighbours would not hear of a drain, and send on."""
    found = [value.split() for path, value in running.items() if path[-1].startswith(NEIGHBOR)]
    members = [words[1] for words in found if words[:1] == ["peer-group"]]
    members += [value for path, value in running.items() if value and path[-1].endswith(PEER_GROUP)]
    groups = dict.fromkeys(members)
    words = [path[-1].split() for path in running]
    # Without a kind, all are sent; graceful-shutdown is a standard community.
    sending = {one[1] for one in words if one[2:3] == ["send-community"] and (not one[3:] or "standard" in one)}
    return [group for group in groups if group not in sending]


def undrain_lines(text: str) -> list[str]:
    """Write the lines that end the drain; an empty maintenance section is removed too."""
    is_alone = all(line.headers[:1] != (MAINTENANCE,) for line in lines(without_drain(text), GRAMMAR))
    unit = [MAINTENANCE, f"unit {UNIT}", "no quiesce", "exit", f"no unit {UNIT}", "exit"]
    return [*unit, *([f"no {MAINTENANCE}"] if is_alone else []), f"no {GROUP}"]


def without_drain(text: str) -> str:
    """Remove netkit's drain from a running configuration, with a maintenance section that is empty without it."""
    if not is_own_drain(text):
        return text
    kept = list(_without(text.splitlines(keepends=True), OWN))
    is_inside, is_empty = False, True
    for row in kept:
        if not row.startswith(" "):
            is_inside = row.strip() == MAINTENANCE
        elif is_inside and row.startswith("   ") and row.strip() != "!":
            is_empty = False
    return "".join(_without(kept, (MAINTENANCE,)) if is_empty else kept)


def _without(rows: list[str], heads: tuple[str, ...]) -> Iterator[str]:
    """Yield the rows without some sections and the `!` before each."""
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

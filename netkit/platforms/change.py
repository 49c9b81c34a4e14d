"""Configuration changes and their risk, in one form for every NOS."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Literal

from netkit.platforms.config import Config, Path


class Risk(IntEnum):
    """Impact of a change on traffic, from harmless to worst."""

    NONE = 0
    """No impact, such as a description."""
    LOW = 1
    """Nothing that carries traffic goes down; routes may change."""
    SESSION = 2
    """BGP sessions or addresses disappear briefly."""
    BUFFER = 3
    """Buffers are reallocated: brief packet loss on every port."""
    PORT = 4
    """A link flaps."""
    REBOOT = 5
    """The device is down for minutes."""

    @property
    def word(self) -> str:
        """The name shown to users and in JSON."""
        return self.name.lower()


def risk_of(word: str) -> Risk:
    """Inverse of `Risk.word`; KeyError for an unknown word."""
    return Risk[word.upper()]


@dataclass(frozen=True, slots=True)
class Change:
    """One entry that differs. None: absent on that side."""

    path: Path
    running: str | None
    intended: str | None
    risk: Risk = Risk.LOW
    note: str = ""

    @property
    def is_addition(self) -> bool:
        return self.running is None

    @property
    def is_removal(self) -> bool:
        return self.intended is None


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a set of changes is applied to a device, and the cost of that method itself."""

    method: str
    steps: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why no gentler method is possible; for a refusal, why no method is."""
    risk: Risk = Risk.NONE

    @property
    def is_refused(self) -> bool:
        """Whether netkit has no method to make these changes."""
        return self.method == REFUSED


NOTHING, REFUSED = "nothing", "refused"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A side effect of changing part of a configuration, or why a device refuses it; for display."""

    what: str
    effect: str


When = Literal["any", "added", "removed", "changed"]

MOST_REMEMBERED = 100_000

UNKNOWN = "no rule covers this path: assumed to be disruptive"
NEW = "new: nothing uses it yet"


@dataclass(frozen=True, slots=True)
class Rule:
    """Risk of changing anything at or below a path; path elements may be patterns. The first match wins."""

    path: Path
    risk: Risk
    note: str = ""
    source: str = ""
    when: When = "any"

    def fits(self, path: Path, kind: When) -> bool:
        return self.when in {"any", kind} and _matches(path, self.path)


@dataclass(frozen=True)
class RiskTable:
    """Risk rules of a platform.

    `objects` are patterns of self-contained objects such as a port or a neighbour. An object that is not configured
    yet carries no traffic, so a change that would otherwise drop a session or a link is harmless. Reboots, and usually
    buffer changes, affect the whole device regardless. `in_use` are paths that name ports which carry something: an
    address, a VLAN. `stands_for` maps an entry to the object it belongs to. With `is_buffer_per_port`, a buffer change
    that names a port affects that port only.
    """

    rules: tuple[Rule, ...]
    objects: tuple[Path, ...] = ()
    in_use: tuple[Path, ...] = ()
    stands_for: Callable[[Path], Path] = lambda path: path
    is_buffer_per_port: bool = False
    _known: dict[tuple[Path, When], Rule | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rule(self, path: Path, kind: When) -> Rule | None:
        key = (path, kind)
        if key not in self._known:
            if len(self._known) > MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = next((rule for rule in self.rules if rule.fits(path, kind)), None)
        return self._known[key]

    def judged(self, changes: Iterable[Change], running: Config) -> Iterator[Change]:
        """Yield the changes with their risk."""
        lengths = {len(thing) for thing in self.objects}
        present: set[Path] | None = None  # expensive, and most changes do not need it
        for change in changes:
            kind: When = "added" if change.is_addition else "removed" if change.is_removal else "changed"
            rule = self.rule(change.path, kind)
            risk, note = (rule.risk, rule.note) if rule else (Risk.SESSION, UNKNOWN)
            if self.is_local(risk):
                place = self.stands_for(change.path)
                objects = [place[: len(thing)] for thing in self.objects if _matches(place, thing)]
                if objects and present is None:
                    present = {path[:length] for path in map(self.stands_for, running) for length in lengths}
                if present is not None and not present.issuperset(objects):
                    risk, note = Risk.LOW, NEW
            yield Change(change.path, change.running, change.intended, risk, note)

    def is_local(self, risk: Risk) -> bool:
        """Whether a change of this risk affects only the port it names."""
        return risk in {Risk.SESSION, Risk.PORT} or (risk is Risk.BUFFER and self.is_buffer_per_port)

    def used(self, running: Config) -> set[Path]:
        """Find the paths of a configuration that name ports in use."""
        return set(_prefixes(running, self.in_use))


def _prefixes(paths: Iterable[Path], patterns: Collection[Path]) -> Iterator[Path]:
    return (path[: len(pattern)] for path in paths for pattern in patterns if _matches(path, pattern))


def _matches(path: Path, pattern: Path) -> bool:
    return len(path) >= len(pattern) and all(map(fnmatchcase, path, pattern))

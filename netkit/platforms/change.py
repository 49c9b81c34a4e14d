"""What a change is, and what it puts at risk: one shape for every NOS."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Literal

from netkit.platforms.config import Config, Path


class Risk(IntEnum):
    """What a change does to traffic, from harmless to worst."""

    NONE = 0
    """Nothing: a description."""
    LOW = 1
    """Nothing that carries traffic goes down; routes may move."""
    SESSION = 2
    """BGP sessions or addresses go away for a moment."""
    BUFFER = 3
    """Buffers are laid out anew: a moment of loss on every port."""
    PORT = 4
    """A link goes down and comes up again."""
    REBOOT = 5
    """The whole device is out for minutes."""

    @property
    def word(self) -> str:
        """Return the risk as people and JSON write it."""
        return self.name.lower()


def risk_of(word: str) -> Risk:
    """Return the risk a word stands for; KeyError when it is none."""
    return Risk[word.upper()]


@dataclass(frozen=True, slots=True)
class Change:
    """One entry that differs. None means: not there on that side."""

    path: Path
    running: str | None
    intended: str | None
    risk: Risk = Risk.LOW
    note: str = ""

    @property
    def is_addition(self) -> bool:
        """Whether the entry is not on the device yet."""
        return self.running is None

    @property
    def is_removal(self) -> bool:
        """Whether the entry goes away."""
        return self.intended is None


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a set of changes gets onto a device, and what that costs whatever the changes are."""

    method: str
    steps: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why not a gentler way; of a refusal, why there is no way at all."""
    risk: Risk = Risk.NONE

    @property
    def is_refused(self) -> bool:
        """Whether netkit knows no way to make these changes."""
        return self.method == REFUSED


NOTHING, REFUSED = "nothing", "refused"


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a part of a configuration costs beside the change itself, or what refuses it: for people."""

    what: str
    effect: str


When = Literal["any", "added", "removed", "changed"]

MOST_REMEMBERED = 100_000

UNKNOWN = "no rule covers this path: taken for disruptive"
NEW = "new: nothing uses it yet"


@dataclass(frozen=True, slots=True)
class Rule:
    """What changing anything at or below a path does; path elements may be patterns. The first rule that fits holds."""

    path: Path
    risk: Risk
    note: str = ""
    source: str = ""
    when: When = "any"

    def fits(self, path: Path, kind: When) -> bool:
        """Whether the rule speaks about a change."""
        return self.when in {"any", kind} and _is(path, self.path)


def _itself(path: Path) -> Path:
    return path


@dataclass(frozen=True)
class RiskTable:
    """The rules of a platform.

    `objects` are things that stand for themselves, such as a port or a neighbour. While one is not on the device yet,
    nothing uses it, and what would take down a session or a link takes down none. Reboots, and most often buffers,
    concern the whole device whatever is new. `in_use` are places that name ports which carry something: an address, a
    VLAN. `stands_for` gives the place of the object that an entry elsewhere belongs to. With `is_buffer_per_port`, a
    change of buffers that names a port concerns that port only.
    """

    rules: tuple[Rule, ...]
    objects: tuple[Path, ...] = ()
    in_use: tuple[Path, ...] = ()
    stands_for: Callable[[Path], Path] = _itself
    is_buffer_per_port: bool = False
    _known: dict[tuple[Path, When], Rule | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rule(self, path: Path, kind: When) -> Rule | None:
        """Return the rule for a change."""
        key = (path, kind)
        if key not in self._known:
            if len(self._known) > MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = next((rule for rule in self.rules if rule.fits(path, kind)), None)
        return self._known[key]

    def judged(self, changes: Iterable[Change], running: Config) -> Iterator[Change]:
        """Yield the changes with their risk."""
        present: set[Path] | None = None  # most changes ask for nothing that takes so long to find
        for change in changes:
            kind: When = "added" if change.is_addition else "removed" if change.is_removal else "changed"
            rule = self.rule(change.path, kind)
            risk, note = (rule.risk, rule.note) if rule else (Risk.SESSION, UNKNOWN)
            if self.is_local(risk):
                if present is None:
                    present = set(_parts(map(self.stands_for, running), self.objects))
                if self._is_new(change.path, present):
                    risk, note = Risk.LOW, NEW
            yield Change(change.path, change.running, change.intended, risk, note)

    def is_local(self, risk: Risk) -> bool:
        """Whether a change of this risk concerns only the port it names."""
        return risk in {Risk.SESSION, Risk.PORT} or (risk is Risk.BUFFER and self.is_buffer_per_port)

    def used(self, running: Config) -> set[Path]:
        """Return the places in a configuration that name ports in use."""
        return set(_parts(running, self.in_use))

    def _is_new(self, path: Path, present: set[Path]) -> bool:
        place = self.stands_for(path)
        return any(_is(place, thing) and place[: len(thing)] not in present for thing in self.objects)


def _parts(paths: Iterable[Path], patterns: Collection[Path]) -> Iterator[Path]:
    return (path[: len(pattern)] for path in paths for pattern in patterns if _is(path, pattern))


def _is(path: Path, pattern: Path) -> bool:
    return len(path) >= len(pattern) and all(map(fnmatchcase, path, pattern))

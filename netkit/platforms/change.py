"""What a change is, and what it puts at risk: one shape for every NOS."""

from dataclasses import dataclass
from enum import IntEnum

from netkit.platforms.config import Path


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

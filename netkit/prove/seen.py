"""What traffic saw of a change while it was rolled: packets without an answer, wave by wave and scope by scope."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from netkit.lab.proof.calling import Gap, Heard
from netkit.prove.flow import SCOPES, Flow

BEFORE = 0
"""The wave of what was lost before any began."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A wave of a deploy: whom it changed, and when it began, in seconds since the epoch."""

    number: int
    devices: tuple[str, ...]
    began_s: float


@dataclass(frozen=True, slots=True)
class WaveSeen:
    """What was lost in a wave."""

    number: int
    devices: tuple[str, ...]
    lost: int
    longest_s: float


@dataclass(frozen=True, slots=True)
class ScopeSeen:
    """What was lost in a scope; `worst` is the flow with the longest gap."""

    scope: str
    flows: int
    sent: int
    lost: int
    longest_s: float
    worst: str


def by_wave(turns: Sequence[Turn], heard: Iterable[Heard]) -> tuple[WaveSeen, ...]:
    """Return what each wave cost; a gap belongs to the wave in which it began."""
    began = [Turn(BEFORE, (), 0.0), *sorted(turns, key=lambda turn: turn.began_s)]
    gaps: dict[int, list[Gap]] = {turn.number: [] for turn in began}
    for gap in (gap for one in heard for gap in one.gaps):
        gaps[[turn.number for turn in began if turn.began_s <= gap.began_s][-1]].append(gap)
    return tuple(
        WaveSeen(turn.number, turn.devices, _lost(gaps[turn.number]), _longest_s(gaps[turn.number]))
        for turn in began
        if turn.number != BEFORE or gaps[BEFORE]
    )


def since_the_first(turns: Sequence[Turn], heard: Iterable[Heard]) -> tuple[Heard, ...]:
    """Return what was heard without what was lost before anything changed."""
    first_s = min((turn.began_s for turn in turns), default=float("inf"))
    return tuple(replace(one, gaps=tuple(gap for gap in one.gaps if gap.began_s >= first_s)) for one in heard)


def by_scope(flows: Sequence[Flow], heard: Iterable[Heard]) -> tuple[ScopeSeen, ...]:
    """Return what each scope lost."""
    known = {one.name: one for one in heard}
    return tuple(
        _scope(scope, found)
        for scope in SCOPES
        if (found := [known[flow.call.name] for flow in flows if flow.scope == scope and flow.call.name in known])
    )


def mute(heard: Iterable[Heard]) -> Iterator[str]:
    """Yield the calls that could not even be made."""
    yield from (f"{one.name}: {one.problem}" for one in heard if not one.sent)


def _scope(scope: str, heard: Sequence[Heard]) -> ScopeSeen:
    worst = max(heard, key=lambda one: _longest_s(one.gaps))
    gaps = [gap for one in heard for gap in one.gaps]
    sent = sum(one.sent for one in heard)
    return ScopeSeen(scope, len(heard), sent, _lost(gaps), _longest_s(gaps), worst.name if worst.gaps else "")


def _lost(gaps: Iterable[Gap]) -> int:
    return sum(gap.lost for gap in gaps)


def _longest_s(gaps: Iterable[Gap]) -> float:
    return round(max((gap.ended_s - gap.began_s for gap in gaps), default=0.0), 2)

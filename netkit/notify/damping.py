"""When a change of state is told: at once, but of one that comes and goes only what is worse, and its end. Pure."""

from dataclasses import dataclass, replace
from typing import Literal

from netkit.judge import Verdict

Kind = Literal["changed", "flapping", "settled"]


@dataclass(frozen=True, slots=True)
class FlapLimits:
    """What counts as flapping, and when it is over."""

    changes: int = 4
    """More changes than this within the window are flapping."""
    window_s: float = 7200.0
    calm_s: float = 2700.0
    """A flapping state that has not changed for so long has settled."""


@dataclass(frozen=True, slots=True)
class NotifiedState:
    """What was told of a state, and what came since."""

    verdict: Verdict = Verdict.PASS
    """As it was told last."""
    now: Verdict = Verdict.PASS
    """As the last run found it."""
    worst: Verdict = Verdict.PASS
    """The worst since it began to flap; while it does not, as it is now."""
    changed_s: tuple[float, ...] = ()
    """The changes within the window."""
    is_flapping: bool = False

    @property
    def level(self) -> Verdict:
        """Return how bad receivers hold it to be."""
        return self.worst if self.is_flapping else self.verdict


def step(told: NotifiedState, verdict: Verdict, at_s: float, limits: FlapLimits) -> tuple[NotifiedState, Kind | None]:
    """Return what is known after a run, and what there is to tell of it."""
    seen = _seen(told, verdict, at_s, limits)
    if seen.is_flapping:
        is_calm = at_s - seen.changed_s[-1] >= limits.calm_s
        if is_calm:
            return NotifiedState(verdict, verdict, verdict), "settled"
        return seen, "flapping" if seen.worst > told.worst else None
    if len(seen.changed_s) > limits.changes:
        return replace(seen, is_flapping=True, worst=max(told.verdict, told.now, verdict)), "flapping"
    if verdict is told.verdict:
        return replace(seen, worst=verdict), None
    return replace(seen, verdict=verdict, worst=verdict), "changed"


def _seen(told: NotifiedState, verdict: Verdict, at_s: float, limits: FlapLimits) -> NotifiedState:
    """Return what is known with a run added; of a flapping state the last change is never forgotten."""
    before = tuple(min(one, at_s) for one in told.changed_s)  # no later than now, if a clock was ahead
    changes = (*before, at_s) if verdict is not told.now else before
    recent = tuple(one for one in changes if at_s - one < limits.window_s)
    kept = (recent or changes[-1:]) if told.is_flapping else recent
    return replace(told, now=verdict, changed_s=kept[-(limits.changes + 1) :], worst=max(told.worst, verdict))

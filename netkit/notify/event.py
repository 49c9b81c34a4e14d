"""The change of a state that a notification reports, and what a receiver knows of that state."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import FiniteFloat

from netkit.judge import Verdict
from netkit.store.open_cause import Change
from netkit.store.record import DamagedError, sound
from netkit.store.state import Key

Kind = Literal["changed", "flapping", "settled"]


@dataclass(frozen=True, slots=True)
class FlapLimits:
    """What counts as flapping, and when it is over."""

    changes: int = 4
    """More changes within the window count as flapping."""
    window_s: float = 7200.0
    calm_s: float = 2700.0
    """A flapping state without a change for this long has settled."""


@dataclass(frozen=True, slots=True)
class NotifiedState:
    """The last notification of a state, and its changes since."""

    verdict: Verdict = Verdict.PASS
    """The verdict in the last notification."""
    now: Verdict = Verdict.PASS
    """The verdict of the last run."""
    worst: Verdict = Verdict.PASS
    """The worst verdict since it began to flap; without flapping, the current one."""
    changed_s: tuple[float, ...] = ()
    """The changes within the window."""
    is_flapping: bool = False

    @property
    def level(self) -> Verdict:
        """The severity that receivers know."""
        return self.worst if self.is_flapping else self.verdict


def step(
    notified: NotifiedState, verdict: Verdict, at_s: float, limits: FlapLimits
) -> tuple[NotifiedState, Kind | None]:
    """The state after a run, and the kind of event to report, if any."""
    seen = _seen(notified, verdict, at_s, limits)
    if seen.is_flapping:
        is_calm = at_s - seen.changed_s[-1] >= limits.calm_s
        if is_calm:
            return NotifiedState(verdict, verdict, verdict), "settled"
        return seen, "flapping" if seen.worst > notified.worst else None
    if len(seen.changed_s) > limits.changes:
        return replace(seen, is_flapping=True, worst=max(notified.verdict, notified.now, verdict)), "flapping"
    if verdict is notified.verdict:
        return replace(seen, worst=verdict), None
    return replace(seen, verdict=verdict, worst=verdict), "changed"


def _seen(notified: NotifiedState, verdict: Verdict, at_s: float, limits: FlapLimits) -> NotifiedState:
    """Add a run; a flapping state keeps at least its last change."""
    before = tuple(min(one, at_s) for one in notified.changed_s)  # not later than now, after a clock was ahead
    changes = (*before, at_s) if verdict is not notified.now else before
    recent = tuple(one for one in changes if at_s - one < limits.window_s)
    kept = (recent or changes[-1:]) if notified.is_flapping else recent
    return replace(notified, now=verdict, changed_s=kept[-(limits.changes + 1) :], worst=max(notified.worst, verdict))


NOTHING = NotifiedState()
Kept = tuple[tuple[Verdict, Verdict, Verdict, tuple[FiniteFloat, ...], bool], FiniteFloat, str, str, str, str]

WITHOUT_REMEDY = 5
"""The length of the form stored before remedies existed."""


@dataclass(frozen=True, slots=True)
class NotificationState:
    """A check's state as receivers know it."""

    notified: NotifiedState = NOTHING
    since_s: float = 0.0
    """The time since it has the reported verdict."""
    text: str = ""
    cause: str = ""
    cause_text: str = ""
    remedy: str = ""

    @property
    def is_forgettable(self) -> bool:
        """Whether it need not be stored."""
        notified = self.notified
        return not (notified.is_flapping or notified.changed_s) and notified.verdict is notified.now is Verdict.PASS


def state_text(state: NotificationState) -> str:
    """Encode the state; empty if it need not be stored."""
    if state.is_forgettable:
        return ""
    notified = state.notified
    damped = (notified.verdict, notified.now, notified.worst, notified.changed_s, notified.is_flapping)
    return json.dumps([damped, state.since_s, state.text, state.cause, state.cause_text, state.remedy])


def state_of_text(text: str) -> NotificationState:
    what = "row of a notified state"
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise DamagedError(f"the {what} is damaged") from None
    if isinstance(plain, list) and len(plain) == WITHOUT_REMEDY:
        plain = [*plain, ""]
    notified, since_s, *texts = sound(plain, Kept, what)
    return NotificationState(NotifiedState(*notified), since_s, *texts)


@dataclass(frozen=True, slots=True)
class StateEvent:
    """The change of a state."""

    id: str
    key: Key
    kind: Kind
    before: Verdict
    now: Verdict
    since_s: float
    at_s: float
    """The time of the run that found it."""
    text: str = ""
    """What is wrong, or after it has passed, what was wrong."""
    remedy: str = ""
    cause: str = ""
    """The state that this one is a symptom of; empty for a cause."""
    cause_text: str = ""
    """What is wrong there; empty if the same is wrong at all places of the cause."""
    silence: str = ""
    """Who silenced it, why and until when, if that is why it is reported."""
    change: Change | None = None
    """The change of the cause: the same for all events of a run that share it."""

    @property
    def level(self) -> Verdict:
        """The worse of before and now: a receiver notified of one must also see the other."""
        return max(self.before, self.now)

    @property
    def is_well(self) -> bool:
        """Whether it passes again, and is not only silenced."""
        return self.now is Verdict.PASS and self.kind != "flapping" and not self.silence


def event_id(fabric: str, lab: str, key: Key, kind: Kind, at_s: float) -> str:
    """The unique id of an event, the same however often it is sent."""
    identity = "\n".join((fabric, lab, *key, kind, f"{at_s:.3f}"))
    return hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:24]


def plain(event: StateEvent) -> dict[str, Any]:
    """Convert an event to the form that is stored and sent."""
    return {
        "id": event.id,
        "check": event.key.check,
        "device": event.key.device,
        "place": event.key.place,
        "kind": event.kind,
        "before": event.before.word,
        "now": event.now.word,
        "since_s": event.since_s,
        "at_s": event.at_s,
        "text": event.text,
        "remedy": event.remedy,
        "cause": event.cause,
        "cause_text": event.cause_text,
        "silence": event.silence,
        "change": event.change,
    }


def event_of(fields: Mapping[str, Any]) -> StateEvent:
    """Convert an event from its stored form."""
    return StateEvent(
        fields["id"],
        Key(fields["check"], fields["device"], fields["place"]),
        fields["kind"],
        Verdict[fields["before"].upper()],
        Verdict[fields["now"].upper()],
        fields["since_s"],
        fields["at_s"],
        fields["text"],
        fields["remedy"],
        fields["cause"],
        fields["cause_text"],
        fields.get("silence", ""),  # an earlier netkit may have left it in the outbox
        fields.get("change"),
    )

"""Earlier notifications and current states → what to report now."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from netkit.judge import Verdict
from netkit.judge.cause import CauseGroup
from netkit.notify.event import (
    FlapLimits,
    Kind,
    NotificationState,
    StateEvent,
    event_id,
    state_of_text,
    state_text,
    step,
)
from netkit.store import CheckState, Source
from netkit.store.open_cause import change_of
from netkit.store.outbox import Memory, NotifyDecision, QueuedNotification
from netkit.store.state import Extent, Key, SilenceEnd, States, key_of


@dataclass(frozen=True, slots=True)
class Because:
    """The reason of a state: the cause it is a symptom of, and the remedy."""

    cause: str = ""
    cause_text: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class NotifyRound:
    """A run of checks, as far as notifications are concerned."""

    source: Source
    at_s: float
    causes: Sequence[CauseGroup]
    extent: Extent
    """States outside it are resolved."""
    limits: FlapLimits
    silenced: Mapping[Key, str] = field(default_factory=dict)
    """The silenced places, with author, reason and end."""
    ends: Sequence[SilenceEnd] = ()
    """Silences that ended with it."""


@dataclass(frozen=True, slots=True)
class News:
    """What to report after a run, and all states after it."""

    at_s: float
    events: tuple[StateEvent, ...]
    states: Mapping[Key, NotificationState]
    ends: Sequence[SilenceEnd] = ()


ComposeNotifications = Callable[[News], Iterable[QueuedNotification]]
"""Composes the message for each receiver."""


def decide(memory: Memory, states: States, now: NotifyRound, address: ComposeNotifications) -> NotifyDecision:
    """Decide the notifications of a run, and what to remember of them."""
    before = {key: state_of_text(text) for key, text in memory.items()}
    reasons = _reasons(now.causes)
    after: dict[Key, NotificationState] = {}
    events = []
    # No run will ever resolve the states of devices and checks that no longer exist.
    reasons_gone = {key: now.extent.lacks(key) for key in before}
    gone = {key: CheckState(key, Verdict.PASS, now.at_s, now.at_s, why) for key, why in reasons_gone.items() if why}
    for key, state in {**gone, **states}.items():
        because = reasons.get(key, Because())
        after[key], event = _next(before.get(key, NotificationState()), state, because, now)
        events += [event] if event is not None else []
    current = {**before, **after}
    news = News(
        now.at_s,
        tuple(_by_cause(events, before, current)),
        {key: one for key, one in current.items() if not one.is_forgettable},
        now.ends,
    )
    written = {key: state_text(one) for key, one in after.items() if state_text(one) != memory.get(key, "")}
    return NotifyDecision(written, tuple(address(news)))


def _reasons(causes: Iterable[CauseGroup]) -> Mapping[Key, Because]:
    found: dict[Key, Because] = {}
    for group in causes:
        head = key_of(group.head)
        found[head] = Because(remedy=group.head.remedy)
        text = group.head.text if group.places == 1 else ""  # with many places there is no single text
        for one in group.symptoms:
            found.setdefault(key_of(one), Because(head.id, text, one.remedy))
    return found


def _by_cause(
    events: Iterable[StateEvent], before: Mapping[Key, NotificationState], after: Mapping[Key, NotificationState]
) -> Iterator[StateEvent]:
    """Add to each event the change of its cause; a state that passes while its cause stays open is reported with it."""
    members: dict[str, dict[Key, None]] = {}
    for current in (before, after):
        for key, one in current.items():
            members.setdefault(one.cause or key.id, {})[key] = None
    for event in events:
        cause = event.cause or event.key.id
        left = (key for key in members[cause] if after[key].notified.verdict > Verdict.SKIPPED)
        heir = next(left, None) if event.is_well else None
        now = cause if heir is None else after[heir].cause or heir.id
        text = event.cause_text if heir is None else after[heir].cause_text or after[heir].text
        keys = {**members[cause], **members[now]}
        pairs = [(before.get(key, NotificationState()).notified.verdict, after[key].notified.verdict) for key in keys]
        is_own = now == event.key.id
        named = replace(event, cause="" if is_own else now, cause_text="" if is_own else text)
        yield replace(named, change=change_of(pairs))


def _next(
    before: NotificationState, state: CheckState, because: Because, now: NotifyRound
) -> tuple[NotificationState, StateEvent | None]:
    notified, kind = step(before.notified, state.verdict, now.at_s, now.limits)
    is_bad = state.verdict is not Verdict.PASS
    was = (state.text or before.text, before.cause, before.cause_text, before.remedy)
    words = (state.text, because.cause, because.cause_text, because.remedy) if is_bad else was
    if kind is None:
        return NotificationState(notified, before.since_s, *words), None
    return NotificationState(notified, state.since_s, *words), _event(
        before, state, kind, (*words[:3], because.remedy), now
    )


def _event(
    before: NotificationState, state: CheckState, kind: Kind, words: tuple[str, str, str, str], now: NotifyRound
) -> StateEvent:
    text, cause, cause_text, remedy = words
    worst = max(before.notified.worst, state.verdict)
    return StateEvent(
        event_id(now.source.fabric, now.source.lab, state.key, kind, now.at_s),
        state.key,
        kind,
        worst if kind == "settled" else before.notified.level,
        state.verdict,
        state.since_s,
        now.at_s,
        text,
        remedy,
        cause,
        cause_text,
        now.silenced.get(state.key, "") if state.verdict < before.notified.now else "",
    )

"""One message to a receiver: events of one or more runs by cause, the worst first, below a digest. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netkit.judge import Verdict
from netkit.judge.cause import MANY
from netkit.notify.event import StateEvent, event_of, plain
from netkit.report.changes_text import digest_text, open_counts_text
from netkit.report.plan_view import counted, listed, shown
from netkit.store.open_cause import change_of

MOST_ENDS = 20


@dataclass(frozen=True, slots=True)
class Message:
    """A message, independent of the kind of receiver."""

    id: str
    """The same however often it is sent."""
    fabric: str
    lab: str
    rounds: int
    at_s: float
    """When the last run it covers was taken."""
    open: Mapping[str, int]
    """Verdict → how many causes are open with it, and how many devices were not reached."""
    events: tuple[StateEvent, ...]
    link: str = ""
    """Where more is to be seen."""
    ends: tuple[str, ...] = ()
    """Silences that ended."""


@dataclass(frozen=True, slots=True)
class EventGroup:
    """What belongs together: a cause with its symptoms, or the same at many places."""

    head: StateEvent
    events: tuple[StateEvent, ...]
    is_alike: bool = False

    @property
    def word(self) -> str:
        """Return how it stands, in a word."""
        return word(self.head)

    @property
    def change(self) -> str:
        """Return what became of it, in a word."""
        return change(self.head)


def body(
    at_s: float, events: Sequence[StateEvent], open_counts: Mapping[str, int], ends: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what a run gives a receiver, as the outbox keeps it."""
    return {"at_s": at_s, "open": dict(open_counts), "events": [plain(event) for event in events], "ends": list(ends)}


def message_of(id: str, fabric: str, lab: str, bodies: Sequence[Mapping[str, Any]], link: str) -> Message:  # noqa: A002 (what receivers call it)
    """Return one message of what one or more runs gave."""
    events = tuple(event_of(one) for told in bodies for one in told["events"])
    ends = tuple(one for told in bodies for one in told.get("ends", ()))
    last = bodies[-1]
    return Message(id, fabric, lab, len(bodies), last["at_s"], last["open"], events, link, ends)


def word(event: StateEvent) -> str:
    """Return what became of a state, in a word."""
    if event.kind == "flapping":
        return "flapping"
    if event.silence and event.now is Verdict.PASS:
        return "silenced"
    return "well" if event.is_well else event.now.word


def change(event: StateEvent) -> str:
    """Return what became of the cause of an event, in a word; without one, what became of the state."""
    if word(event) in {"flapping", "silenced"}:
        return word(event)
    return event.change or change_of([(event.before, event.now)]) or ("gone" if event.is_well else "new")


def groups(events: Sequence[StateEvent]) -> tuple[EventGroup, ...]:
    """Return events by cause, the worst first; after that what flaps, what is silenced, and what is healthy again."""
    by_cause: dict[tuple[str, str], list[StateEvent]] = {}
    for event in events:
        by_cause.setdefault((change(event), event.cause or event.key.id), []).append(event)
    found = [_group(cause, members) for (_, cause), members in by_cause.items()]
    return tuple(sorted(_alike(found), key=_weight))


def _group(cause: str, members: list[StateEvent]) -> EventGroup:
    ordered = sorted(members, key=lambda one: (one.key.id != cause, one.is_well, -one.level, one.key))
    head = ordered[0]
    is_alike = len(ordered) >= MANY and all((one.key.check, one.text) == (head.key.check, head.text) for one in ordered)
    return EventGroup(head, tuple(ordered), is_alike=is_alike)


def _alike(found: Iterable[EventGroup]) -> Iterator[EventGroup]:
    """Yield groups; what is the same at many places becomes one."""
    same: dict[tuple[str, str, str], list[EventGroup]] = {}
    for group in found:
        same.setdefault((group.head.key.check, group.head.text, group.change), []).append(group)
    for members in same.values():
        if len(members) < MANY:
            yield from members
        else:
            events = tuple(event for one in members for event in one.events)
            yield EventGroup(members[0].head, events, is_alike=True)


def _weight(group: EventGroup) -> tuple[int, int, int, str]:
    rank = {"flapping": 1, "silenced": 2, "gone": 3}.get(group.change, 0)
    return rank, -max(one.level for one in group.events), -len(group.events), group.head.key.id


def digest(told: Message) -> str:
    """Return the message in a line."""
    news = [digest_text([group.change for group in groups(told.events)])] if told.events else []
    news += [f"{counted(len(told.ends), 'silence')} ended"] if told.ends else []
    return shown(f"{_place(told)}: {', '.join(news)}; {open_counts_text(told.open)}")


def _place(told: Message) -> str:
    return f"{told.fabric} (lab {told.lab})" if told.lab else told.fabric


def look(told: Message) -> str:
    """Return where to look for more."""
    command = f"netkit history --checks last --fabric DIR{f' --lab={told.lab}' if told.lab else ''}"
    return shown(f"{told.link} or {command}" if told.link else command)


def place(group: EventGroup) -> str:
    """Return where something is."""
    if group.is_alike:
        devices = listed(tuple(dict.fromkeys(one.key.device for one in group.events)))
        return f"{counted(len(group.events), 'place')} on {devices}"
    return ":".join(part for part in (group.head.key.device, group.head.key.place) if part)


def lines(group: EventGroup) -> Iterator[str]:
    """Yield a group as lines of text, whose first is the news."""
    head = group.head
    yield shown(f"{place(group)} {head.key.check}" + (f": {head.text}" if head.text else "") + _fate_text(head))
    if head.cause_text:
        relation = "still open" if head.is_well and group.change != "gone" else "follows from"
        yield shown(f"{relation} {head.cause}: {head.cause_text}")
    others = () if group.is_alike else group.events[1:]
    for relation, is_well in (("with it", head.is_well), ("well again", not head.is_well)):
        if names := tuple(dict.fromkeys(one.key.id for one in others if one.is_well is is_well)):
            yield shown(f"{relation}: {listed(names)}")
    if head.silence:
        yield shown(head.silence)
    if head.remedy and head.now is not Verdict.PASS:
        yield shown(f"do: {head.remedy}")


def _fate_text(event: StateEvent) -> str:
    if event.kind == "flapping":
        return " (changes so often that only worse and its end will be told)"
    if event.kind == "settled":
        return " (has settled)"
    return f" (was {event.before.word})" if event.before > Verdict.SKIPPED else ""


def text(told: Message, most: int) -> str:
    """Return a message as plain text with at most so many groups; the others are counted."""
    found = groups(told.events)
    return "\n".join(
        (digest(told), "", *_body(found[:most]), *_rest(found, most), *_ended(told), f"Look: {look(told)}", "")
    )


def _body(found: Iterable[EventGroup]) -> Iterator[str]:
    for group in found:
        first, *more = lines(group)
        verdict = "" if group.change in {"gone", "flapping", "silenced"} else f"{group.word.upper()} "
        yield f"{group.change:<8}  {verdict}{first}"
        yield from (f"          {line}" for line in more)
    yield ""


def _ended(told: Message) -> Iterator[str]:
    yield from (f"ENDED     {shown(one)}" for one in told.ends[:MOST_ENDS])
    if len(told.ends) > MOST_ENDS:
        yield f"… and {counted(len(told.ends) - MOST_ENDS, 'silence')} more ended"


def _rest(found: Sequence[EventGroup], most: int) -> Iterator[str]:
    if left := found[most:]:
        yield f"… and {counted(len(left), 'group')} more with {counted(sum(len(one.events) for one in left), 'event')}"

"""A message to a receiver: the events of one or more runs grouped by cause, the worst first, below a summary."""

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
    """The number of open causes by verdict, and of unreached devices."""
    events: tuple[StateEvent, ...]
    link: str = ""
    """An address with more information."""
    ends: tuple[str, ...] = ()
    """Silences that ended."""


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Related events: a cause with its symptoms, or the same at many places."""

    head: StateEvent
    events: tuple[StateEvent, ...]
    is_alike: bool = False

    @property
    def word(self) -> str:
        return word(self.head)

    @property
    def change(self) -> str:
        return change(self.head)


def body(
    at_s: float, events: Sequence[StateEvent], open_counts: Mapping[str, int], ends: Sequence[str] = ()
) -> dict[str, Any]:
    """A run's notification in the form of the outbox."""
    return {"at_s": at_s, "open": dict(open_counts), "events": [plain(event) for event in events], "ends": list(ends)}


def message_of(id: str, fabric: str, lab: str, bodies: Sequence[Mapping[str, Any]], link: str) -> Message:  # noqa: A002 (what receivers call it)
    """Merge the notifications of one or more runs into a message."""
    events = tuple(event_of(one) for body in bodies for one in body["events"])
    ends = tuple(one for body in bodies for one in body.get("ends", ()))
    last = bodies[-1]
    return Message(id, fabric, lab, len(bodies), last["at_s"], last["open"], events, link, ends)


def word(event: StateEvent) -> str:
    if event.kind == "flapping":
        return "flapping"
    if event.silence and event.now is Verdict.PASS:
        return "silenced"
    return "well" if event.is_well else event.now.word


def change(event: StateEvent) -> str:
    """The change of an event's cause as a word; without a cause, that of the state."""
    if word(event) in {"flapping", "silenced"}:
        return word(event)
    return event.change or change_of([(event.before, event.now)]) or ("gone" if event.is_well else "new")


def groups(events: Sequence[StateEvent]) -> tuple[EventGroup, ...]:
    """Group events by cause, the worst first; flapping, silenced and passed ones follow."""
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
    """Merge groups that are the same at many places."""
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


def digest(message: Message) -> str:
    """Summarise a message in one line."""
    news = [digest_text([group.change for group in groups(message.events)])] if message.events else []
    news += [f"{counted(len(message.ends), 'silence')} ended"] if message.ends else []
    source = f"{message.fabric} (lab {message.lab})" if message.lab else message.fabric
    return shown(f"{source}: {', '.join(news)}; {open_counts_text(message.open)}")


def details_command(message: Message) -> str:
    """Where to find more."""
    command = f"netkit history --checks last --fabric DIR{f' --lab={message.lab}' if message.lab else ''}"
    return shown(f"{message.link} or {command}" if message.link else command)


def place(group: EventGroup) -> str:
    if group.is_alike:
        devices = listed(tuple(dict.fromkeys(one.key.device for one in group.events)))
        return f"{counted(len(group.events), 'place')} on {devices}"
    return ":".join(part for part in (group.head.key.device, group.head.key.place) if part)


def lines(group: EventGroup) -> Iterator[str]:
    """Yield a group as lines of text; the first is the news."""
    head = group.head
    yield shown(f"{place(group)} {head.key.check}" + (f": {head.text}" if head.text else "") + _fate_text(head))
    if head.cause_text:
        relation = "still open" if head.is_well and group.change != "gone" else "follows from"
        yield shown(f"{relation} {head.cause}: {head.cause_text}")
    others = () if group.is_alike else group.events[1:]
    for relation, is_well in (("with it", head.is_well), ("passes again", not head.is_well)):
        if names := tuple(dict.fromkeys(one.key.id for one in others if one.is_well is is_well)):
            yield shown(f"{relation}: {listed(names)}")
    if head.silence:
        yield shown(head.silence)
    if head.remedy and head.now is not Verdict.PASS:
        yield shown(f"do: {head.remedy}")


def _fate_text(event: StateEvent) -> str:
    if event.kind == "flapping":
        return " (changes often: only worse states and its end are reported)"
    if event.kind == "settled":
        return " (has settled)"
    return f" (was {event.before.word})" if event.before > Verdict.SKIPPED else ""


def text(message: Message, most: int) -> str:
    """A message as plain text with at most `most` groups; the others are counted."""
    found = groups(message.events)
    lines = [digest(message), "", *_body(found[:most])]
    if left := found[most:]:
        events = sum(len(one.events) for one in left)
        lines.append(f"… and {counted(len(left), 'group')} more with {counted(events, 'event')}")
    lines += [f"ENDED     {shown(one)}" for one in message.ends[:MOST_ENDS]]
    if len(message.ends) > MOST_ENDS:
        lines.append(f"… and {counted(len(message.ends) - MOST_ENDS, 'silence')} more ended")
    return "\n".join([*lines, f"More: {details_command(message)}", ""])


def _body(found: Iterable[EventGroup]) -> Iterator[str]:
    for group in found:
        first, *more = lines(group)
        verdict = "" if group.change in {"gone", "flapping", "silenced"} else f"{group.word.upper()} "
        yield f"{group.change:<8}  {verdict}{first}"
        yield from (f"          {line}" for line in more)
    yield ""

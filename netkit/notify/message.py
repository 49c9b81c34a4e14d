"""What one receiver is told at once: events of one or more runs by cause, the worst first, below a digest. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netkit.judge import Verdict
from netkit.judge.group import MANY
from netkit.notify.event import Event, event_of, plain
from netkit.report.plan_view import counted, listed, shown

FATES = ("worse", "better", "flapping", "silenced", "well again")
MOST_ENDS = 20
SEVERITIES = (Verdict.ERROR, Verdict.FAIL, Verdict.WARN)


@dataclass(frozen=True, slots=True)
class Message:
    """What a receiver is told."""

    id: str
    """The same however often it is sent."""
    fabric: str
    lab: str
    rounds: int
    at_s: float
    """The last run it tells of."""
    open: Mapping[str, int]
    """Verdict → how many states stand so now."""
    events: tuple[Event, ...]
    link: str = ""
    """Where more is to be seen."""
    ends: tuple[str, ...] = ()
    """Silences that ended."""


@dataclass(frozen=True, slots=True)
class Group:
    """What belongs together: a cause with its symptoms, or the same at many places."""

    head: Event
    events: tuple[Event, ...]
    is_alike: bool = False

    @property
    def word(self) -> str:
        """Return what became of it, in a word."""
        return word(self.head)


def body(at_s: float, events: Sequence[Event], standing: Iterable[Verdict], ends: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a run gives a receiver, as the outbox keeps it."""
    counts = Counter(one.word for one in standing if one > Verdict.SKIPPED)
    return {"at_s": at_s, "open": dict(counts), "events": [plain(event) for event in events], "ends": list(ends)}


def message(id: str, fabric: str, lab: str, bodies: Sequence[Mapping[str, Any]], link: str) -> Message:  # noqa: A002 (what receivers call it)
    """Return one message of what one or more runs gave."""
    events = tuple(event_of(one) for told in bodies for one in told["events"])
    ends = tuple(one for told in bodies for one in told.get("ends", ()))
    last = bodies[-1]
    return Message(id, fabric, lab, len(bodies), last["at_s"], last["open"], events, link, ends)


def word(event: Event) -> str:
    """Return what became of a state, in a word."""
    if event.kind == "flapping":
        return "flapping"
    if event.silence and event.now is Verdict.PASS:
        return "silenced"
    return "well" if event.is_well else event.now.word


def groups(events: Sequence[Event]) -> tuple[Group, ...]:
    """Return events by cause, the worst first; after that what flaps, what is silenced, and what is well again."""
    by_cause: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        by_cause.setdefault((_fate(event), event.cause or event.key.id), []).append(event)
    found = [_group(cause, members) for (_, cause), members in by_cause.items()]
    return tuple(sorted(_alike(found), key=_weight))


def _fate(event: Event) -> str:
    return word(event) if word(event) in {"well", "flapping", "silenced"} else "bad"


def _group(cause: str, members: list[Event]) -> Group:
    ordered = sorted(members, key=lambda one: (one.key.id != cause, -one.level, one.key))
    return Group(ordered[0], tuple(ordered))


def _alike(found: Iterable[Group]) -> Iterator[Group]:
    """Yield groups; what is the same at many places becomes one."""
    same: dict[tuple[str, str, str], list[Group]] = {}
    for group in found:
        same.setdefault((group.head.key.check, group.head.text, group.word), []).append(group)
    for members in same.values():
        if len(members) < MANY:
            yield from members
        else:
            events = tuple(event for one in members for event in one.events)
            yield Group(members[0].head, events, is_alike=True)


def _weight(group: Group) -> tuple[int, int, int, str]:
    rank = ("bad", "flapping", "silenced", "well").index(_fate(group.head))
    return rank, -max(one.level for one in group.events), -len(group.events), group.head.key.id


def digest(told: Message) -> str:
    """Return the message in a line."""
    fates = Counter(_change(event) for event in told.events)
    news = [f"{fates[one]} {one}" for one in FATES if fates[one]]
    news += [f"{counted(len(told.ends), 'silence')} ended"] if told.ends else []
    return shown(f"{_place(told)}: {', '.join(news)}; {standing_text(told.open)}")


def _change(event: Event) -> str:
    if event.kind == "flapping":
        return "flapping"
    if event.is_well:
        return "well again"
    if word(event) == "silenced":
        return "silenced"
    return "better" if event.now < event.before else "worse"


def _place(told: Message) -> str:
    return f"{told.fabric} (lab {told.lab})" if told.lab else told.fabric


def standing_text(standing: Mapping[str, int]) -> str:
    """Return how much stands open."""
    parts = [f"{standing[one.word]} {one.word}" for one in SEVERITIES if standing.get(one.word)]
    return f"{sum(standing.values())} open: {', '.join(parts)}" if parts else "nothing is open"


def look(told: Message) -> str:
    """Return where to look for more."""
    command = f"netkit history --checks last --fabric DIR{f' --lab={told.lab}' if told.lab else ''}"
    return shown(f"{told.link} or {command}" if told.link else command)


def place(group: Group) -> str:
    """Return where something is."""
    if group.is_alike:
        devices = listed(tuple(dict.fromkeys(one.key.device for one in group.events)))
        return f"{counted(len(group.events), 'place')} on {devices}"
    return ":".join(part for part in (group.head.key.device, group.head.key.place) if part)


def lines(group: Group) -> Iterator[str]:
    """Yield a group as lines of text, whose first is the news."""
    head = group.head
    yield shown(f"{place(group)} {head.key.check}" + (f": {head.text}" if head.text else "") + _fate_text(head))
    if head.cause:
        yield shown(f"follows from {head.cause}: {head.cause_text}")
    symptoms = tuple(one.key.id for one in group.events[1:])
    if symptoms and not group.is_alike:
        yield shown(f"with it: {listed(symptoms)}")
    if head.silence:
        yield shown(head.silence)
    if head.remedy and head.now is not Verdict.PASS:
        yield shown(f"do: {head.remedy}")


def _fate_text(event: Event) -> str:
    if event.kind == "flapping":
        return " (changes so often that only worse and its end will be told)"
    if event.kind == "settled":
        return " (has settled)"
    return f" (was {event.before.word})" if event.before > Verdict.SKIPPED else ""


def text(told: Message, most: int) -> str:
    """Return a message as plain text; so many groups are told, and the others counted."""
    found = groups(told.events)
    return "\n".join(
        (digest(told), "", *_body(found[:most]), *_rest(found, most), *_ended(told), f"Look: {look(told)}", "")
    )


def _body(found: Iterable[Group]) -> Iterator[str]:
    for group in found:
        first, *more = lines(group)
        yield f"{group.word.upper():<8}  {first}"
        yield from (f"          {line}" for line in more)
    yield ""


def _ended(told: Message) -> Iterator[str]:
    yield from (f"ENDED     {shown(one)}" for one in told.ends[:MOST_ENDS])
    if len(told.ends) > MOST_ENDS:
        yield f"… and {counted(len(told.ends) - MOST_ENDS, 'silence')} more ended"


def _rest(found: Sequence[Group], most: int) -> Iterator[str]:
    if left := found[most:]:
        yield f"… and {counted(len(left), 'group')} more with {counted(sum(len(one.events) for one in left), 'event')}"

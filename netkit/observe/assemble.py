"""From the answers of a device to its facts; pure."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from netkit.facts import Absent, Facts, Sample
from netkit.facts.device import KINDS, NOT_ASKED
from netkit.facts.qos import Buffer
from netkit.platforms.view import Reply, View

Replies = Mapping[str, Reply]
"""Command → what the device answered."""
Answers = tuple[Reply, ...]
Parts = tuple[tuple[str, Any], ...]
LONGEST_COMMAND = 100
UNREAD = "cannot be read"
"""What parsers say of an answer that is none; one that failed is empty for them."""
NO_REPLY = Reply("", "was not asked in time")


class Readings:
    """What views made of answers: the same answers are not read twice, first for a sample and then for the facts."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Answers, Parts]] = {}

    def parts(self, view: View, replies: Replies) -> Parts:
        """Return what a view found, by kind."""
        answers = tuple(replies.get(command, NO_REPLY) for command in view.commands)
        known = self._known.get(id(view))
        if known is not None and all(map(operator.is_, known[0], answers)):
            return known[1]
        found = tuple(_parts(view, answers))
        self._known[id(view)] = answers, found
        return found


def instead(views: Sequence[View], replies: Replies, readings: Readings) -> tuple[View, ...]:
    """Return views; in place of those that were answered and tell nothing, what is to be asked instead."""
    return tuple(view.otherwise if view.otherwise and _is_silent(view, replies, readings) else view for view in views)


def _is_silent(view: View, replies: Replies, readings: Readings) -> bool:
    if not all(command in replies and replies[command].has_ended for command in view.commands):
        return False
    return all(isinstance(fact, Absent) for _, fact in readings.parts(view, replies))


def facts(views: Sequence[View], replies: Replies, readings: Readings | None = None) -> Facts:
    """Return what all views together found."""
    known = readings or Readings()
    found = [part for view in views for part in known.parts(view, replies)]
    return Facts(**{kind: _joined([fact for name, fact in found if name == kind]) for kind in KINDS})


def sample(views: Sequence[View], replies: Replies, readings: Readings | None = None) -> Sample | None:
    """Return the counters among the answers, as of when they were given; None when there are none."""
    counting = [view for view in views if view.counts]
    found = facts(counting, replies, readings).counters
    answers = [replies[command] for view in counting for command in view.commands if command in replies]
    times = [answer.at_s for answer in answers if answer.at_s and not answer.failure]  # what did not answer has no time
    if isinstance(found, Absent) or not times:
        return None
    return Sample(sum(times) / len(times), found, buffers=_buffers(views, replies, readings))


def _buffers(views: Sequence[View], replies: Replies, readings: Readings | None) -> Mapping[str, Buffer]:
    """Return how full queues were, where the answers that hold counters tell that, too."""
    asked = {command for view in views if view.counts for command in view.commands}
    told = [view for view in views if "buffers" in view.yields and asked.issuperset(view.commands)]
    found = facts(told, replies, readings).buffers
    return {} if isinstance(found, Absent) else found


def _parts(view: View, answers: Answers) -> Iterator[tuple[str, Any]]:
    """Yield the facts of one view by kind; absent are those of commands that failed."""
    failures = {
        command: f"{_short(command)}: {answer.failure}"
        for command, answer in zip(view.commands, answers, strict=True)
        if answer.failure
    }
    if len(failures) == len(view.commands):
        yield from ((kind, Absent(failures[view.commands[0]])) for kind in view.yields)
        return
    try:
        found = view.parse(*(answer.text if not answer.failure else "" for answer in answers))
    except Exception as error:  # of one parser; what the others read still counts
        found = Facts(
            **dict.fromkeys(view.yields, Absent(f"{_short(view.commands[0])}: cannot be read ({error!r:.80})"))
        )
    for kind in view.yields:
        fact = getattr(found, kind)
        yield kind, _because(fact, view.commands[0], failures) if failures else fact


def _because(fact: Any, first: str, failures: Mapping[str, str]) -> Any:
    """Return a fact; one that is absent for want of an answer, with what became of the question."""
    if fact is NOT_ASKED:
        return Absent(next(iter(failures.values())))
    if not isinstance(fact, Absent):
        return fact
    if first in failures and UNREAD in fact.reason:
        return Absent(failures[first])
    return next((Absent(why) for command, why in failures.items() if fact.reason.startswith(command)), fact)


def _short(command: str) -> str:
    """Return a command as a message may quote it; some are whole scripts."""
    line = command.strip().partition("\n")[0]
    return line if len(line) <= LONGEST_COMMAND else f"{line[:LONGEST_COMMAND]}…"


def _joined(found: Sequence[Any]) -> Any:
    """Return one fact of what several views found; places of one that the other lacks are added."""
    present = [fact for fact in found if not isinstance(fact, Absent)]
    if not present:
        return found[0] if found else NOT_ASKED
    if len(present) == 1 or not all(isinstance(fact, Mapping) for fact in present):
        return present[0]
    return _union(fact for fact in present if isinstance(fact, Mapping))


def _union(parts: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            known = whole.setdefault(key, value)
            if isinstance(value, Mapping) and isinstance(known, Mapping):
                whole[key] = {**value, **known}
    return whole

"""Build facts from a device's replies; pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netkit.facts import Absent, Facts, Sample
from netkit.facts.device import KINDS, NOT_ASKED
from netkit.platforms.view import Reply, View

Replies = Mapping[str, Reply]
"""Command → reply."""
Answers = tuple[Reply, ...]
Parts = tuple[tuple[str, Any], ...]
LONGEST_COMMAND = 100
UNREAD = "cannot be read"
"""Phrase of parsers for an invalid answer; they get an empty text for a failed command."""
NO_REPLY = Reply("", "was not asked in time")


class Readings:
    """Cache of parsed replies, which are used first for a sample and then for the facts."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Answers, Parts]] = {}

    def parts(self, view: View, replies: Replies) -> Parts:
        """Parse a view's replies into facts by kind."""
        answers = tuple(replies.get(command, NO_REPLY) for command in view.commands)
        known = self._known.get(id(view))
        if known is not None and all(map(_is_alike, known[0], answers)):
            return known[1]
        found = tuple(_parts(view, answers))
        self._known[id(view)] = answers, found
        return found


def _is_alike(one: Reply, other: Reply) -> bool:
    """Whether two replies give the same facts, as those before and after a window in which nothing was counted."""
    return one is other or (one.text == other.text and one.failure == other.failure)


def instead(views: Sequence[View], replies: Replies, readings: Readings) -> tuple[View, ...]:
    """Replace views that were answered but yielded nothing with their fallback."""
    found = []
    for view in views:
        has_ended = all(command in replies and replies[command].has_ended for command in view.commands)
        if view.fallback and has_ended:
            is_empty = all(isinstance(fact, Absent) for _, fact in readings.parts(view, replies))
            found.append(view.fallback if is_empty else view)
        else:
            found.append(view)
    return tuple(found)


def facts(views: Sequence[View], replies: Replies, readings: Readings | None = None) -> Facts:
    known = readings or Readings()
    found = [part for view in views for part in known.parts(view, replies)]
    return Facts(**{kind: _joined([fact for name, fact in found if name == kind]) for kind in KINDS})


def sample(views: Sequence[View], replies: Replies, readings: Readings | None = None) -> Sample | None:
    """Extract a sample of the counters, timed by their replies; None if there are none."""
    counting = [view for view in views if view.counts]
    found = facts(counting, replies, readings).counters
    answers = [replies[command] for view in counting for command in view.commands if command in replies]
    times = [answer.at_s for answer in answers if answer.at_s and not answer.failure]  # failed replies do not count
    if isinstance(found, Absent) or not times:
        return None
    # Buffers belong to the sample if they are in the same replies as the counters.
    asked = {command for view in counting for command in view.commands}
    with_buffers = [view for view in views if "buffers" in view.yields and asked.issuperset(view.commands)]
    buffers = facts(with_buffers, replies, readings).buffers
    return Sample(sum(times) / len(times), found, buffers={} if isinstance(buffers, Absent) else buffers)


def _parts(view: View, answers: Answers) -> Iterator[tuple[str, Any]]:
    """Yield the facts of one view by kind; those of failed commands are absent."""
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
    except Exception as error:  # a failing parser must not affect the others
        found = Facts(
            **dict.fromkeys(view.yields, Absent(f"{_short(view.commands[0])}: cannot be read ({error!r:.80})"))
        )
    for kind in view.yields:
        fact = getattr(found, kind)
        yield kind, _because(fact, view.commands[0], failures) if failures else fact


def _because(fact: Any, first: str, failures: Mapping[str, str]) -> Any:
    """Replace the reason of an absent fact with the failure of its command."""
    if fact is NOT_ASKED:
        return Absent(next(iter(failures.values())))
    if not isinstance(fact, Absent):
        return fact
    if first in failures and UNREAD in fact.reason:
        return Absent(failures[first])
    return next((Absent(why) for command, why in failures.items() if fact.reason.startswith(command)), fact)


def _short(command: str) -> str:
    """Shorten a command for a message; some are scripts."""
    line = command.strip().partition("\n")[0]
    return line if len(line) <= LONGEST_COMMAND else f"{line[:LONGEST_COMMAND]}…"


def _joined(found: Sequence[Any]) -> Any:
    """Merge one fact from several views; the first view that has a place wins."""
    present = [fact for fact in found if not isinstance(fact, Absent)]
    if not present:
        return found[0] if found else NOT_ASKED
    if len(present) == 1 or not all(isinstance(fact, Mapping) for fact in present):
        return present[0]
    whole: dict[str, Any] = {}
    for fact in present:
        for key, value in fact.items():
            known = whole.setdefault(key, value)
            if known is not value and isinstance(value, Mapping) and isinstance(known, Mapping):
                whole[key] = {**value, **known}
    return whole

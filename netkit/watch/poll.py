"""Polling: a device is asked again and again for what counts, and nothing else."""

import threading
import time
from collections.abc import Iterable, Sequence

from netkit.facts import Sample
from netkit.observe.assemble import sample
from netkit.platforms.view import Reply, View, Viewer
from netkit.watch.feed import Condition, Listener
from netkit.watch.kept import NoAnswerError
from netkit.watch.reading import WATCHED

LONGEST_REST_S = 5.0
"""A device rests as long as it took to answer, up to this."""
EASE = 0.5
"""How quickly it is asked more often again once it answers quicker."""
NOTICEABLE = 1.2


class Poll:
    """What is asked of one device, by the views of it that count and cost little."""

    def __init__(self, device: str, views: Sequence[View], interval_s: float = 1.0) -> None:
        self.device = device
        self._views = tuple(view for view in views if view.counts and not view.is_costly)
        self._commands = tuple(dict.fromkeys(command for view in self._views for command in view.commands))
        self._interval_s = self._every_s = interval_s

    def over(self, line: Viewer, listener: Listener, stopped: threading.Event) -> None:
        """Ask until told to stop."""
        while not stopped.is_set():
            began_s = time.monotonic()
            replies = dict(zip(self._commands, line.ask(self._commands), strict=True))
            if stopped.is_set():
                return  # some answers were cut off
            self._pace(time.monotonic() - began_s)
            self._tell(replies, listener)
            stopped.wait(max(0.0, began_s + self._every_s - time.monotonic()))

    def _tell(self, replies: dict[str, Reply], listener: Listener) -> None:
        why = _failure(replies.values())
        found = sample(self._views, replies)
        if found is None:
            raise NoAnswerError(why or "what it answers cannot be read")
        is_slow = self._every_s > NOTICEABLE * self._interval_s
        listener.tell(self.device, Condition("slow" if is_slow else "live", why, round(self._every_s, 1)))
        counters = {name: counts for name, counts in found.counters.items() if name in WATCHED}
        listener.deliver(self.device, Sample(found.at_s, counters, found.boot))

    def _pace(self, took_s: float) -> None:
        """Ask less often what takes long to answer, at once; and more often again, bit by bit."""
        wanted_s = max(self._interval_s, took_s + min(took_s, LONGEST_REST_S))
        easing_s = self._every_s + EASE * (wanted_s - self._every_s)
        self._every_s = wanted_s if wanted_s > self._every_s else max(wanted_s, easing_s)


def _failure(replies: Iterable[Reply]) -> str:
    """Return why there is no answer, of the first that is none."""
    return next((reply.failure for reply in replies if reply.failure), "")

"""Polling: one connection to each device that stays, asked for what counts and nothing else."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from netkit.errors import NetkitError
from netkit.facts import Sample
from netkit.observe.assemble import sample
from netkit.platforms.view import Reply, View, Viewer
from netkit.watch.feed import Condition, Listener
from netkit.watch.reading import WATCHED

LONGEST_REST_S = 5.0
"""A device rests as long as it took to answer, up to this."""
EASE = 0.5
"""How quickly it is asked more often again once it answers quicker."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 15.0
NOTICEABLE = 1.2
GREETING = threading.BoundedSemaphore(32)
"""So many log in at a time: a login costs more than many answers."""
HANG_UP_S = 2.0


class NoAnswerError(Exception):
    """A device is connected, and tells no counters."""


class Poll:
    """The feed of one device. Whatever happens on it happens in its own thread."""

    def __init__(
        self, device: str, views: Sequence[View], connect: Callable[[], Viewer], interval_s: float = 1.0
    ) -> None:
        self.device = device
        self._views = tuple(view for view in views if view.counts and not view.is_costly)
        self._commands = tuple(dict.fromkeys(command for view in self._views for command in view.commands))
        self._connect, self._interval_s = connect, interval_s
        self._every_s, self._wait_s, self._why = interval_s, FIRST_WAIT_S, ""
        self._viewer: Viewer | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {device}", daemon=True)

    def start(self, listener: Listener) -> None:
        """Begin; returns at once."""
        self._listener = listener
        self._thread.start()

    def stop(self) -> None:
        """End, and hang up; what is being asked ends too."""
        self._stopped.set()
        viewer = self._viewer
        if viewer is not None:
            with suppress(Exception):
                viewer.close()

    def join(self, timeout_s: float = HANG_UP_S) -> None:
        """Wait until the thread has ended, but not for ever."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._polled()
            except NetkitError as error:
                self._gone("; ".join(problem.message.removeprefix(f"{self.device}: ") for problem in error.problems))
            except NoAnswerError as error:
                self._gone(str(error))
            except Exception as error:  # of one device; the others are none the worse for it
                self._gone(f"reading it failed: {type(error).__name__}: {error}")

    def _gone(self, why: str) -> None:
        if self._stopped.is_set():
            return
        self._listener.tell(self.device, Condition("gone", why, self._every_s, self._wait_s))
        self._stopped.wait(self._wait_s)
        self._wait_s = min(LONGEST_WAIT_S, self._wait_s * 2)

    def _polled(self) -> None:
        """Connect, and ask again and again."""
        self._viewer = self._connect()
        try:
            with GREETING:
                if self._stopped.is_set():
                    return
                self._listener.tell(self.device, Condition(every_s=self._every_s))
                self._viewer.open()
            while not self._stopped.is_set():
                began_s = time.monotonic()
                self._ask(self._viewer)
                if self._stopped.is_set():
                    return
                self._pace(time.monotonic() - began_s)
                self._stopped.wait(max(0.0, began_s + self._every_s - time.monotonic()))
        finally:
            with suppress(Exception):
                self._viewer.close()

    def _ask(self, viewer: Viewer) -> None:
        replies = dict(zip(self._commands, viewer.ask(self._commands), strict=True))
        if self._stopped.is_set():
            return  # some answers were cut off
        found = sample(self._views, replies)
        if found is None:
            raise NoAnswerError(_failure(replies.values()) or "what it answers cannot be read")
        counters = {name: counts for name, counts in found.counters.items() if name in WATCHED}
        self._listener.deliver(self.device, Sample(found.at_s, counters, found.boot))
        self._wait_s = FIRST_WAIT_S
        self._why = _failure(replies.values())

    def _pace(self, took_s: float) -> None:
        """Ask less often what takes long to answer, at once; and more often again, bit by bit."""
        wanted_s = max(self._interval_s, took_s + min(took_s, LONGEST_REST_S))
        easing_s = self._every_s + EASE * (wanted_s - self._every_s)
        self._every_s = wanted_s if wanted_s > self._every_s else max(wanted_s, easing_s)
        is_slow = self._every_s > NOTICEABLE * self._interval_s
        self._listener.tell(self.device, Condition("slow" if is_slow else "live", self._why, round(self._every_s, 1)))


def _failure(replies: Iterable[Reply]) -> str:
    """Return why there is no answer, of the first that is none."""
    return next((reply.failure for reply in replies if reply.failure), "")

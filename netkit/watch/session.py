"""A watch session: feeds that deliver to a board, live or from a record, and its clock."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from netkit.errors import NetkitError
from netkit.facts import Sample
from netkit.watch.board import Board
from netkit.watch.feed import Condition, Feed, Listener
from netkit.watch.record import Record, RecordedEvent

LONGEST_NAP_S = 0.2
HANGING_UP = 32


class Desk:
    """The listener of live feeds: passes events to the board, and to the record in the same order."""

    def __init__(self, board: Board, record: Record | None = None, clock: Callable[[], float] = time.time) -> None:
        self._board, self._record, self._clock = board, record, clock
        self._conditions: dict[str, Condition] = {}
        self._lock = threading.Lock()
        self.failure: NetkitError | None = None
        """Why the record is no longer written."""

    def deliver(self, device: str, sample: Sample) -> None:
        self._take(RecordedEvent(self._clock(), device, sample))

    def report(self, device: str, condition: Condition) -> None:
        """Pass on a condition that has changed."""
        with self._lock:
            if self._conditions.get(device) == condition:
                return
            self._conditions[device] = condition
        self._take(RecordedEvent(self._clock(), device, condition))

    def _take(self, event: RecordedEvent) -> None:
        with self._lock:
            take(self._board, event)
            if self._record is not None and self.failure is None:
                try:
                    self._record.add(event)
                except NetkitError as error:
                    self.failure = error


def take(board: Board, event: RecordedEvent) -> None:
    if isinstance(event.what, Sample):
        board.deliver(event.device, event.what, event.heard_s)
    else:
        board.report(event.device, event.what)


@contextmanager
def running(feeds: Sequence[Feed], listener: Listener) -> Iterator[None]:
    """Run feeds for the length of a block, and close all at once at its end."""
    try:
        for feed in feeds:
            feed.start(listener)
        yield
    finally:
        with ThreadPoolExecutor(HANGING_UP) as pool:
            for ended in [pool.submit(feed.stop) for feed in feeds]:
                with suppress(Exception):
                    ended.result()


class Replay:
    """A record played back, faster or slower; its clock is the time of recording."""

    def __init__(self, board: Board, events: Iterable[RecordedEvent], speed: float = 1.0) -> None:
        self._board, self._events, self._speed = board, iter(events), speed
        self._next = next(self._events, None)
        self.began_s = self._next.heard_s if self._next else 0.0
        self._started_s = time.monotonic()
        self._last_s = self.began_s

    @property
    def is_over(self) -> bool:
        """Whether all events were delivered."""
        return self._next is None

    def now_s(self) -> float:
        """Return the time in the record; it stops at the last event."""
        elapsed_s = (time.monotonic() - self._started_s) * self._speed
        return self._last_s if self.is_over else self.began_s + elapsed_s

    def advance(self, until_s: float) -> None:
        """Deliver the events up to a time in the record."""
        while self._next is not None and self._next.heard_s <= until_s:
            take(self._board, self._next)
            self._last_s = max(self._last_s, self._next.heard_s)
            self._next = next(self._events, None)

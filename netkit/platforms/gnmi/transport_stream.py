"""Samples of counters, put together from what a server streams piece by piece."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from netkit.facts import Sample
from netkit.platforms.gnmi.facts import count
from netkit.platforms.gnmi.question import Question
from netkit.platforms.gnmi.transport import Line, RefusedStreamError
from netkit.platforms.gnmi.update import Update
from netkit.platforms.view import Subject

QUIET_PART = 0.2
"""A sample is complete once nothing has come for this part of an interval."""
LONGEST_QUIET_S = 0.3
MISSED = 3
"""So many intervals without a word are one too many, however short the patience."""
REPEATED = 1.5
"""After so many intervals without a word a count has not changed, if the server tells the same of other places."""
LONGEST_WAIT = 2
"""For what led the sample before is waited so many intervals; then something else leads."""
MOST_WAITING = 10_000
"""Notifications that came and are not read yet."""
SHORTEST_S = 1.0
"""SONiC takes no shorter interval, and no switch counts much more often."""
Key = tuple[str, str]
"""The server's name of a count, and the place."""
Deliver = Callable[[Sample], None]
Piece = tuple[float, tuple[Update, ...]]
"""When something came, in seconds of the epoch, and what."""
Told = Callable[[float], Piece | None]
"""Patience → what came within it; None when nothing did."""


class Reader:
    """Reads a stream on a thread of its own, so that whoever waits for it can look at the clock meanwhile."""

    def __init__(self, line: Line, questions: Sequence[Question], interval_s: float) -> None:
        self._line, self._questions, self._interval_s = line, questions, interval_s
        self._come: queue.Queue[Piece | RefusedStreamError] = queue.Queue(MOST_WAITING)
        self._is_over = False
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._line.close()
        self._thread.join()

    def _read(self) -> None:
        try:
            for updates in self._line.stream(self._questions, self._interval_s):
                self._put((time.time(), updates))
        except RefusedStreamError as error:
            self._put(error)

    def _put(self, found: Piece | RefusedStreamError) -> None:
        """Hand over what came; a server that tells more than is read has to wait."""
        while not self._is_over:
            with suppress(queue.Full):
                self._come.put(found, timeout=LONGEST_QUIET_S)
                return

    def told(self, patience_s: float) -> Piece | None:
        """Return what comes next; None when nothing does in time. Raises RefusedStreamError when the stream ended."""
        try:
            found = self._come.get(timeout=patience_s)
        except queue.Empty:
            return None
        if isinstance(found, RefusedStreamError):
            raise found
        return found


class Samples:
    """Puts samples together from what a stream tells piece by piece."""

    def __init__(self, subject: Subject, names: Mapping[str, str], deliver: Deliver, interval_s: float) -> None:
        self._platform, self._deliver, self._interval_s = subject.platform, deliver, interval_s
        self._counting = count.Counting(subject.platform, names, subject.ports)
        self._quiet_s = min(interval_s * QUIET_PART, LONGEST_QUIET_S)
        self._found: dict[Key, int] = {}
        self._told_s: dict[Key, float] = {}
        self._fresh: set[Key] = set()
        self._leading: frozenset[Key] = frozenset()
        """What was told last in the sample before: when it comes anew, all others have come once too."""
        self._began_s: float | None = None
        self._last_s = 0.0
        self._delivered_s = 0.0

    def fill(self, told: Told, stop: threading.Event, patience_s: float) -> None:
        """Deliver samples until told to stop; raises RefusedStreamError once nothing came for too long."""
        patience_s = max(patience_s, MISSED * self._interval_s)
        heard_s = time.monotonic()
        while not stop.is_set():
            piece = told(self._quiet_s)
            if piece is not None:
                heard_s = time.monotonic()
                self._take(*piece)
            elif time.monotonic() - heard_s > patience_s:
                raise RefusedStreamError(f"it told nothing for {patience_s:g} s")
            else:
                self._complete()

    def _take(self, at_s: float, updates: tuple[Update, ...]) -> None:
        if self._began_s is not None and not 0 <= at_s - self._began_s <= self._interval_s:
            self._complete()  # of a server that never pauses, or before the clock was set back
        self._began_s = at_s if self._began_s is None else self._began_s
        self._last_s = at_s
        counts = dict(self._counting.counts(updates))
        self._found.update(counts)
        self._told_s.update(dict.fromkeys(counts, at_s))
        self._fresh.update(counts)

    def _complete(self) -> None:
        """Deliver what came; what comes soon after a sample was only late, and is part of the next one."""
        if self._began_s is None or not self._is_due():
            return
        counters = count.counters(self._platform, self._found, self._fresh | self._unchanged())
        self._began_s, self._delivered_s = None, self._last_s
        self._leading = frozenset(key for key in self._fresh if self._last_s - self._told_s[key] <= self._quiet_s)
        self._fresh.clear()
        if counters:
            self._deliver(Sample(self._last_s, counters))

    def _is_due(self) -> bool:
        """Whether a sample is whole. Each is led by the same subscription, so that all are as old in each of them."""
        past_s = self._last_s - self._delivered_s
        if 0 <= past_s < self._interval_s / 2:
            return False
        is_led = not self._leading or not self._leading.isdisjoint(self._fresh)
        return is_led or not 0 <= past_s < LONGEST_WAIT * self._interval_s

    def _unchanged(self) -> set[Key]:
        """Return what servers leave out as it is what it was: they tell the same of other places, and did until now."""
        leaves = {leaf for leaf, _ in self._fresh}
        least_s, most_s = REPEATED * self._interval_s, MISSED * self._interval_s
        return {
            key
            for key, told_s in self._told_s.items()
            if key[0] in leaves and least_s <= self._last_s - told_s < most_s
        }

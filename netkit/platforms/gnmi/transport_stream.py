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
MOST_WAITING = 10_000
"""Notifications that came and are not read yet."""
SHORTEST_S = 1.0
"""SONiC takes no shorter interval, and no switch counts much more often."""
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
        self._found: dict[tuple[str, str], int] = {}
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
        if self._began_s is not None and at_s - self._began_s > self._interval_s:  # a server that never pauses
            self._complete()
        self._began_s = self._began_s or at_s
        self._last_s = at_s
        self._found.update(self._counting.counts(updates))

    def _complete(self) -> None:
        """Deliver what came; what comes soon after a sample was only late, and is part of the next one."""
        if self._began_s is None or self._last_s - self._delivered_s < self._interval_s / 2:
            return
        counters = count.counters(self._platform, self._found)
        self._began_s, self._delivered_s = None, self._last_s
        if counters:
            self._deliver(Sample(self._last_s, counters))

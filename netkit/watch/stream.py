"""Streaming: a device tells what it counts by itself."""

import threading
from collections.abc import Callable
from typing import Protocol

from netkit.facts import Sample
from netkit.platforms.view import Subject
from netkit.watch.feed import Condition, Listener
from netkit.watch.reading import WATCHED

SHORTEST_S = 1.0
"""SONiC takes no shorter interval, and a condition says what is true."""


class Streamer(Protocol):
    """A connection over which a device can be listened to."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Hang up; every stream ends."""

    def stream(
        self, subject: Subject, interval_s: float, deliver: Callable[[Sample], None], stop: threading.Event
    ) -> None:
        """Deliver a sample of the counters each interval, until told to stop; AccessError when the stream ends."""


class Stream:
    """What is listened to of one device."""

    def __init__(self, subject: Subject, interval_s: float = 1.0) -> None:
        self.device, self._subject, self._interval_s = subject.device, subject, max(interval_s, SHORTEST_S)

    def over(self, line: Streamer, listener: Listener, stopped: threading.Event) -> None:
        """Listen until told to stop."""

        def deliver(sample: Sample) -> None:
            counters = {name: counts for name, counts in sample.counters.items() if name in WATCHED}
            listener.tell(self.device, Condition("live", every_s=self._interval_s))
            listener.deliver(self.device, Sample(sample.at_s, counters, sample.boot))

        line.stream(self._subject, self._interval_s, deliver, stopped)

"""Feeds of samples: connections kept open, counters polled or streamed."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from netkit.errors import NetkitError
from netkit.facts import Sample
from netkit.facts.counter import COUNTERS, parts
from netkit.facts.qos import Buffer
from netkit.judge.delta import Delta
from netkit.judge.peak import between
from netkit.observe.assemble import Readings, sample
from netkit.platforms.view import Reply, View, Viewer, ViewSubject


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a device's feed."""

    state: Literal["connecting", "live", "slow", "gone"] = "connecting"
    why: str = ""
    every_s: float = 1.0
    """The polling interval, adapted to how fast the device answers."""
    again_s: float = 0.0
    """If it is gone: seconds until the next attempt."""


class Listener(Protocol):
    """Receives samples and conditions, from the threads of the feeds."""

    def deliver(self, device: str, sample: Sample) -> None:
        """Receive counters of a device."""

    def report(self, device: str, condition: Condition) -> None:
        """Receive the condition of a device."""


class Feed(Protocol):
    """Delivers samples of one or more devices."""

    def start(self, listener: Listener) -> None:
        """Start threads, and return at once."""

    def stop(self) -> None:
        """Stop, and close the connections; pending requests end."""


FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 15.0
LOGINS = threading.BoundedSemaphore(32)
"""Limits logins at a time: a login costs more than many answers."""
HANG_UP_S = 2.0


LONGEST_QUEUE_S = 3.0
"""The longest wait for a login slot: devices before may hang."""


@contextmanager
def _login_slot() -> Iterator[None]:
    has_slot = LOGINS.acquire(timeout=LONGEST_QUEUE_S)
    try:
        yield
    finally:
        if has_slot:
            LOGINS.release()


class Opened(Protocol):
    """A connection."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Close; pending requests end."""


Line = TypeVar("Line", bound=Opened)
LineTaken_contra = TypeVar("LineTaken_contra", bound=Opened, contravariant=True)


class NoAnswerError(Exception):
    """A device is connected, but returns no counters."""


class Talk(Protocol[LineTaken_contra]):
    """The exchange over a connection: it delivers samples until it is stopped or fails."""

    device: str

    def over(self, line: LineTaken_contra, listener: Listener, stopped: threading.Event) -> None:
        """Bring samples of the device."""


class ReconnectingFeed(Generic[Line]):
    """The feed of one device, in its own thread; it reconnects after every failure."""

    def __init__(self, talk: Talk[Line], connect: Callable[[], Line]) -> None:
        self._talk, self._connect = talk, connect
        self._wait_s = FIRST_WAIT_S
        self._line: Line | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, listener: Listener) -> None:
        name = f"watch {self._talk.device}"
        self._thread = threading.Thread(target=self._run, args=(listener,), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and close the connection; a pending request ends."""
        self._stopped.set()
        if self._line is not None:
            with suppress(Exception):
                self._line.close()

    def join(self, timeout_s: float = HANG_UP_S) -> None:
        """Wait for the thread to end, but not forever."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self, listener: Listener) -> None:
        device = self._talk.device
        while not self._stopped.is_set():
            try:
                self._once(listener)
            except NetkitError as error:
                why = "; ".join(problem.message.removeprefix(f"{device}: ") for problem in error.problems)
                self._lost(listener, why)
            except NoAnswerError as error:
                self._lost(listener, str(error))
            except Exception as error:  # must not affect other devices
                self._lost(listener, f"reading it failed: {type(error).__name__}: {error}")

    def _lost(self, listener: Listener, why: str) -> None:
        if self._stopped.is_set():
            return
        listener.report(self._talk.device, Condition("gone", why, again_s=self._wait_s))
        self._stopped.wait(self._wait_s)
        self._wait_s = min(LONGEST_WAIT_S, self._wait_s * 2)

    def _once(self, listener: Listener) -> None:
        """Connect, and talk as long as the connection lasts."""

        def reset_wait() -> None:
            self._wait_s = FIRST_WAIT_S

        line = self._line = self._connect()
        try:
            listener.report(self._talk.device, Condition())
            with _login_slot():
                if self._stopped.is_set():
                    return
                line.open()
            self._talk.over(line, _Delivered(listener, reset_wait), self._stopped)
        finally:
            with suppress(Exception):
                line.close()


class _Delivered:
    """A listener that also calls a function for each sample."""

    def __init__(self, listener: Listener, on_sample: Callable[[], None]) -> None:
        self.report = listener.report
        self._listener, self._on_sample = listener, on_sample

    def deliver(self, device: str, sample: Sample) -> None:
        self._on_sample()
        self._listener.deliver(device, sample)


Rates = Mapping[str, Mapping[str, Delta]]
"""Counter → place → what was added."""
PER_PORT = (
    *("rx_bytes", "tx_bytes", "rx_drops", "tx_drops", "rx_errors", "tx_errors", "link_downs", "carrier_changes"),
    *("port_rx_pause", "port_tx_pause", "port_buffer_drops", "ecn_marked", "ecn_received", "fec_uncorrectable"),
    *("icrc_errors", "packet_seq_err", "local_ack_timeout", "out_of_buffer"),
)
PER_PRIORITY = (
    *("rx_pause", "tx_pause", "rx_pause_us", "tx_pause_us", "buffer_drops", "watchdog_drops", "watchdog_detected"),
    *("queue_tx_bytes", "queue_drops", "queue_ecn_marked"),
)
WATCHED = frozenset((*PER_PORT, *PER_PRIORITY))
"""The counters to show; a record holds no others."""
DAMAGE = ("rx_errors", "tx_errors", "fec_uncorrectable", "icrc_errors", "packet_seq_err", "local_ack_timeout")


class PortReading(NamedTuple):
    """A port over one interval."""

    rx_bps: float | None = None
    tx_bps: float | None = None
    pause_in: float | None = None
    """The fraction of time it was paused by the other end; the worst of its lossless priorities."""
    pause_out: float | None = None
    """The fraction of time it paused the other end."""
    pauses_in: float | None = None
    """Pause frames received per second."""
    pauses_out: float | None = None
    marks: float | None = None
    """Packets marked with CE per second; at a NIC, marked packets received."""
    loss: float | None = None
    """Packets lost in the lossless class per second."""
    drops: float | None = None
    """Other packets dropped per second."""
    errors: float | None = None
    """Packets damaged, uncorrectable or retransmitted per second."""
    flaps: float | None = None
    """Link-down events per second."""
    queue_bytes: float | None = None
    """The peak length of a lossless queue since the last sample."""
    queue_share: float | None = None
    """The same as a fraction of the length at which ECN marking starts."""
    headroom_bytes: float | None = None
    """The peak headroom that a lossless priority used since the last sample."""
    headroom_share: float | None = None
    """The same as a fraction of that headroom."""


def by_port(rates: Rates) -> Mapping[str, Rates]:
    found: dict[str, dict[str, dict[str, Delta]]] = {}
    for name, places in rates.items():
        is_numbered = COUNTERS[name].scope != "port"
        for place, delta in places.items():
            port = _parts(place)[0] if is_numbered else place
            found.setdefault(port, {}).setdefault(name, {})[place] = delta
    return found


@dataclass(frozen=True, slots=True)
class Peaks:
    """The peak length of a queue between two samples, and the peak use of its headroom."""

    queue_bytes: int | None = None
    headroom_bytes: int | None = None


NO_PEAKS = Peaks()


def peaks(before: Mapping[str, Buffer], now: Mapping[str, Buffer]) -> Mapping[str, Peaks]:
    """The peaks at each place between two samples.

    If the watermark of a queue did not change, its peak is the longer of the lengths at both samples; of headroom only
    the watermark is known.
    """
    return {place: _peaks(before.get(place), level) for place, level in now.items()}


def peaks_by_port(found: Mapping[str, Peaks]) -> Mapping[str, Mapping[str, Peaks]]:
    by_ports: dict[str, dict[str, Peaks]] = {}
    for at, level in found.items():
        by_ports.setdefault(_parts(at)[0], {})[at] = level
    return by_ports


def _peaks(first: Buffer | None, last: Buffer) -> Peaks:
    queue, headroom = (between(first, last, name) for name in ("peak_bytes", "headroom_peak_bytes"))
    held = None if queue is None else queue.most_at_looks if queue.within_bytes is None else queue.within_bytes
    return Peaks(held, None if headroom is None else headroom.within_bytes)


def with_peaks(
    reading: PortReading, found: Iterable[Peaks], ecn_min_bytes: int | None, headroom_bytes: int | None
) -> PortReading:
    """Add the highest of some peaks to a reading, and their share of the ECN minimum and of the headroom."""
    found = tuple(found)
    queue = max((one.queue_bytes for one in found if one.queue_bytes is not None), default=None)
    headroom = max((one.headroom_bytes for one in found if one.headroom_bytes is not None), default=None)
    return reading._replace(
        queue_bytes=queue,
        queue_share=queue / ecn_min_bytes if queue is not None and ecn_min_bytes else None,
        headroom_bytes=headroom,
        headroom_share=headroom / headroom_bytes if headroom is not None and headroom_bytes else None,
    )


def reading(rates: Rates, lossless: frozenset[int]) -> PortReading:
    """Compute the reading of one port from its rates."""

    def total(*names: str, wanted: Callable[[str], bool] = lambda _place: True) -> float | None:
        return _sum(delta for name in names for place, delta in rates.get(name, {}).items() if wanted(place))

    def is_lossless(place: str) -> bool:
        return _parts(place)[1] in lossless

    return PortReading(
        rx_bps=_times(total("rx_bytes"), 8),
        tx_bps=_times(total("tx_bytes"), 8),
        pause_in=_worst(rates.get("rx_pause_us", {}).values()),
        pause_out=_worst(rates.get("tx_pause_us", {}).values()),
        pauses_in=_first(total("rx_pause"), total("port_rx_pause")),
        pauses_out=_first(total("tx_pause"), total("port_tx_pause")),
        marks=_first(total("ecn_marked"), total("queue_ecn_marked"), total("ecn_received")),
        loss=total("buffer_drops", "queue_drops", "watchdog_drops", wanted=is_lossless),
        drops=total("rx_drops", "tx_drops", "port_buffer_drops", "out_of_buffer"),
        errors=total(*DAMAGE),
        flaps=_first(total("link_downs"), total("carrier_changes")),
    )


@lru_cache(maxsize=1 << 17)
def _parts(place: str) -> tuple[str, int]:
    return parts(place)


def _sum(deltas: Iterable[Delta]) -> float | None:
    known = [delta.per_s for delta in deltas if delta.is_known]
    return sum(known) or 0.0 if known else None  # one zero for all ports, not one for each


def _worst(deltas: Iterable[Delta]) -> float | None:
    known = [delta.per_s for delta in deltas if delta.is_known]
    return min(1.0, max(known) / 1e6) or 0.0 if known else None


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor or 0.0


LONGEST_REST_S = 5.0
"""A device rests for as long as it took to answer, up to this."""
EASE = 0.5
"""How fast the polling interval shrinks again once a device answers faster."""
NOTICEABLE = 1.2


class Poll:
    """Polls one device with its cheap views that count."""

    def __init__(self, device: str, views: Sequence[View], interval_s: float = 1.0) -> None:
        self.device = device
        counting = [view for view in views if view.counts and not view.is_costly]
        self._commands = tuple(dict.fromkeys(command for view in counting for command in view.commands))
        buffers = [view for view in views if "buffers" in view.yields and set(self._commands).issuperset(view.commands)]
        self._views = (*counting, *(view for view in buffers if not view.counts))
        self._interval_s = self._every_s = interval_s

    def over(self, line: Viewer, listener: Listener, stopped: threading.Event) -> None:
        while not stopped.is_set():
            began_s = time.monotonic()
            replies = dict(zip(self._commands, line.ask(self._commands), strict=True))
            if stopped.is_set():
                return  # some answers were cut off
            self._pace(time.monotonic() - began_s)
            self._deliver(replies, listener)
            stopped.wait(max(0.0, began_s + self._every_s - time.monotonic()))

    def _deliver(self, replies: dict[str, Reply], listener: Listener) -> None:
        why = next((reply.failure for reply in replies.values() if reply.failure), "")
        found = sample(self._views, replies, Readings())
        if found is None:
            raise NoAnswerError(why or "its answers cannot be parsed")
        is_slow = self._every_s > NOTICEABLE * self._interval_s
        listener.report(self.device, Condition("slow" if is_slow else "live", why, round(self._every_s, 1)))
        counters = {name: counts for name, counts in found.counters.items() if name in WATCHED}
        listener.deliver(self.device, Sample(found.at_s, counters, found.boot, found.buffers))

    def _pace(self, took_s: float) -> None:
        """Adapt the interval: longer at once when answers take long, shorter step by step."""
        wanted_s = max(self._interval_s, took_s + min(took_s, LONGEST_REST_S))
        easing_s = self._every_s + EASE * (wanted_s - self._every_s)
        self._every_s = wanted_s if wanted_s > self._every_s else max(wanted_s, easing_s)


SHORTEST_S = 1.0
"""SONiC accepts no shorter interval."""


class Streamer(Protocol):
    """A connection that streams."""

    def open(self) -> None:
        """Connect."""

    def close(self) -> None:
        """Close; every stream ends."""

    def stream(
        self, subject: ViewSubject, interval_s: float, deliver: Callable[[Sample], None], stop: threading.Event
    ) -> None:
        """Deliver a sample each interval until stopped; AccessError when the stream ends."""


class StreamFeed:
    """Streams the counters of one device."""

    def __init__(self, subject: ViewSubject, interval_s: float = 1.0) -> None:
        self.device, self._subject, self._interval_s = subject.device, subject, max(interval_s, SHORTEST_S)

    def over(self, line: Streamer, listener: Listener, stopped: threading.Event) -> None:
        def deliver(sample: Sample) -> None:
            counters = {name: counts for name, counts in sample.counters.items() if name in WATCHED}
            listener.report(self.device, Condition("live", every_s=self._interval_s))
            listener.deliver(self.device, Sample(sample.at_s, counters, sample.boot))

        line.stream(self._subject, self._interval_s, deliver, stopped)

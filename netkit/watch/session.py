"""A watch session: feeds that deliver to a board, live or from a record, and its clock."""

import gzip
import json
import math
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from netkit.errors import NetkitError, Problem
from netkit.facts import COUNTERS, Sample
from netkit.facts.counter import parts
from netkit.facts.qos import Buffer
from netkit.watch.board import Board, Outline
from netkit.watch.feed import WATCHED, Condition, Feed, Listener
from netkit.watch.port_severity import PauseLimits, Wire

FORMAT = 1
CHUNK_BYTES = 1 << 16
LONGEST_LINE_BYTES = 64 << 20
GZIP = 16 + zlib.MAX_WBITS
MAGIC = b"\x1f\x8b"
MOST = 1 << 64
LATEST_S = 253402214400.0
"""The last day of the year 9999."""
STATES = frozenset({"connecting", "live", "slow", "gone"})
LEVELS = ("used_bytes", "peak_bytes", "headroom_peak_bytes")
"""What a record holds of a buffer, in this order."""
BAD = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""What parsing anything but a record may raise."""


class RecordError(NetkitError):
    """A record cannot be written or read."""


class RecordedEvent(NamedTuple):
    """A sample or a condition, and when it was received."""

    heard_s: float
    device: str
    what: Sample | Condition


class Record:
    """A record that is being written."""

    def __init__(self, path: Path, outline: Outline) -> None:
        self._path = path
        try:
            self._file: IO[bytes] = path.open("xb")  # never overwrites
        except OSError as error:
            raise self._error(error) from None
        self._squeezed = gzip.GzipFile("", "ab", fileobj=self._file, mtime=0) if path.suffix == ".gz" else None
        self._write({"netkit_watch": FORMAT, **asdict(outline), "wires": [list(wire) for wire in outline.wires]})

    def add(self, event: RecordedEvent) -> None:
        """Write an event and flush it."""
        head = {"heard_s": round(event.heard_s, 6), "device": event.device}
        if isinstance(event.what, Condition):
            self._write(head | {"condition": asdict(event.what)})
            return
        sample = event.what
        boot = {"boot": sample.boot} if sample.boot else {}
        levels = {place: [getattr(level, name) for name in LEVELS] for place, level in sample.buffers.items()}
        buffers = {"buffers": levels} if levels else {}
        self._write(head | {"at_s": round(sample.at_s, 6), **boot, "counters": sample.counters, **buffers})

    def _write(self, line: dict[str, Any]) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            stream = cast("BufferedIOBase", self._squeezed) if self._squeezed else self._file
            stream.write(data)
            stream.flush()
            self._file.flush()
        except OSError as error:
            raise self._error(error) from None

    def close(self) -> None:
        try:
            if self._squeezed:
                self._squeezed.close()
            self._file.close()
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> RecordError:
        file = str(self._path)
        if isinstance(error, FileExistsError):
            return RecordError(Problem("exists already", "records are not overwritten: name another file", file=file))
        return RecordError(Problem(f"cannot be written: {error.strerror}", "check its folder and the disk", file=file))


def read(path: Path) -> tuple[Outline, Iterator[RecordedEvent]]:
    """What was watched, and an iterator over the events."""
    try:
        lines = _lines(path, path.open("rb"))
        first = next(lines, b"")
    except OSError as error:
        raise RecordError(Problem(f"cannot be read: {error.strerror}", file=str(path))) from None
    try:
        return _outline(json.loads(first), path), _events(lines, path)
    except BAD:
        what = "is not a record of netkit watch"
        raise RecordError(Problem(what, "make one with netkit watch --record FILE", file=str(path))) from None


def _lines(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    with file:
        for chunk in _chunks(path, file):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
            if len(rest) > LONGEST_LINE_BYTES:
                raise RecordError(Problem("has a line that is too long", file=str(path)))


def _chunks(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    first = file.read(CHUNK_BYTES)
    squeezed = zlib.decompressobj(GZIP) if first[:2] == MAGIC else None
    while first:
        try:
            yield squeezed.decompress(first) if squeezed else first
        except zlib.error:
            raise RecordError(Problem("is damaged: the rest cannot be decompressed", file=str(path))) from None
        first = file.read(CHUNK_BYTES)


def _outline(head: Any, path: Path) -> Outline:
    if head["netkit_watch"] != FORMAT:
        what = f"was written in format {head['netkit_watch']!r}; this netkit reads {FORMAT}"
        raise RecordError(Problem(what, "record again", file=str(path)))
    return Outline(
        str(head["fabric"]),
        tuple(_wire(wire) for wire in head["wires"]),
        tuple(int(number) for number in head["lossless"]),
        PauseLimits(**{name: _amount(value) for name, value in head["limits"].items()}),
        _amount(head["interval_s"]),
        str(head["lab"]),
    )


def _wire(fields: Any) -> Wire:
    device, port, kind, group, speed_gbps, peer, peer_port, *limits = fields
    ecn_min_bytes, headroom_bytes = limits or (None, None)  # records of older releases have none
    return Wire(
        *(str(device), str(port), kind, str(group), _amount(speed_gbps), str(peer), str(peer_port)),
        *(_size(ecn_min_bytes), _size(headroom_bytes)),
    )


def _events(lines: Iterator[bytes], path: Path) -> Iterator[RecordedEvent]:
    for number, line in enumerate(lines, 2):
        try:
            yield _event(json.loads(line))
        except BAD:
            raise RecordError(Problem("cannot be read", file=str(path), line=number)) from None


def _event(entry: Any) -> RecordedEvent:
    heard_s, device = _amount(entry["heard_s"]), str(entry["device"])
    if "condition" in entry:
        return RecordedEvent(heard_s, device, _condition(**entry["condition"]))
    counters = {
        name: {_place(name, place): _count(count) for place, count in places.items()}
        for name, places in entry["counters"].items()
        if name in WATCHED
    }
    buffers = {
        "/".join(map(str, parts(place))): Buffer(
            **{name: _size(size) for name, size in zip(LEVELS, sizes, strict=True)}
        )
        for place, sizes in entry.get("buffers", {}).items()
    }
    return RecordedEvent(heard_s, device, Sample(_amount(entry["at_s"]), counters, str(entry.get("boot", "")), buffers))


def _condition(state: Any, why: Any, every_s: Any, again_s: Any) -> Condition:
    if state not in STATES:
        raise ValueError(state)
    return Condition(state, str(why), _amount(every_s), _amount(again_s))


def _amount(value: Any) -> float:
    """Parse a time or another finite amount."""
    found = float(value)
    if not (math.isfinite(found) and 0 <= found < LATEST_S):
        raise ValueError(value)
    return found


def _count(value: Any) -> int:
    found = int(value)
    if not 0 <= found < MOST:
        raise ValueError(value)
    return found


def _size(value: Any) -> int | None:
    return None if value is None else _count(value)


def _place(name: str, place: str) -> str:
    """Validate a place; that of a priority or a queue ends in its number."""
    if COUNTERS[name].scope != "port":
        parts(place)
    return place


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
        """The time in the record; it stops at the last event."""
        elapsed_s = (time.monotonic() - self._started_s) * self._speed
        return self._last_s if self.is_over else self.began_s + elapsed_s

    def advance(self, until_s: float) -> None:
        """Deliver the events up to a time in the record."""
        while self._next is not None and self._next.heard_s <= until_s:
            take(self._board, self._next)
            self._last_s = max(self._last_s, self._next.heard_s)
            self._next = next(self._events, None)

"""Read devices concurrently, with a deadline for each."""

import importlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from netkit.deploy.fan_out import each, threads
from netkit.errors import NetkitError
from netkit.facts import Absent, Facts, Observation, Sample, Snapshot
from netkit.observe.assemble import Readings, facts, instead, sample
from netkit.platforms import registry
from netkit.platforms.view import Reply, View, Viewer, ViewSubject

HANG_UP_S = 2.0
"""Time limit for closing all connections; the rest is abandoned."""


@dataclass(frozen=True, slots=True)
class Config:
    """The running configuration of a device; never part of a snapshot, because it may hold secrets."""

    files: Mapping[str, str | None]
    version: str


@dataclass(frozen=True, slots=True)
class Target:
    """A device to read."""

    device: str
    platform: str
    views: tuple[View, ...]
    has_config: bool = True
    """Whether its configuration can be read over the same connection."""


@dataclass(slots=True)
class DeviceRead:
    """A device while it is read."""

    target: Target
    viewer: Viewer
    views: tuple[View, ...]
    """The target's views, with fallbacks in place of those that yield nothing."""
    replies: dict[str, Reply] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    samples: list[Sample] = field(default_factory=list)
    config: Config | None = None
    busy_s: float = 0.0
    began_s: float | None = None
    is_late: bool = False
    closing: threading.Thread | None = None
    """The thread that disconnects; it may never end."""

    def hang_up(self) -> None:
        """Start to disconnect, unless that is in progress."""

        def close() -> None:
            with suppress(Exception):  # the replies are complete
                self.viewer.close()

        if self.closing is None or not self.closing.is_alive():
            self.closing = threading.Thread(target=close, name=f"hang up {self.target.device}", daemon=True)
            self.closing.start()


def hang_up(reads: Sequence[DeviceRead]) -> None:
    """Disconnect from all devices concurrently, and wait briefly for the end."""
    for read in reads:
        read.hang_up()
    ends_s = time.monotonic() + HANG_UP_S
    for read in reads:
        if read.closing is not None:
            read.closing.join(max(0.0, ends_s - time.monotonic()))


Connect = Callable[[str], Viewer]
NATIVE = "native"
"""The platform's own source of facts; others are separate packages."""
WATCH_S = 0.2
STEP_S = 0.5
"""A clock that moves more than this within a window was set, not slewed."""


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How to read devices."""

    window_s: float = 0.0
    """Seconds between two samples of the counters; 0 takes one."""
    parallel: int = 32
    deadline_s: float = 60.0
    """Time limit for all replies of a device, in addition to the window."""
    has_config: bool = False
    """Whether to read the running configuration too."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A snapshot, and the running configurations if requested."""

    snapshot: Snapshot
    configs: Mapping[str, Config]


def target(platform: str, subject: ViewSubject, *, source: str = NATIVE, is_light: bool = False) -> Target:
    """Select the views of a device from its platform, or from another source of facts."""
    is_native = source == NATIVE
    module = (
        registry.part(platform, "facts") if is_native else importlib.import_module(f"netkit.platforms.{source}.facts")
    )
    found: tuple[View, ...] = module.views(subject)
    asked = [view for view in found if not (is_light and view.is_costly)]
    costly = [view for view in asked if view.is_costly and not view.fallback]
    views = (_on_ports(view, subject) for view in asked if not any(map(view.is_within, costly)))
    return Target(subject.device, platform, tuple(views), has_config=is_native)


def _on_ports(view: View, subject: ViewSubject) -> View:
    """A view whose sessions with neighbours by address are those of their ports."""
    if not subject.neighbors or "sessions" not in view.yields:
        return view
    fallback = view.fallback and _on_ports(view.fallback, subject)
    return replace(view, parse=partial(_by_port, view.parse, dict(subject.neighbors)), fallback=fallback)


def _by_port(parse: Callable[..., Facts], ports: Mapping[str, str], *answers: str) -> Facts:
    found = parse(*answers)
    if isinstance(found.sessions, Absent):
        return found
    return replace(found, sessions={ports.get(name, name): one for name, one in found.sessions.items()})


def collect(
    fabric: str,
    targets: Sequence[Target],
    connect: Connect,
    options: CollectOptions,
    count: Callable[[], None] = lambda: None,
) -> Collected:
    """Read each device. Counters are read at both ends of the window, on all devices at the same time."""
    with _Collection(targets, connect, options, count) as collection:
        if options.window_s > 0:
            collection.all(collection.first_sample)
            collection.wait()
            collection.all(collection.last_sample)  # on every device before anything that sends packets
        collection.all(collection.rest)
        return Collected(Snapshot(fabric, time.time(), collection.observations()), collection.configs())


class _Collection:
    """Devices being read. Each connects once; all connections end with the context."""

    def __init__(
        self, targets: Sequence[Target], connect: Connect, options: CollectOptions, count: Callable[[], None]
    ) -> None:
        self._targets = {target.device: target for target in targets}
        self._connect, self._options, self._count = connect, options, count
        self._reads: dict[str, DeviceRead] = {}
        self._failures: dict[str, str] = {}
        self._window_began_s = time.monotonic()
        self._is_ended = False
        """Whether it has ended: no new connections are made."""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_ended, reads = True, tuple(self._reads.values())
        hang_up(reads)

    def all(self, step: Callable[[DeviceRead], None]) -> None:
        """Run a step on every device that has not failed, while this thread watches the deadlines."""
        names = [name for name in self._targets if name not in self._failures]
        failure: list[BaseException] = []

        def work() -> None:
            try:
                each(threads(self._options.parallel), names, lambda name: self._one(name, step))
            except BaseException as error:
                failure.append(error)

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        try:
            while worker.is_alive():
                worker.join(WATCH_S)
                self._hang_up_late(time.monotonic())
        except KeyboardInterrupt:
            with self._lock:
                self._is_ended = True
            self._hang_up_late(float("inf"))
            raise
        if failure:
            raise failure[0]

    def _hang_up_late(self, now_s: float) -> None:
        with self._lock:
            active = [read for read in self._reads.values() if read.began_s is not None and not read.is_late]
        for read in active:
            if read.busy_s + now_s - (read.began_s or now_s) > self._options.deadline_s:
                read.is_late = True
                read.hang_up()

    def _one(self, name: str, step: Callable[[DeviceRead], None]) -> None:
        try:
            read = self._opened(name)
            read.began_s = time.monotonic()
            step(read)
            if read.is_late:  # some viewers return partial replies when they are closed
                self._failed(name, "")
        except NetkitError as error:
            self._failed(name, "; ".join(str(problem).removeprefix(f"{name}: ") for problem in error.problems))
        except Exception as error:  # must not affect other devices
            self._failed(name, f"reading it failed: {type(error).__name__}: {error}")
        finally:
            known = self._reads.get(name)
            if known is not None and known.began_s is not None:
                known.busy_s += time.monotonic() - known.began_s
                known.began_s = None

    def _failed(self, name: str, reason: str) -> None:
        read = self._reads.get(name)
        is_late = read is not None and read.is_late
        self._failures[name] = f"no answer within {self._options.deadline_s:g} s" if is_late else reason

    def _opened(self, name: str) -> DeviceRead:
        read = self._reads.get(name)
        if read is not None:
            return read
        target = self._targets[name]
        read = DeviceRead(target, self._connect(name), target.views)
        with self._lock:
            if self._is_ended:
                raise InterruptedError
            self._reads[name] = read
            read.began_s = time.monotonic()
        read.viewer.open()
        return read

    def first_sample(self, read: DeviceRead) -> None:
        """Read the counters at the start of the window."""
        self._sample(read)
        self._count()

    def _sample(self, read: DeviceRead, *, and_the_rest: bool = False) -> None:
        """Read the counters, optionally with everything else in the same request."""
        counting = [view for view in read.views if view.counts]
        _ask(read, _commands((*counting, *read.views) if and_the_rest else counting))
        found = sample(read.views, read.replies, read.readings)
        if found is not None:
            read.samples.append(found)

    def wait(self) -> None:
        """Wait for the end of the window. If the clock is set meanwhile, earlier samples move along."""
        ahead_s = _ahead_s()
        time.sleep(self._options.window_s)
        moved_s = _ahead_s() - ahead_s
        if abs(moved_s) > STEP_S:
            for read in self._reads.values():
                read.samples = [replace(one, at_s=one.at_s + moved_s) for one in read.samples]

    def last_sample(self, read: DeviceRead) -> None:
        """Read the counters at the end of the window."""
        self._sample(read)

    def rest(self, read: DeviceRead) -> None:
        """Read everything else, including the counters if there was no window."""
        if not self._options.window_s:
            self._sample(read, and_the_rest=True)
        _ask(read, _unanswered(read, read.views))
        if self._options.has_config and read.target.has_config:
            read.config = Config(read.viewer.running_files(), read.viewer.os_version())
        self._count()

    def configs(self) -> Mapping[str, Config]:
        return {name: read.config for name, read in self._reads.items() if read.config is not None}

    def observations(self) -> Mapping[str, Observation]:
        """Build the observations; a device that failed has what was read until then."""
        found = {}
        for name, one in self._targets.items():
            read, failure = self._reads.get(name), self._failures.get(name, "")
            if read is None or (failure and not read.replies):
                found[name] = Observation(name, one.platform, failure=failure or "was not read")
                continue
            known = facts(read.views, read.replies, read.readings)
            found[name] = Observation(name, one.platform, known, tuple(read.samples), failure, round(read.busy_s, 3))
        return found


def _ahead_s() -> float:
    """How far the clock is ahead of the monotonic clock."""
    return time.time() - time.monotonic()


def _commands(views: Sequence[View]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(command for view in views for command in view.commands))


def _ask(read: DeviceRead, commands: Sequence[str]) -> None:
    """Run commands, then those of fallbacks for views that yield nothing."""
    if not commands:
        return
    read.replies.update(zip(commands, read.viewer.ask(commands), strict=True))
    asked, read.views = read.views, instead(read.views, read.replies, read.readings)
    fresh = [view for view, before in zip(read.views, asked, strict=True) if view is not before]
    _ask(read, _unanswered(read, fresh))


def _unanswered(read: DeviceRead, views: Sequence[View]) -> tuple[str, ...]:
    return tuple(command for command in _commands(views) if command not in read.replies)

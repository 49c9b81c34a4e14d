"""One device while it is looked at, and how it is hung up on."""

import importlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Self

from netkit.deploy.fan_out import each, threads
from netkit.errors import NetkitError
from netkit.facts import Observation, Sample, Snapshot
from netkit.observe.assemble import Readings, facts, instead, sample
from netkit.platforms import registry
from netkit.platforms.view import Reply, View, Viewer, ViewSubject

HANG_UP_S = 2.0
"""How long is waited at most for all connections to end; one that does not end by then is left to itself."""


@dataclass(frozen=True, slots=True)
class Config:
    """The running configuration of a device; never part of a snapshot, for it may hold secrets."""

    files: Mapping[str, str | None]
    version: str


@dataclass(frozen=True, slots=True)
class Target:
    """A device to look at."""

    device: str
    platform: str
    views: tuple[View, ...]
    has_config: bool = True
    """Whether its configuration can be read on the way."""


@dataclass(slots=True)
class DeviceRead:
    """One device while it is looked at."""

    target: Target
    viewer: Viewer
    views: tuple[View, ...]
    """Those of the target, and what is asked instead where one tells nothing."""
    replies: dict[str, Reply] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)
    samples: list[Sample] = field(default_factory=list)
    config: Config | None = None
    busy_s: float = 0.0
    began_s: float | None = None
    is_late: bool = False
    closing: threading.Thread | None = None
    """What hangs up. It may never end, so that nobody waits for it for long."""

    def hang_up(self) -> None:
        """Begin to hang up, unless that is under way."""
        if self.closing is None or not self.closing.is_alive():
            self.closing = threading.Thread(target=self._close, name=f"hang up {self.target.device}", daemon=True)
            self.closing.start()

    def _close(self) -> None:
        with suppress(Exception):  # what was read was read
            self.viewer.close()


def hang_up(looks: Sequence[DeviceRead]) -> None:
    """Hang up on all at once, and wait a moment until that is done."""
    for look in looks:
        look.hang_up()
    ends_s = time.monotonic() + HANG_UP_S
    for look in looks:
        if look.closing is not None:
            look.closing.join(max(0.0, ends_s - time.monotonic()))


Connect = Callable[[str], Viewer]
NATIVE = "native"
"""The source of facts that is a platform's own; others are packages beside the platforms."""
WATCH_S = 0.2
STEP_S = 0.5
"""More than a clock that is only kept right goes ahead or back within a window: somebody set it."""


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How to look."""

    window_s: float = 0.0
    """Seconds between two samples of the counters; 0 takes one."""
    parallel: int = 32
    deadline_s: float = 60.0
    """How long all answers of a device may take, beside the window."""
    has_config: bool = False
    """Whether to read the running configuration too."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What was seen, and the running configurations if they were asked for."""

    snapshot: Snapshot
    configs: Mapping[str, Config]


def target(platform: str, subject: ViewSubject, *, source: str = NATIVE, is_light: bool = False) -> Target:
    """Return a device with the views of its platform, or of another source of facts."""
    views_of = f"netkit.platforms.{source}.facts.views"
    module = registry.part(platform, "facts.views") if source == NATIVE else importlib.import_module(views_of)
    found: tuple[View, ...] = module.views(subject)
    views = tuple(view for view in found if not (is_light and view.is_costly))
    return Target(subject.device, platform, views, has_config=source == NATIVE)


def collect(
    fabric: str,
    targets: Sequence[Target],
    connect: Connect,
    options: CollectOptions,
    count: Callable[[], None] = lambda: None,
) -> Collected:
    """Return what was seen of each device. Counters are read at both ends of the window, all devices at one time."""
    with _Collection(targets, connect, options, count) as collection:
        if options.window_s > 0:
            collection.all(collection.first_sample)
            collection.wait()
            collection.all(collection.last_sample)  # before anything that sends packets, on every device
        collection.all(collection.rest)
        return Collected(Snapshot(fabric, time.time(), collection.observations()), collection.configs())


class _Collection:
    """Devices being read. Each connects once, and all connections end with this."""

    def __init__(
        self, targets: Sequence[Target], connect: Connect, options: CollectOptions, count: Callable[[], None]
    ) -> None:
        self._targets = {target.device: target for target in targets}
        self._connect, self._options, self._count = connect, options, count
        self._looks: dict[str, DeviceRead] = {}
        self._failures: dict[str, str] = {}
        self._window_began_s = time.monotonic()
        self._is_ended = False
        """Whether nobody waits for it any more: no device is connected to after that."""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_ended, looks = True, tuple(self._looks.values())
        hang_up(looks)

    def all(self, step: Callable[[DeviceRead], None]) -> None:
        """Do a step on every device that can still be read; this thread keeps the time meanwhile."""
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
            late = [look for look in self._looks.values() if self._is_over(look, now_s)]
        for look in late:
            look.is_late = True
            look.hang_up()

    def _is_over(self, look: DeviceRead, now_s: float) -> bool:
        if look.began_s is None or look.is_late:
            return False
        return look.busy_s + now_s - look.began_s > self._options.deadline_s

    def _one(self, name: str, step: Callable[[DeviceRead], None]) -> None:
        try:
            look = self._opened(name)
            look.began_s = time.monotonic()
            step(look)
            if look.is_late:  # some viewers keep what they have when they are hung up on
                self._failed(name, "")
        except NetkitError as error:
            self._failed(name, "; ".join(str(problem).removeprefix(f"{name}: ") for problem in error.problems))
        except Exception as error:  # of one device; the others are none the worse for it
            self._failed(name, f"reading it failed: {type(error).__name__}: {error}")
        finally:
            self._rest(name)

    def _rest(self, name: str) -> None:
        look = self._looks.get(name)
        if look is not None and look.began_s is not None:
            look.busy_s += time.monotonic() - look.began_s
            look.began_s = None

    def _failed(self, name: str, reason: str) -> None:
        look = self._looks.get(name)
        is_late = look is not None and look.is_late
        self._failures[name] = f"no answer within {self._options.deadline_s:g} s" if is_late else reason

    def _opened(self, name: str) -> DeviceRead:
        look = self._looks.get(name)
        if look is not None:
            return look
        target = self._targets[name]
        look = DeviceRead(target, self._connect(name), target.views)
        with self._lock:
            if self._is_ended:
                raise InterruptedError
            self._looks[name] = look
            look.began_s = time.monotonic()
        look.viewer.open()
        return look

    def first_sample(self, look: DeviceRead) -> None:
        """Read the counters at the beginning of the window."""
        self._sample(look)
        self._count()

    def _sample(self, look: DeviceRead, *, and_the_rest: bool = False) -> None:
        """Read the counters, and at the end of the same breath whatever else is to be read."""
        counting = [view for view in look.views if view.counts]
        _ask(look, _commands((*counting, *look.views) if and_the_rest else counting))
        found = sample(look.views, look.replies, look.readings)
        if found is not None:
            look.samples.append(found)

    def wait(self) -> None:
        """Let the window pass. A clock that is set meanwhile takes what was read before along."""
        ahead_s = _ahead_s()
        time.sleep(self._options.window_s)
        moved_s = _ahead_s() - ahead_s
        if abs(moved_s) > STEP_S:
            for look in self._looks.values():
                look.samples = [replace(one, at_s=one.at_s + moved_s) for one in look.samples]

    def last_sample(self, look: DeviceRead) -> None:
        """Read the counters at the end of the window."""
        self._sample(look)

    def rest(self, look: DeviceRead) -> None:
        """Read everything else, and the counters too where there was no window."""
        if not self._options.window_s:
            self._sample(look, and_the_rest=True)
        _ask(look, _unanswered(look, look.views))
        if self._options.has_config and look.target.has_config:
            look.config = Config(look.viewer.running_files(), look.viewer.os_version())
        self._count()

    def configs(self) -> Mapping[str, Config]:
        """Return the running configurations that were read."""
        return {name: look.config for name, look in self._looks.items() if look.config is not None}

    def observations(self) -> Mapping[str, Observation]:
        """Return what was seen; of a device that failed on the way, what was read until then."""
        return {name: self._observation(name, target) for name, target in self._targets.items()}

    def _observation(self, name: str, target: Target) -> Observation:
        look, failure = self._looks.get(name), self._failures.get(name, "")
        if look is None or (failure and not look.replies):
            return Observation(name, target.platform, failure=failure or "was not looked at")
        found = facts(look.views, look.replies, look.readings)
        return Observation(name, target.platform, found, tuple(look.samples), failure, round(look.busy_s, 3))


def _ahead_s() -> float:
    """Return how far the clock is ahead of one that nobody can set."""
    return time.time() - time.monotonic()


def _commands(views: Sequence[View]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(command for view in views for command in view.commands))


def _ask(look: DeviceRead, commands: Sequence[str]) -> None:
    """Ask, and what is to be asked instead where that tells nothing."""
    if not commands:
        return
    look.replies.update(zip(commands, look.viewer.ask(commands), strict=True))
    asked, look.views = look.views, instead(look.views, look.replies, look.readings)
    fresh = [view for view, before in zip(look.views, asked, strict=True) if view is not before]
    _ask(look, _unanswered(look, fresh))


def _unanswered(look: DeviceRead, views: Sequence[View]) -> tuple[str, ...]:
    return tuple(command for command in _commands(views) if command not in look.replies)

"""A fabric of devices in memory that fail as real ones do, and a clock on which hours pass at once."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from netkit.deploy.clock import DeployClock
from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms.driver import Candidate, SessionState

TIMEOUT_S, LATE_S = 30.0, 8.0
Running = dict[str, str | None]


class Killed(BaseException):
    """The process dies here: no code after this runs."""


@dataclass
class Fault:
    """What goes wrong when a driver performs an operation."""

    operation: str
    kind: str
    times: int = 1


KINDS: Mapping[str, tuple[str, ...]] = {
    "open": ("unreachable", "hang", "slow", "bug"),
    "running_files": ("hang", "garbage", "slow", "bug"),
    "sessions": ("hang", "slow", "bug"),
    "load_candidate": ("hang", "refused", "lost", "slow", "bug"),
    "check_in_step": ("hang", "refused", "unreachable", "bug"),
    "commit_config": ("hang", "refused", "lost", "late", "quiet", "half", "slow", "bug"),
    "has_pending_commit": ("hang", "slow"),
    "confirm_commit": ("hang", "refused", "lost", "unsaved", "slow", "bug"),
    "rollback": ("hang", "refused", "lost", "quiet"),
    "discard_config": ("hang", "refused"),
    "drain": ("hang", "refused", "lost"),
    "undrain": ("hang", "refused", "lost"),
}


class Time:
    """Time that passes only while the code under test sleeps."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0
        self.set_s = 0.0
        """How far the wall clock was set ahead."""
        self.boot = "this"
        self._lock = threading.Lock()

    @property
    def clock(self) -> DeployClock:
        return DeployClock(lambda: self.now_s + self.set_s, self.wait, lambda: self.now_s, lambda: self.boot)

    def wait(self, seconds: float) -> None:
        with self._lock:
            self.now_s += max(0.0, seconds)


@dataclass
class FakeDevice:
    """The state of a device."""

    time: Time
    running: Running
    startup: Running
    up: tuple[str, ...] = ()
    """Interfaces whose sessions are established."""
    breaks: tuple[str, ...] = ()
    """Interfaces whose sessions a change takes down."""
    faults: list[Fault] = field(default_factory=list)
    staged: dict[str, str] | None = None
    pending: tuple[float, Running] | None = None
    late: tuple[float, dict[str, str], int] | None = None
    """A change that is still being applied after its driver has given up."""
    is_drained: bool = False
    was_drained: bool = False
    """Whether it was drained when the last change was applied: EOS and NVUE revert to that, too."""
    confirms_first: bool = False
    """Whether a drain cannot end while a commit waits for its confirmation."""
    is_whole: bool = True
    """Whether the last change was applied completely."""
    in_step: tuple[str, ...] = ()
    """The devices that were last changed in the same batch."""
    commits: int = 0
    writes: int = 0

    def tick(self) -> None:
        """Run what the device does by itself when it is due."""
        if self.late and self.time.now_s >= self.late[0]:
            at_s, files, revert_s = self.late
            self.late = None
            self.pending, self.was_drained = (at_s + revert_s, dict(self.running)), self.is_drained
            self.running.update(files)
        if self.pending and self.time.now_s >= self.pending[0]:
            self.take_back()

    def take_back(self) -> None:
        if self.pending:
            self.running, self.pending, self.is_drained = dict(self.pending[1]), None, self.was_drained

    @property
    def is_changed(self) -> bool:
        return self.running != self.startup


class FakeDriver:
    """netkit's driver of a device in memory."""

    def __init__(self, name: str, device: FakeDevice, strike: Callable[[str, str], None]) -> None:
        self.name, self.device, self._strike = name, device, strike
        self._is_open = False

    def _begin(self, operation: str) -> str:
        """Trigger a fault; return its kind if the operation itself has to act it out."""
        self._strike(self.name, operation)
        self.device.tick()
        if operation != "open" and not self._is_open:
            raise AssertionError(f"{self.name}: {operation} on a closed connection")
        fault = next((fault for fault in self.device.faults if fault.operation == operation and fault.times > 0), None)
        if fault is None:
            return ""
        fault.times -= 1
        if fault.kind == "slow":
            self.device.time.wait(5)
            self.device.tick()
        elif fault.kind == "hang":
            self.device.time.wait(TIMEOUT_S)
            self.device.tick()
            raise AccessError(Problem(f"{self.name}: no answer within {TIMEOUT_S:g} s"))
        elif fault.kind == "unreachable":
            raise AccessError(Problem(f"{self.name}: cannot be reached"))
        elif fault.kind == "refused":
            raise DeviceError(Problem(f"{self.name}: says no to {operation}"))
        elif fault.kind == "bug":
            raise KeyError(operation)
        return fault.kind

    def _end(self, operation: str, kind: str) -> None:
        self._strike(self.name, f"{operation}, done")
        if kind == "lost":
            self._is_open = False
            raise AccessError(Problem(f"{self.name}: connection lost"))

    @property
    def confirms_first(self) -> bool:
        return self.device.confirms_first

    def open(self) -> None:
        self._begin("open")
        self._is_open = True

    def close(self) -> None:
        self._is_open = False

    def os_version(self) -> str:
        return "1"

    def running_files(self) -> Mapping[str, str | None]:
        if self._begin("running_files") == "garbage":
            raise AccessError(Problem(f"{self.name}: answers garbage"))
        return dict(self.device.running)

    def sessions(self) -> tuple[SessionState, ...]:
        self._begin("sessions")
        down = self.device.breaks if self.device.pending or self.device.is_changed else ()
        return tuple(SessionState(port, port not in down, 3, 60) for port in self.device.up)

    def load_candidate(self, candidate: Candidate) -> None:
        kind = self._begin("load_candidate")
        self.device.writes += 1
        self.device.staged = dict(candidate.files) if candidate.changes else None
        self._end("load_candidate", kind)

    def compare_config(self) -> str:
        return ""

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        assert revert_in is not None
        assert message
        kind = self._begin("commit_config")
        device = self.device
        device.writes += 1
        assert device.pending is None
        if device.staged is None:
            raise DeviceError(Problem(f"{self.name}: nothing is staged", "load a candidate first"))
        if kind == "quiet":
            device.staged = None
            return
        device.commits += 1
        if kind == "late":
            device.time.wait(TIMEOUT_S)
            device.late = (device.time.now_s + LATE_S, device.staged, revert_in)
            device.staged = None
            raise AccessError(Problem(f"{self.name}: no answer within {TIMEOUT_S:g} s"))
        device.pending = (device.time.now_s + revert_in, dict(device.running))
        device.was_drained = device.is_drained
        files = list(device.staged.items())
        for file, text in files[:1] if kind == "half" and len(files) > 1 else files:
            device.running[file] = text if kind != "half" else text[: len(text) // 2].rpartition("\n")[0]
        device.staged = None
        self._end("commit_config", kind)

    def has_pending_commit(self) -> bool:
        self._begin("has_pending_commit")
        return self.device.pending is not None

    def confirm_commit(self) -> None:
        kind = self._begin("confirm_commit")
        self.device.writes += 1
        self.device.pending = None
        if kind == "unsaved":
            raise DeviceError(Problem(f"{self.name}: no space left to save"))
        self.device.startup = dict(self.device.running)
        self._end("confirm_commit", kind)

    def discard_config(self) -> None:
        self._begin("discard_config")
        self.device.staged = None

    def rollback(self) -> None:
        kind = self._begin("rollback")
        self.device.writes += 1
        if kind != "quiet":
            self.device.take_back()
        self._end("rollback", kind)

    def drain(self) -> None:
        kind = self._begin("drain")
        self.device.writes += 1
        self.device.is_drained = True
        self._end("drain", kind)

    def undrain(self) -> None:
        kind = self._begin("undrain")
        assert not (self.device.confirms_first and self.device.pending)
        self.device.is_drained = False
        self._end("undrain", kind)


class FakeHostDriver(FakeDriver):
    """A driver whose devices change in one batch."""

    def strategy(self) -> str:
        return f"{self.name} goes rail by rail" if self.device.in_step else ""

    def is_applied(self) -> bool:
        return self.device.is_whole

    def check(self) -> None:
        self._begin("check_in_step")

    def check_in_step(self, others: Sequence["FakeHostDriver"]) -> Mapping[str, NetkitError]:
        return _of_each((self, *others), FakeHostDriver.check)

    def commit_in_step(
        self, others: Sequence["FakeHostDriver"], revert_in: int | None = None
    ) -> Mapping[str, NetkitError]:
        every = (self, *others)

        def commit(driver: FakeHostDriver) -> None:
            driver.device.in_step = tuple(one.name for one in every)
            driver.commit_config("in step", revert_in)

        return _of_each(every, commit)


def _of_each(drivers: Sequence[FakeHostDriver], work: Callable[[FakeHostDriver], None]) -> Mapping[str, NetkitError]:
    """The error of each device that failed; an error of one does not stop the others."""
    errors: dict[str, NetkitError] = {}
    for driver in drivers:
        try:
            work(driver)
        except NetkitError as error:
            errors[driver.name] = error
        except KeyError:
            errors[driver.name] = DeviceError(Problem(f"{driver.name}: its module has a bug"))
    return errors

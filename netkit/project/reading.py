"""Read what devices run, many at once, through handles that cannot change anything."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from netkit.deploy.fan_out import each, threads
from netkit.design.select import Device
from netkit.errors import AccessError, ConfigError, NetkitError, Problem
from netkit.plan import Running, Unreachable
from netkit.platforms import HOSTS
from netkit.platforms.backup import joined, without_secrets
from netkit.platforms.compare import MODELS
from netkit.platforms.config import VERSION, Files
from netkit.platforms.driver import Reader, SessionState
from netkit.project.connections import Connections
from netkit.project.processes import Names, ProcessPool, divided
from netkit.project.project import Feedback, Project
from netkit.project.rendering import intended

READING = "reading"
WORKERS = 32
POLL_S = 0.2
PATIENCE = 4
"""The limit for all answers of a device, as a multiple of the timeout of one."""
Read = Running | Unreachable


class OnlyReading:
    """A driver reduced to reading."""

    def __init__(self, reader: Reader) -> None:
        self.open: Callable[[], None] = reader.open
        self.close: Callable[[], None] = reader.close
        self.running_files: Callable[[], Mapping[str, str | None]] = reader.running_files
        self.os_version: Callable[[], str] = reader.os_version
        self.sessions: Callable[[], tuple[SessionState, ...]] = reader.sessions


def read(connections: Connections, names: Sequence[str], feedback: Feedback, processes: int = 0) -> Mapping[str, Read]:
    """Read what each device runs, or why it could not be read."""

    def part(names: Names, feedback: Feedback) -> Mapping[str, Read]:
        with feedback.progress(READING, len(names)) as count:
            return _Readings(connections, count).of(names)

    with (
        ProcessPool(divided(names, processes), part, processes, READING) as spread,
        feedback.progress(READING, len(names)) as count,
    ):
        return {name: one for found in spread.results(feedback, count) for name, one in found.items()}


class _Readings:
    """Devices being read; each has a deadline, and all end when the user interrupts."""

    def __init__(self, connections: Connections, count: Callable[[], None]) -> None:
        self._connections = connections
        self._count = count
        self._lock = threading.Lock()
        self._open: dict[str, tuple[OnlyReading, float]] = {}
        self._late: set[str] = set()
        self._is_stopped = False

    def of(self, names: Iterable[str]) -> Mapping[str, Read]:
        """Read all devices; this thread watches the deadlines."""
        found: dict[str, Read] = {}
        worker = threading.Thread(target=lambda: found.update(each(threads(WORKERS), names, self._one)), daemon=True)
        worker.start()
        try:
            while worker.is_alive():
                worker.join(POLL_S)
                self._end(time.monotonic())
        except KeyboardInterrupt:
            self._is_stopped = True
            self._end(float("inf"))
            raise
        return found

    def _end(self, now_s: float) -> None:
        """Close the connections to devices past their deadline."""
        with self._lock:
            late = {name: reader for name, (reader, deadline_s) in self._open.items() if deadline_s < now_s}
            self._late |= set(late)
        for reader in late.values():
            with suppress(Exception):
                reader.close()

    def _one(self, name: str) -> Read:
        try:
            return self._read(name)
        except NetkitError as error:
            # The device's name is shown anyway.
            reasons = (str(problem).removeprefix(f"{name}: ") for problem in error.problems)
            return self._unreachable(name, "; ".join(reasons))
        except Exception as error:  # must not affect other devices
            return self._unreachable(name, f"reading it failed: {type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._open.pop(name, None)
            self._count()

    def _unreachable(self, name: str, reason: str) -> Unreachable:
        return Unreachable("did not finish its answers in time" if name in self._late else reason)

    def _read(self, name: str) -> Read:
        if self._is_stopped:
            raise AccessError(Problem(f"{name}: interrupted"))
        endpoint = self._connections.endpoint(name)
        reader = OnlyReading(self._connections.connect(name))
        with self._lock:
            self._open[name] = reader, time.monotonic() + PATIENCE * endpoint.timeout_s
        reader.open()
        try:
            return Running(reader.running_files(), reader.os_version())
        finally:
            with suppress(Exception):  # everything has been read
                reader.close()


def backed_up(project: Project, devices: Sequence[Device]) -> tuple[dict[str, str], dict[str, str]]:
    """Read devices; return the text to save for each, and the reason for each without one."""
    by_name = {device.name: device for device in devices}
    found = read(Connections.of(project), tuple(by_name), project.feedback, project.processes)
    return _texts(by_name, found, intended(project, devices))


def _texts(
    devices: Mapping[str, Device], found: Mapping[str, Running | Unreachable], wanted: Mapping[str, Files]
) -> tuple[dict[str, str], dict[str, str]]:
    texts, missed = {}, {}
    for name, one in found.items():
        if isinstance(one, Unreachable):
            missed[name] = one.reason
            continue
        try:
            files = without_secrets(MODELS[devices[name].platform], one.files, wanted[name])
        except ConfigError as error:  # secrets can only be removed from what can be parsed
            missed[name] = f"its running configuration cannot be parsed: {error.problems[0]}"
        else:
            is_switch = devices[name].platform != HOSTS
            texts[name] = joined({**files, **({VERSION: f"{one.version}\n"} if is_switch and one.version else {})})
    return texts, missed

"""Commands of netkit as forks of a process that has imported them, which takes a new interpreter seconds."""

import asyncio
import gc
import json
import os
import selectors
import signal
import socket
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import netkit

MOST_BYTES, MOST_FILES = 1_000_000, 16
T = TypeVar("T")


def newest_change_ns() -> int:
    """When netkit or another package was last changed."""
    places = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    for folder, _, names in os.walk(Path(netkit.__file__).parent):
        places |= {Path(folder, name) for name in names if not name.endswith(".pyc")}
    changes_ns = list[int]()
    for place in places:
        with suppress(FileNotFoundError):  # an upgrade removes it just now
            changes_ns.append(place.stat().st_mtime_ns)
    return max(changes_ns)


@dataclass(frozen=True, slots=True)
class ForkedChild:
    """A fork that runs, used like a process of asyncio."""

    pid: int
    """It leads a session of its own."""
    _exit_code: "asyncio.Task[int]"
    stdout: asyncio.StreamReader | None = None
    stderr: asyncio.StreamReader | None = None

    @property
    def returncode(self) -> int | None:
        return self._exit_code.result() if self._exit_code.done() else None

    async def wait(self) -> int:
        """Wait until it ends, and return its exit code."""
        return await asyncio.shield(self._exit_code)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and its children, unless it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


@dataclass(frozen=True, slots=True)
class ForkServer:
    """A process that forks on request: it has no threads, and no file of the server's."""

    requests: socket.socket
    begun_ns: int = field(default_factory=newest_change_ns)
    """After a later change, the code in its memory does not fit the files any more."""
    _waiting: "set[asyncio.Task[Any]]" = field(default_factory=set, compare=False)
    """For what forks report: the loop holds no task of its own."""

    async def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[int], held: Sequence[int] = ()
    ) -> ForkedChild | None:
        """Start a command on three streams; None if a new interpreter has to."""
        if await asyncio.to_thread(newest_change_ns) != self.begun_ns:
            return None
        request = json.dumps({"arguments": list(arguments), "environment": dict(environment)}).encode()
        reported, report = os.pipe()
        status = await _reader(reported)
        try:
            socket.send_fds(self.requests, [request], [report, *streams, *held], socket.MSG_DONTWAIT)
        except OSError:  # it was killed, or the request is too long
            return None
        finally:
            os.close(report)
        begun = self._held(asyncio.create_task(status.readline()))
        try:
            pid = await asyncio.shield(begun)
        except asyncio.CancelledError:
            begun.add_done_callback(_end_unwanted)
            raise
        if not pid:
            return None
        return ForkedChild(int(pid), self._held(asyncio.create_task(_exit_code(int(pid), status))))

    def _held(self, task: "asyncio.Task[T]") -> "asyncio.Task[T]":
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return task

    async def start_piped(
        self, arguments: Sequence[str], environment: Mapping[str, str], held: Sequence[int]
    ) -> ForkedChild | None:
        """Start a command without input, whose output can be read."""
        pipes = [os.pipe() for _ in range(2)]
        out, err = [await _reader(end) for end, _ in pipes]
        with Path(os.devnull).open() as null:
            try:
                streams = (null.fileno(), *(end for _, end in pipes))
                child = await self.start(arguments, environment, streams, held)
            finally:
                for _, end in pipes:
                    os.close(end)
        return child and replace(child, stdout=out, stderr=err)


async def _reader(end: int) -> asyncio.StreamReader:
    """Read a pipe, and close it at its end."""
    found = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(found)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(end, "rb", buffering=0))
    return found


async def _exit_code(pid: int, status: asyncio.StreamReader) -> int:
    """The exit code of a child; if the process that would report it was killed, kill the child too."""
    if line := await status.readline():
        return int(line)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return -signal.SIGKILL


def _end_unwanted(begun: "asyncio.Task[bytes]") -> None:
    """Kill a child whose caller was cancelled before its number was known."""
    if not begun.cancelled() and (pid := begun.result()):
        with suppress(ProcessLookupError):
            os.killpg(int(pid), signal.SIGKILL)


def fork_server() -> ForkServer | None:
    """Start a fork server; None in its forks, which have become a command that is still to run.

    Call this before there are threads, and before files are opened that no child may hold.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    gc.freeze()  # collections touch no memory that the two share
    if os.fork() != 0:
        theirs.close()
        return ForkServer(ours)
    ours.close()
    os.setsid()  # Ctrl-C is for the server, which then ends its children
    with theirs, selectors.DefaultSelector() as events:
        command = _forking(theirs, events)
        for each in events.get_map().values():
            if each.data is not None:
                os.close(each.fd)
                os.close(each.data[1])
    _become(*command)
    return None


def _forking(requests: socket.socket, events: selectors.BaseSelector) -> tuple[dict[str, Any], list[int]]:
    """Fork on request until the server ends; return in forks, with the command and the files they got."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):  # an older kernel, or a container that forbids it: new interpreters take over
        os._exit(0)
    events.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in events.select():
            if key.data is not None:
                events.unregister(key.fd)
                _report(key.fd, *key.data)
                continue
            request, files, _, _ = socket.recv_fds(requests, MOST_BYTES, MOST_FILES)
            if not request:
                os._exit(0)
            with suppress(OSError):  # no memory, no processes: the server reads no number
                pid = _forked()
                if pid == 0:
                    return json.loads(request), files
                events.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, os.dup(files[0])))
                try:
                    os.write(files[0], b"%d\n" % pid)
                except BrokenPipeError:  # nobody waits for it any more
                    os.killpg(pid, signal.SIGKILL)
            for each in files:
                os.close(each)


def _forked() -> int:
    """Fork; the child leads its session when this returns."""
    begun, begins = os.pipe()
    with os.fdopen(begun, "rb") as session:
        try:
            pid = os.fork()
            if pid == 0:
                os.setsid()
        finally:
            os.close(begins)
        if pid:
            session.read()
    return pid


def _report(handle: int, pid: int, status: int) -> None:
    """Report the exit code of a child that has ended."""
    _, ended = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(ended))
    os.close(handle)
    os.close(status)


def _become(command: dict[str, Any], files: Sequence[int]) -> None:
    """Take the arguments, environment and streams of a command; other files are held open."""
    status, *streams = files[:4]
    os.close(status)
    for number, end in enumerate(streams):
        os.dup2(end, number)
        os.close(end)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (it stays open)
    sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115 (they stay open)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.argv = ["netkit", *command["arguments"]]

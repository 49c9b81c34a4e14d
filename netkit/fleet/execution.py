"""A job being carried out, in a process of its own: it can be ended at any time, and takes its memory along.

The process holds no connection to the broker. It ends with its parent, also when that is killed.
"""

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Self

from netkit.errors import NetkitError
from netkit.fleet.job import SiteJob

PR_SET_PDEATHSIG = 1
ENDING_S = 2.0
"""How long a process may take to end before it is killed."""
SAFE_ENDING_S = 900.0
"""The same for one that changes devices: it ends where no device is left half done."""
PART, PROGRESS, DONE, FAILED = b"+", b"~", b".", b"!"


@dataclass(frozen=True, slots=True)
class Note:
    """What a verb reports while it works, for people; not part of its result."""

    text: str


Execute = Callable[[SiteJob], Iterator[bytes | Note]]


class JobFailedError(Exception):
    """A job was begun and did not come to its end."""


class Execution:
    """A running job."""

    def __init__(self, execute: Execute, job: SiteJob, detach: Callable[[], None]) -> None:
        processes = multiprocessing.get_context("fork")
        self._receiver, sender = processes.Pipe(duplex=False)
        self._deadline_s = time.monotonic() + max(0.0, job.deadline_s - time.time())
        arguments = execute, job, sender, self._receiver, detach, os.getpid()
        self._is_read_only = job.is_read_only
        # No daemon, so that it may have processes of its own.
        self._process = processes.Process(target=_carry_out, args=arguments, daemon=False)
        # A wish to stop must not reach the new process before it has a handler of its own for it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        sender.close()

    def __enter__(self) -> Self:
        return self

    def stop(self) -> None:
        """Ask the process to end: one that changes devices does at the next safe place."""
        with suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, signal.SIGTERM)

    def __exit__(self, *_: object) -> None:
        """End the process and those that it started."""
        if not self._is_read_only:
            self._drain(SAFE_ENDING_S)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid or 0, number)
            self._process.join(ENDING_S)
        self._receiver.close()
        self._process.close()

    def _drain(self, within_s: float) -> None:
        """Have the process end, and drop what it still has to say: a full pipe would block it."""
        deadline_s = time.monotonic() + within_s
        with suppress(EOFError):
            while time.monotonic() < deadline_s:
                self.stop()
                if self._receiver.poll(1.0):
                    self._receiver.recv_bytes()
        self._process.join(ENDING_S)

    def output(self, wait: Callable[[int], None]) -> Iterator[bytes | Note]:
        """Yield what the job yields; `wait` sleeps for a while, or until the given file can be read.

        JobFailedError if it fails, or does not end by the deadline.
        """
        while True:
            while not self._receiver.poll():
                if time.monotonic() > self._deadline_s:
                    raise JobFailedError("it did not end by its deadline")
                wait(self._receiver.fileno())
            try:
                message = self._receiver.recv_bytes()
            except EOFError:
                self._process.join(ENDING_S)
                code = self._process.exitcode
                if code == -signal.SIGTERM and not self._is_read_only:
                    raise JobFailedError("it was asked to end before it had begun") from None
                raise JobFailedError(f"its process ended with {code}; is the machine short of memory?") from None
            kind, content = message[:1], message[1:]
            if kind == DONE:
                return
            if kind == FAILED:
                raise JobFailedError(content.decode())
            yield content if kind == PART else Note(content.decode())


def _carry_out(
    execute: Execute,
    job: SiteJob,
    sender: Connection,
    receiver: Connection,
    detach: Callable[[], None],
    parent: int,
) -> None:
    """Run in the process of the job."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    detach()
    receiver.close()  # left open, it would keep this process blocked after the parent has died
    try:
        for part in execute(job):
            sender.send_bytes(PROGRESS + part.text.encode() if isinstance(part, Note) else PART + part)
        sender.send_bytes(DONE)
    except NetkitError as error:
        sender.send_bytes(FAILED + "; ".join(map(str, error.problems)).encode())
    except Exception as error:
        sender.send_bytes(FAILED + f"a defect of netkit: {type(error).__name__}: {error}".encode())

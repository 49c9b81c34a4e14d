"""The right to change a fabric: held by one process on any machine, and proven again before each write.

Whoever is the only consumer of the fabric's queue at the broker holds the lease. The broker gives it to the next one
once the connection of the holder is gone. Each holder writes a higher number beside the runs of the fabric, so that one
that lost the lease without noticing is stopped by the number too. Between the last proof and the write itself nothing
can stop a process; there the timers of the devices protect, and the comparison with the plan before each change.
"""

import ctypes
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

from netkit import private
from netkit.deploy.apply import never
from netkit.deploy.journal import LeaseLostError, unwritable
from netkit.errors import DeployError, NetkitError, Problem
from netkit.fleet.job import SiteJob
from netkit.fleet.link import BrokerLink, InUseError, LinkError
from netkit.fleet.settings import FleetError

PATIENCE_S = 15.0
"""How long the broker may take to prove that the lease is still held."""
PULSE_S = 5.0
"""The lease is proven at least so often, which also keeps the connection alive."""
RETRY_S = 1.0
FILE = "lease"
REMEDY = "wait until it has ended: `netkit fleet status` shows which worker changes it"
Connect = Callable[[float], BrokerLink]
"""Opens a link with this time limit for the broker's answers."""


class HeldElsewhereError(FleetError):
    """Another process holds the lease."""


class FabricLease:
    """A lease that is held until the end of a block."""

    def __init__(
        self,
        connect: Connect,
        queue: str,
        fabric: str,
        *,
        wait_s: float,
        runs: Path | None = None,
        is_stopping: Callable[[], bool] = never,
    ) -> None:
        """Take the lease, waiting this long for its holder; `runs` is the folder whose runs it protects."""
        self._is_stopping = is_stopping
        self._fabric, self._queue = fabric, queue
        self._proving = threading.Lock()
        self._proven_s = float("-inf")
        self._lost: LeaseLostError | None = None
        self._is_over = threading.Event()
        self._link = self._taken(connect, time.monotonic() + wait_s)
        self._file = runs.parent / FILE if runs else None
        try:
            self.number = 0 if self._file is None else _next_number(self._file)
        except BaseException:
            self._link.__exit__()
            raise
        os.register_at_fork(after_in_child=self._forget)
        self._pulse = threading.Thread(target=self._keep, daemon=True)
        self._pulse.start()

    def _taken(self, connect: Connect, until_s: float) -> BrokerLink:
        while True:
            try:
                link = connect(PATIENCE_S)
                try:
                    link.occupy(self._queue)
                except BaseException:
                    link.__exit__()
                    raise
                return link
            except InUseError:
                if time.monotonic() > until_s or self._is_stopping():
                    what = f"{self._fabric} is being changed by another worker or coordinator"
                    raise HeldElsewhereError(Problem(what, REMEDY)) from None
            except LinkError as error:
                if time.monotonic() > until_s or self._is_stopping():
                    what = f"the broker does not give the lease of {self._fabric}: {error}"
                    raise FleetError(Problem(what, "see its log")) from None
            time.sleep(RETRY_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        with self._proving:
            self._lost = self._lost or self._loss("it was given back")
            self._link.__exit__()
        self._pulse.join()

    def check(self) -> None:
        """Prove that the lease is still held; LeaseLostError once it is not. Several threads may ask.

        Another proof that began after this call also counts.
        """
        asked_s = time.monotonic()
        with self._proving:
            if self._lost is None and self._proven_s <= asked_s:
                self._prove()
            if self._lost is not None:
                raise LeaseLostError(self._lost.problems)

    def _prove(self) -> None:
        began_s = time.monotonic()
        try:
            if self._link.consumers(self._queue) != 1:
                self._lost = self._loss("the broker no longer has its holder")
            elif self._file is not None and (number := _number(self._file)) != self.number:
                self._lost = self._loss(f"{self._file} has the number {number} of a later holder")
        except (LinkError, DeployError, OSError) as error:
            self._lost = self._loss(str(error))
        self._proven_s = began_s

    def _loss(self, why: str) -> LeaseLostError:
        what = f"the lease of {self._fabric} is lost, so nothing else was written: {why}"
        return LeaseLostError(Problem(what, "the next worker continues the run; or netkit deploy --resume --fleet DIR"))

    def _keep(self) -> None:
        while not self._is_over.wait(PULSE_S):
            with suppress(LeaseLostError):
                self.check()

    def _forget(self) -> None:
        """Leave the connection to the process that holds the lease, in a child that inherited it."""
        with suppress(Exception):
            self._link.detach()


def _number(file: Path) -> int:
    try:
        return int(private.read_text(file))
    except FileNotFoundError:
        return 0
    except ValueError:
        raise DeployError(Problem("is damaged", "remove it while no run changes the fabric", file=str(file))) from None


def _next_number(file: Path) -> int:
    """Write a higher number than any earlier holder."""
    try:
        private.make_folder(file.parent)
        number = _number(file) + 1
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        with os.fdopen(private.open_file(partial, os.O_WRONLY | os.O_TRUNC), "w", encoding="ascii") as stream:
            stream.write(str(number))
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)
    except OSError as error:
        raise DeployError(unwritable(file, error)) from None
    return number


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
    """A job was started and did not finish."""


class Execution:
    """A running job."""

    def __init__(self, execute: Execute, job: SiteJob, detach: Callable[[], None]) -> None:
        processes = multiprocessing.get_context("fork")
        self._receiver, sender = processes.Pipe(duplex=False)
        self._deadline_s = time.monotonic() + max(0.0, job.deadline_s - time.time())
        arguments = execute, job, sender, self._receiver, detach, os.getpid()
        self._is_read_only = job.is_read_only
        # Not a daemon, so that it may have child processes.
        self._process = processes.Process(target=_carry_out, args=arguments, daemon=False)
        # A stop signal must not reach the new process before it has a handler.
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
                    raise JobFailedError("it was stopped before it had begun") from None
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

"""The worker of a site: takes one job at a time from the broker, carries it out, and sends signed answers.

It has one thread, so that it can fork a process for each job. When the connection breaks, the job ends with it: the
broker delivers it again, to whichever worker is there.
"""

import os
import secrets
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from netkit import __version__
from netkit.fleet import answer
from netkit.fleet.answer import Envelope, Kind, sign_answer
from netkit.fleet.job import MessageError, SiteJob, StopWork, open_job
from netkit.fleet.lease import Execute, Execution, JobFailedError, Note
from netkit.fleet.link import BrokerLink, LinkError, Received
from netkit.fleet.nonce_journal import DeliveryState, NonceJournal
from netkit.fleet.rabbitmq import ANSWERS, JOBS, STATUS, answer_queue, control_queue
from netkit.fleet.settings import FleetSettings
from netkit.fleet.signing import Credentials
from netkit.fleet.status import WorkerStatus, sign_status

POLL_S = 1.0
STATUS_S, HURRIED_S = 20.0, 1.0
WINDOW = 16
"""Messages that are sent before the broker has confirmed the first of them."""
PULSE_S = 30.0
"""After this long without a message about its job, a worker asks whether a coordinator still waits for it."""
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 10.0
ABANDONED_S = 45.0
"""A job that changes devices counts as abandoned after this long without its coordinator."""
LOOK_S = 5.0
GRACE_S = 60.0
"""How long after the deadline of a job its last answer may still be sent."""


class NobodyWaitsError(Exception):
    """The coordinator that gave a job has gone."""


@dataclass(slots=True)
class Worker:
    """A worker; `run` returns when `stop` was called."""

    settings: FleetSettings
    site: str
    credentials: Credentials
    journal: NonceJournal
    execute: Execute
    report: Callable[[str], None] = lambda _: None
    """Gets a line for the log."""
    prepare: Callable[[SiteJob], None] = lambda _: None
    """Called in this process before a job whose fabric and commit the last one had, if that was answered."""
    name: str = field(default_factory=lambda: f"{socket.gethostname()[:40]}:{os.getpid()}")
    _since_s: float = field(default_factory=time.time)
    _told_s: float = float("-inf")
    _job: SiteJob | None = None
    _done: int = 0
    _refused: int = 0
    _is_stopped: bool = False
    _last: tuple[str, str] = "", ""
    """Fabric and commit of the last job that was answered."""

    def stop(self) -> None:
        """Ask `run` to return; a job that is running ends, and is delivered again."""
        self._is_stopped = True

    def run(self) -> None:
        """Serve jobs until stopped; connect again whenever the connection breaks."""
        retry_s = FIRST_RETRY_S
        while not self._is_stopped:
            try:
                with self._linked() as link:
                    self.report(f"connected to {self.settings.broker.host} as {self.name} of {self.site}")
                    retry_s = FIRST_RETRY_S
                    self._serve(link)
            except LinkError as error:
                self.report(f"no connection to the broker: {error}; next attempt in {retry_s:.0f} s")
                self._sleep(retry_s)
                retry_s = min(2 * retry_s, LAST_RETRY_S)

    def _linked(self) -> BrokerLink:
        vhost, user = self.settings.virtual_host(self.site), self.settings.user(self.site)
        return BrokerLink(self.settings.broker, vhost, user, self.credentials)

    def _sleep(self, length_s: float) -> None:
        end_s = time.monotonic() + length_s
        while not self._is_stopped and time.monotonic() < end_s:
            time.sleep(0.1)

    def _serve(self, link: BrokerLink) -> None:
        link.consume(JOBS, prefetch=1)
        self._told_s = float("-inf")
        while not self._is_stopped:
            self._tell_status(link)
            received = link.received(POLL_S)
            if received is not None and self._is_answered(link, received):
                link.acknowledge(received)

    def _is_answered(self, link: BrokerLink, received: Received) -> bool:
        """Deal with a delivery; whether it can be acknowledged, since nothing is left to do with it."""
        try:
            job = open_job(received.body, self.settings.coordinator.keys, self.site, time.time())
        except MessageError as error:
            self._refused += 1
            self.report(f"refused a message: {error}")
            if error.job is not None:
                _Answering(self, link, error.job).send_last("refused", str(error))
            return True
        state = self.journal.begin(job, time.time())
        if state is DeliveryState.ANSWERED:
            self.report(f"dropped {_described(job)}: {state.value}")
            return True
        answering = _Answering(self, link, job)
        if state is not DeliveryState.BEGIN:
            self._refused += 1
            self.report(f"refused {_described(job)}: {state.value}")
            answering.send_last("refused", state.value)
            return True
        self.report(f"begins {_described(job)}")
        self._job, began_s = job, time.monotonic()
        self._hurry_status()
        try:
            how = self._carried_out(link, answering)
        finally:
            self._job = None
            self._hurry_status()
        if self._is_stopped:
            return False
        self.journal.answered(job.nonce)
        self._done += 1
        self.report(f"{how} {_described(job)} after {time.monotonic() - began_s:.1f} s")
        return True

    def _carried_out(self, link: BrokerLink, answering: "_Answering") -> str:
        """Carry a job out and answer it; return how it ended."""
        try:
            answering.send("begun", b"")
            self._expect_coordinator(link, answering.job)
            opened = answering.job.fabric, answering.job.commit
            if opened == self._last:
                self.prepare(answering.job)
            with (
                Execution(self.execute, answering.job, link.detach) as execution,
                self._controlled(link, answering.job, execution) as look,
            ):
                for part in execution.output(lambda file: self._wait(link, answering, file, look)):
                    if isinstance(part, Note):
                        answering.send("progress", part.text.encode())
                    else:
                        answering.send("part", part)
            answering.send("end", b"")
            answering.settle()
            self._last = opened
        except NobodyWaitsError:
            return "gave up, since no coordinator waits for it,"
        except (JobFailedError, MessageError) as error:
            if not self._is_stopped:
                answering.send_last("failed", str(error))
            return f"failed ({error})"
        return "answered"

    def _expect_coordinator(self, link: BrokerLink, job: SiteJob) -> None:
        """Refuse to change devices for a coordinator that has ended; wait for one that lost its connection."""
        until_s = time.monotonic() + ABANDONED_S
        while not job.is_read_only:
            if not link.exists(control_queue(job.reply)):
                raise JobFailedError("it was not begun, since its coordinator has ended")
            if job.goes_on or link.has_consumer(answer_queue(job.reply)):
                return
            if self._is_stopped or time.monotonic() > until_s:
                raise JobFailedError("it was not begun, since its coordinator is gone")
            link.wait(POLL_S)

    @contextmanager
    def _controlled(self, link: BrokerLink, job: SiteJob, execution: Execution) -> Iterator[Callable[[], None]]:
        """Yield what looks whether a job that changes devices is to end, and asks it to."""
        if job.is_read_only:
            yield lambda: None
            return
        control = control_queue(job.reply)
        link.consume(control, prefetch=16)
        heard: list[Received] = []
        seen_s = looked_s = time.monotonic()

        def look() -> None:
            nonlocal seen_s, looked_s
            now_s = time.monotonic()
            if now_s > looked_s + LOOK_S:
                looked_s = now_s
                seen_s = now_s if link.has_consumer(answer_queue(job.reply)) else seen_s
            is_over = now_s > seen_s + ABANDONED_S and not job.goes_on
            while (received := link.received(0)) is not None:
                heard.append(received)  # acknowledged at the end: the next worker has to hear it if this one dies
                is_over = is_over or self._is_stop_of(job, received.body)
            if is_over:
                execution.stop()

        try:
            yield look
        finally:
            if not self._is_stopped:
                with suppress(LinkError):  # the job is delivered again then, and the messages too
                    link.cancel(control)
                    for received in heard:
                        link.acknowledge(received)

    def _is_stop_of(self, job: SiteJob, message: bytes) -> bool:
        try:
            work = open_job(message, self.settings.coordinator.keys, self.site, time.time()).work
        except MessageError as error:
            self.report(f"refused a message: {error}")
            return False
        return isinstance(work, StopWork) and work.job == job.nonce

    def _wait(self, link: BrokerLink, answering: "_Answering", file: int, look: Callable[[], None]) -> None:
        """Keep the connection alive until a file can be read; regularly ask whether a coordinator still waits."""
        if self._is_stopped:
            raise JobFailedError("the worker is stopped")
        self._tell_status(link)
        if time.monotonic() > answering.sent_s + PULSE_S:
            answering.send("progress", b"")
        readable, _, _ = select.select([file, link.fileno()], [], [], POLL_S)
        if file not in readable:
            link.wait(0)
            answering.settle(most=WINDOW)
        look()

    def _hurry_status(self) -> None:
        """Report the status soon, but not for each of many short jobs."""
        self._told_s = min(self._told_s, time.monotonic() - STATUS_S + HURRIED_S)

    def _tell_status(self, link: BrokerLink) -> None:
        if time.monotonic() < self._told_s + STATUS_S:
            return
        self._told_s = time.monotonic()
        job = self._job
        status = WorkerStatus(
            site=self.site,
            worker=self.name,
            version=__version__,
            at_s=int(time.time()),
            since_s=int(self._since_s),
            done=self._done,
            refused=self._refused,
            verb=job.verb if job else "",
            fabric=job.fabric if job else "",
            shard=job.limit[:200] if job else "",
            deadline_s=job.deadline_s if job else 0,
        )
        link.send(ANSWERS, STATUS, sign_status(status, self.credentials.signing))
        if STATUS in link.unroutable:
            link.unroutable.discard(STATUS)
            self.report(f"the broker has no queue {STATUS}; import the definitions of `netkit fleet init` again")


@dataclass(slots=True)
class _Answering:
    """An attempt to answer a job: numbers and signs its messages."""

    worker: Worker
    link: BrokerLink
    job: SiteJob
    attempt: str = field(default_factory=lambda: secrets.token_hex(8))
    sequence: int = 0
    sent_s: float = 0

    def send(self, kind: Kind, payload: bytes) -> None:
        """Send a message; NobodyWaitsError if no coordinator waits for it and the job does not continue without one."""
        if kind == "progress" and self.sequence >= answer.MOST_MESSAGES // 2:
            return  # not all progress is needed, and the result must have room
        if self.sequence >= answer.MOST_MESSAGES - 1 and kind not in answer.ENDS:
            raise MessageError(f"its answer has more than {answer.MOST_MESSAGES:,} messages")
        head: dict[str, Any] = {"nonce": self.job.nonce, "site": self.worker.site, "worker": self.worker.name}
        envelope = Envelope(**head, attempt=self.attempt, sequence=self.sequence, kind=kind, size=len(payload))
        message = sign_answer(envelope, payload, self.worker.credentials.signing)
        self.sequence += 1
        self.sent_s = time.monotonic()
        self.link.send(ANSWERS, self.job.reply, message)
        self.settle(most=WINDOW)

    def settle(self, most: int = 0) -> None:
        """Wait until the broker has all messages but some; NobodyWaitsError as for `send`."""
        self.link.settle(most, until_s=self.job.deadline_s + GRACE_S)
        if self.job.reply in self.link.unroutable and self.job.is_read_only:
            raise NobodyWaitsError

    def send_last(self, kind: Kind, text: str) -> None:
        with suppress(NobodyWaitsError):
            self.send(kind, text[:2000].encode())
            self.settle()


def _described(job: SiteJob) -> str:
    shard = job.limit if len(job.limit) <= 60 else job.limit[:57] + "..."
    return f"{job.verb} of {job.fabric} {shard} ({job.nonce[:8]})".replace("  ", " ")


def stop_on_signals(worker: Worker) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())

"""The coordinator: gives signed jobs to sites, and yields what their workers answer."""

import secrets
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Self

from netkit.errors import Problem
from netkit.fleet.answer import JobAnswer, JobEvent, LostJob, PendingJob, open_answer
from netkit.fleet.job import MessageError, SiteJob, StopWork, new_job, sign_job
from netkit.fleet.link import BrokerLink, LinkError, RoundEndingError, RoundTakenError, UnroutableError
from netkit.fleet.rabbitmq import (
    CONTROL_LIMITS,
    DISPATCH,
    ENDED_LIMITS,
    JOBS,
    LEASE,
    control_queue,
    fabric_queue,
)
from netkit.fleet.settings import COORDINATOR, FleetError, FleetSettings
from netkit.fleet.signing import Credentials
from netkit.fleet.status import SiteStatus, newest

POLL_S = 0.5
PREFETCH = 16
GRACE_S = 10.0
"""How long after the deadline of a job its answer may still arrive."""
FIRST_RETRY_S, LAST_RETRY_S = 0.5, 10.0
LOOK_S = 5.0
"""How often the status of workers is read while none of them has begun a job."""
MOST_HELD_BYTES = 512 * 1024 * 1024
"""Of incomplete answers of a site."""


class RoundBusyError(FleetError):
    """Another coordinator carries out the same round."""

    exit_code = 5


class _DeferredSignals:
    """Keeps signals from interrupting some functions: they are handled when those have ended.

    Whether one runs is read off the stack: any flag would leave a moment between a call and the flag.
    """

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._codes = {one.__code__ for one in functions}
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._waiting: deque[int] = deque()

    def begin(self) -> None:
        """Begin; only the main thread is interrupted by signals."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before = signal.getsignal(number)
            if callable(before):
                self._before.setdefault(number, before)
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        caller = frame
        while caller is not None and caller.f_code not in self._codes:
            caller = caller.f_back
        if caller is None:
            self._before[number](number, frame)
        else:
            self._waiting.append(number)

    def deliver(self) -> None:
        """Handle the signals that wait."""
        while self._waiting:
            number = self._waiting.popleft()
            self._before[number](number, None)

    def end(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, before)
        self.deliver()


@dataclass(slots=True)
class _SiteChannel:
    """The connection to a site's virtual host, and the jobs that it was given."""

    name: str
    link: BrokerLink | None = None
    failure: str = ""
    unsent: deque[SiteJob] = field(default_factory=deque)
    held: int = 0
    has_control: bool = False
    """Whether the queue for control messages to running jobs was declared."""
    has_round: bool = False
    """Whether this run may hold the round there."""
    retry_s: float = FIRST_RETRY_S
    next_s: float = float("-inf")
    look_s: float = float("-inf")
    """When to look next for workers that do not answer."""


class Coordinator:
    """Gives jobs to sites. Several may run at a time: each has its own queue for answers."""

    def __init__(
        self, settings: FleetSettings, credentials: Credentials, report: Callable[[str], None] = lambda _: None
    ) -> None:
        """`report` gets a line for everything that is dropped or broken."""
        credentials.expect(settings.coordinator.keys, "the coordinator")
        self._settings = settings
        self._credentials = credentials
        self._report = report
        self._run = secrets.token_hex(16)
        self._sites: dict[str, _SiteChannel] = {}
        self._pending: dict[str, PendingJob] = {}
        self._round = ""
        self._signals = _DeferredSignals(Coordinator._hold_round, Coordinator.__exit__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        for site in self._sites.values():
            # A signal may have come while half of a message was sent or received.
            is_cut = kind is not None and not issubclass(kind, Exception)
            try:
                if site.link is not None and not is_cut:
                    self._withdraw(site, site.link)
                    continue
            except LinkError as error:
                self._report(f"{site.name}: {error}")
            if site.has_round or (is_cut and site.link is not None):
                self._withdraw_anew(site)
        self._signals.end()

    def _withdraw_anew(self, site: _SiteChannel) -> None:
        if site.link is not None:
            with suppress(Exception):  # it may be broken in any way
                site.link.detach()
        try:
            self._withdraw(site, self._linked(site))
        except LinkError as error:
            self._report(f"{site.name}: {error}")

    def _withdraw(self, site: _SiteChannel, link: BrokerLink) -> None:
        """Delete the queues of this run at a site, and close the link."""
        is_over = all(one.job.site != site.name for one in self._pending.values())
        with link:
            if site.has_control and is_over:
                link.delete(control_queue(self._run))
            link.delete_answers(self._run)
            if site.has_round:
                link.release_round(self._round, self._run, is_over=is_over)

    def hold(self, name: str, sites: Iterable[str]) -> None:
        """Keep other coordinators from a round, such as the check of a fabric, at some sites until this one ends.

        RoundBusyError if another one carries it out; if one was given up there, wait until its jobs have ended. A site
        to which there is no connection now is locked before it gets jobs; if another coordinator has the round then,
        the jobs are lost. From now on, a signal cannot end this process before it has given the round up.
        """
        self._round = name
        self._signals.begin()
        for place in sorted(sites):
            site = self._sites.setdefault(place, _SiteChannel(place))
            try:
                self._connect_after_last_round(site)
            except RoundTakenError as error:
                raise RoundBusyError(Problem(str(error), "nothing was started; wait for it to finish")) from None
            except LinkError as error:
                self._lose(site, error)

    def _connect_after_last_round(self, site: _SiteChannel) -> None:
        ends_s = time.monotonic() + 2 * ENDED_LIMITS["x-expires"] / 1000
        is_reported = False
        while True:
            try:
                self._connect(site)
            except RoundEndingError as error:
                if time.monotonic() > ends_s:
                    raise
                if not is_reported:
                    self._report(f"{site.name}: waits, since {error}")
                    is_reported = True
                time.sleep(POLL_S)
            else:
                return

    def run(self, jobs: Iterable[SiteJob], between: Callable[[], None] = lambda: None) -> Iterator[JobEvent]:
        """Give jobs to their sites, and yield answers as they arrive, until each job is answered or lost.

        The parts of an answer come one after another, and only when all of them have arrived. `between` is called
        about twice a second.
        """
        for job in jobs:
            self._accept(job)
            yield from self._step(0)
        while self._pending:
            yield from self._step(POLL_S)
            between()

    def stop(self) -> None:
        """Have the jobs that change devices end at the next safe place; they answer as usual."""
        for pending in list(self._pending.values()):
            job, site = pending.job, self._sites[pending.job.site]
            if job.is_read_only or site.link is None:
                continue
            within_s = max(1, job.deadline_s - int(time.time()))
            wish = new_job(job.site, job.fabric, job.commit, StopWork(job=job.nonce), within_s=within_s)
            queue = control_queue(self._run)
            try:
                site.link.publish(DISPATCH, queue, sign_job(wish, self._credentials.signing))
            except (LinkError, UnroutableError) as error:
                self._report(f"{site.name}: {error}")

    def _accept(self, job: SiteJob) -> None:
        if job.fabric not in self._settings.site(job.site).fabrics:
            what = f"{job.fabric} is not at the site {job.site}"
            raise FleetError(Problem(what, "add it to the fabrics of the site in fleet.yaml, here and there"))
        job = job.model_copy(update={"reply": self._run})
        self._pending[job.nonce] = PendingJob(job)
        self._sites.setdefault(job.site, _SiteChannel(job.site)).unsent.append(job)

    def _step(self, timeout_s: float) -> Iterator[JobEvent]:
        for site in self._sites.values():
            try:
                yield from self._sent(site)
            except LinkError as error:
                self._lose(site, error)
                if isinstance(error, RoundTakenError):
                    yield from self._dropped(site, str(error))
        links = [site.link.fileno() for site in self._sites.values() if site.link is not None]
        if links:
            select.select(links, [], [], timeout_s)
        else:
            time.sleep(timeout_s)
        for site in self._sites.values():
            yield from self._received(site)
        yield from self._overdue()

    def _sent(self, site: _SiteChannel) -> Iterator[LostJob]:
        """Send what the site was not sent yet, over a new connection if there is none."""
        if site.link is None and time.monotonic() < site.next_s:
            return
        link = site.link or self._connect(site)
        yield from self._unanswered(site, link)
        while site.unsent:
            job = site.unsent[0]
            lasts_s = job.deadline_s - time.time()
            if lasts_s > 0 and job.nonce in self._pending:
                if not job.is_read_only:
                    site.has_control = True
                    link.declare(control_queue(self._run), DISPATCH, **CONTROL_LIMITS)
                    link.declare(fabric_queue(LEASE, job.fabric))
                message = sign_job(job, self._credentials.signing)
                try:
                    link.publish(DISPATCH, JOBS, message, lasts_s=lasts_s, until_s=job.deadline_s)
                except UnroutableError:
                    del self._pending[job.nonce]
                    yield LostJob(job, f"the broker has no queue for the site {site.name}; import its definitions")
            site.unsent.popleft()

    def _unanswered(self, site: _SiteChannel, link: BrokerLink) -> Iterator[LostJob]:
        """Give up jobs that nobody has begun, if a worker of the site may drop them without an answer."""
        unbegun = [one for one in self._pending.values() if one.job.site == site.name and not one.began_by]
        if not unbegun or time.monotonic() < site.look_s:
            return
        site.look_s = time.monotonic() + LOOK_S
        _, receivers = link.waiting_jobs()
        found = newest(link.peek_status(), self._settings.site(site.name).keys, site.name)
        # Of those that ended within the last minute, the status is still there; one updated within a second, the same.
        connected = sorted(found, key=lambda one: (-one.at_s, -one.since_s, -one.format))[:receivers]
        older = next((one for one in connected if one.format == 1), None)
        if older is not None:
            who = f"the worker {older.worker} runs an older netkit ({older.version}), which may drop the job unanswered"
            for one in unbegun:
                del self._pending[one.job.nonce]
                site.held -= one.bytes_held
                yield LostJob(one.job, f"{who}; install this release at the site {site.name}, and restart the worker")

    def _connect(self, site: _SiteChannel) -> BrokerLink:
        """Open a connection; RoundTakenError if another coordinator carries out the same round there."""
        link = self._linked(site)
        try:
            if self._round:
                try:
                    self._hold_round(site, link)
                finally:
                    self._signals.deliver()
            link.consume(link.declare_answers(self._run), PREFETCH)
        except RoundTakenError:
            link.__exit__()
            what = f"another {self._round} is running at the site {site.name}, or was killed within the last minutes"
            raise RoundTakenError(what) from None
        except LinkError:
            link.__exit__()
            raise
        site.link, site.failure, site.retry_s = link, "", FIRST_RETRY_S
        return link

    def _linked(self, site: _SiteChannel) -> BrokerLink:
        vhost, user = self._settings.virtual_host(site.name), self._settings.user(COORDINATOR)
        return BrokerLink(self._settings.broker, vhost, user, self._credentials)

    def _hold_round(self, site: _SiteChannel, link: BrokerLink) -> None:
        site.has_round = True
        try:
            link.hold_round(self._round, self._run)
        except (RoundTakenError, RoundEndingError):
            site.has_round = False
            raise

    def _dropped(self, site: _SiteChannel, reason: str) -> Iterator[LostJob]:
        """Give up all jobs of a site."""
        site.unsent.clear()
        site.held = 0
        for nonce, pending in list(self._pending.items()):
            if pending.job.site == site.name:
                del self._pending[nonce]
                yield LostJob(pending.job, reason)

    def _lose(self, site: _SiteChannel, error: LinkError) -> None:
        """Give up a broken connection, and note when to try again."""
        self._report(f"{site.name}: {error}")
        site.failure = str(error)
        site.next_s = time.monotonic() + site.retry_s
        site.retry_s = min(2 * site.retry_s, LAST_RETRY_S)
        if site.link is not None:
            site.link.__exit__()
            site.link = None

    def _received(self, site: _SiteChannel) -> Iterator[JobEvent]:
        while site.link is not None:
            try:
                received = site.link.received(0)
                if received is None:
                    return
                site.link.acknowledge(received)
            except LinkError as error:
                self._lose(site, error)
                return
            try:
                yield from self._opened(site, received.body)
            except MessageError as error:
                self._report(f"{site.name}: dropped a message: {error}")

    def _opened(self, site: _SiteChannel, message: bytes) -> Iterator[JobEvent]:
        envelope, packed = open_answer(message, self._settings.site(site.name).keys, site.name)
        pending = self._pending.get(envelope.nonce)
        if pending is None or pending.job.site != site.name:
            return  # a duplicate, or an attempt that ended behind another one
        if site.held + len(packed) > MOST_HELD_BYTES:
            raise MessageError(f"incomplete answers of the site have more than {MOST_HELD_BYTES:,} bytes")
        before = pending.bytes_held
        for event in pending.take(envelope, packed):
            if isinstance(event, JobAnswer | LostJob):
                self._pending.pop(envelope.nonce, None)
            yield event
        site.held += (pending.bytes_held if envelope.nonce in self._pending else 0) - before

    def _overdue(self) -> Iterator[LostJob]:
        now_s = time.time()
        for nonce, pending in list(self._pending.items()):
            if now_s > pending.job.deadline_s + GRACE_S:
                del self._pending[nonce]
                site = self._sites[pending.job.site]
                site.held -= pending.bytes_held
                yield LostJob(pending.job, _why_overdue(pending, site))


def _why_overdue(pending: PendingJob, site: _SiteChannel) -> str:
    if site.failure:
        return f"no answer by its deadline: no connection to the broker: {site.failure}"
    if pending.began_by:
        return f"no answer by its deadline; {pending.began_by} began it"
    return f"no worker of the site {site.name} began it by its deadline"


def site_statuses(settings: FleetSettings, credentials: Credentials) -> Iterator[SiteStatus]:
    """Yield the state of each site."""
    for name, site in settings.sites.items():
        try:
            with BrokerLink(
                settings.broker, settings.virtual_host(name), settings.user(COORDINATOR), credentials
            ) as link:
                waiting, receivers = link.waiting_jobs()
                messages = link.peek_status()
        except LinkError as error:
            yield SiteStatus(name, str(error))
            continue
        yield SiteStatus(name, "", waiting, receivers, newest(messages, site.keys, name))

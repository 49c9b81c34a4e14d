"""Plans and changes at a site: the whole run of a fabric's part is on one worker, which holds the lease.

A job that is delivered again, because a worker died or was stopped, continues the run that it began: the runs of a
fabric are in a folder that all workers of the site share, and each names its job.
"""

import json
import queue
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

from netkit import deploy
from netkit import plan as planning
from netkit.deploy import DeployEvent, Journal, LockedError, Outcome, run_folders
from netkit.deploy.journal import known_provenance
from netkit.deploy.model import EventHandler
from netkit.design.select import Device
from netkit.errors import DeployError, Problem
from netkit.fleet.job import DeployWork, HistoryWork, PlanWork, RehearseWork, ResumeWork, RollbackWork, SiteJob
from netkit.fleet.lease import Connect, FabricLease, Note
from netkit.fleet.rabbitmq import LEASE, fabric_queue
from netkit.project.control import Requester, refuse_other_plan
from netkit.project.deploying import Deploying
from netkit.project.planning import Planned, from_devices, taking_over
from netkit.project.project import Project
from netkit.project.runs import found_run, is_unfinished, runs_folder
from netkit.report.history_text import entry, run_document, run_text, table

WAIT_S = 30.0
TAKEOVER_S = 960.0
"""Wait for the lease of a run that this job started: its worker may still be ending it safely."""
CHUNK_BYTES = 1024 * 1024
EVENTS_S = 0.5
"""Events of a run are collected for this long, and sent together."""
Answer = Iterator[bytes | Note]
Run = Callable[[EventHandler, Callable[[], bool]], Outcome]
Begin = Callable[[Deploying], Run]
Changing = DeployWork | ResumeWork | RollbackWork


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """A job at its site."""

    project: Project
    devices: Sequence[Device]
    """The shard."""
    job: SiteJob
    here: frozenset[str]
    """All devices of the fabric that may be at this site."""
    connect: Connect

    @property
    def limit(self) -> str:
        return ",".join(device.name for device in self.devices)

    @property
    def runs(self) -> Path:
        return runs_folder(self.project.fabric.name, self.project.lab)


def plan(asked: SiteRequest) -> Answer:
    """Yield a plan as `netkit plan` writes it to a file, in chunks."""
    work = asked.job.work
    if not isinstance(work, PlanWork):
        raise TypeError(work)
    deploying = Deploying.of(asked.project, here=asked.here)
    if work.undone is None:
        found = from_devices(asked.project, asked.job.limit, deploying.devices, here=asked.here).plan
    else:
        undone = _finished(asked.runs, work.undone)
        (found, _, _), _ = deploying.plan_rollback(undone, deploy.Options(), asked.job.limit)
    yield from _chunks(planning.write(found))


def history(asked: SiteRequest) -> Answer:
    """Yield the runs on the fabric, or one of them, as text and as a document, and the one that is left to resume."""
    work = asked.job.work
    if not isinstance(work, HistoryWork):
        raise TypeError(work)
    shown: dict[str, Any]
    if work.run is None:
        found = deploy.history(asked.runs)
        left = next((one.run for one in found if is_unfinished(asked.runs, one)), "")
        shown = {"text": table(found) if found else "", "document": [entry(one) for one in found], "unfinished": left}
    else:
        journal = found_run(asked.runs, work.run)
        shown = {"text": run_text(journal), "document": run_document(journal)}
    yield from _chunks(json.dumps(shown, default=asdict))


def _chunks(text: str) -> Iterator[bytes]:
    content = text.encode()
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]


def deploy_plan(asked: SiteRequest) -> Answer:
    """Deploy the plan that was approved: it is made again from the devices, and must be the same."""
    work = asked.job.work
    if not isinstance(work, DeployWork):
        raise TypeError(work)

    def begin(deploying: Deploying) -> Run:
        found = _planned(asked, deploying, work)
        return lambda on_event, is_stopping: deploying.run(found, work.options, on_event, is_stopping)

    yield from _changed(asked, work, begin)


def rehearse(asked: SiteRequest) -> Answer:
    """Try the plan as `deploy_plan` would begin it, through handles that cannot write."""
    work = asked.job.work
    if not isinstance(work, RehearseWork):
        raise TypeError(work)
    deploying = _deploying(asked, work)
    found = _planned(asked, deploying, work)
    deploying.control.begun("deploy", found.plan)
    yield _ended(deploying.rehearse(found, work.options), is_finished=True)


def _deploying(asked: SiteRequest, work: Changing | RehearseWork, **options: Any) -> Deploying:
    requester = Requester(asked.job.nonce, work.asked_by, work.names, work.approval, work.signature)
    return Deploying.of(asked.project, work.reason, work.skip_hook, requester=requester, here=asked.here, **options)


def _planned(asked: SiteRequest, deploying: Deploying, work: DeployWork | RehearseWork) -> Planned:
    """Make the plan again; PlanError if it is another one."""
    found = from_devices(asked.project, asked.job.limit, deploying.devices, here=asked.here)
    found = taking_over(found, work.options)
    refuse_other_plan(found.plan, work.plan)
    return found


def _ended(outcome: Outcome, *, is_finished: bool) -> bytes:
    return json.dumps({"is_finished": is_finished, "outcome": json.loads(deploy.model.write(outcome))}).encode()


def resume(asked: SiteRequest) -> Answer:
    """Continue an interrupted run."""
    work = asked.job.work
    if not isinstance(work, ResumeWork):
        raise TypeError(work)

    def begin(deploying: Deploying) -> Run:
        return lambda on_event, is_stopping: deploying.finish(work.run or "", on_event, is_stopping)

    yield from _changed(asked, work, begin)


def rollback(asked: SiteRequest) -> Answer:
    """Undo a run by the plan that was approved."""
    work = asked.job.work
    if not isinstance(work, RollbackWork):
        raise TypeError(work)

    def begin(deploying: Deploying) -> Run:
        undone = _finished(asked.runs, work.run).run
        limit, plan = asked.job.limit, work.plan
        return lambda on_event, is_stopping: deploying.take_back(
            undone, work.options, limit, on_event, is_stopping, approved=plan
        )

    yield from _changed(asked, work, begin)


def _changed(asked: SiteRequest, work: Changing, begin: Begin) -> Answer:
    """Begin or continue the run of a job under the lease; yield its events, and then its outcome."""
    stopping = Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    job = asked.job
    wait_s = TAKEOVER_S if _run_of(job, asked.runs) else WAIT_S
    queue_name = fabric_queue(LEASE, job.fabric)
    with FabricLease(
        asked.connect, queue_name, job.fabric, wait_s=wait_s, runs=asked.runs, is_stopping=stopping.is_set
    ) as lease:
        deploying = _deploying(asked, work, lease=lease.check)
        begun = _run_of(job, asked.runs)
        run = begin(deploying) if begun is None else _going_on(deploying, begun)
        if begun is not None or isinstance(work, ResumeWork):
            run = _after_last_holder(run)
        outcome = yield from _streamed(lambda on_event: run(on_event, stopping.is_set))
    is_finished = not outcome.run or Journal(asked.runs / outcome.run).outcome() is not None
    yield _ended(outcome, is_finished=is_finished)


def _after_last_holder(run: Run) -> Run:
    """What waits for the process that lost the lease: it writes nothing any more, but has not ended yet."""

    def patient(on_event: EventHandler, is_stopping: Callable[[], bool]) -> Outcome:
        until_s = time.monotonic() + TAKEOVER_S
        while True:
            try:
                return run(on_event, is_stopping)
            except LockedError:
                if is_stopping() or time.monotonic() > until_s:
                    raise
                time.sleep(1)

    return patient


def _going_on(deploying: Deploying, begun: Journal) -> Run:
    """What finishes the run of this job, and the rollback that follows if it failed."""
    outcome = begun.outcome()
    if outcome is None or begun.is_to_be_undone():
        return lambda on_event, is_stopping: deploying.finish(begun.run, on_event, is_stopping)
    back = next((one for one in _in_order(begun.folder.parent) if one.is_undoing(begun.run)), None)
    undone = back.outcome() if back else None
    if back is None or undone is not None:
        return lambda _, __: replace(outcome, rollback=undone)
    return lambda on_event, is_stopping: replace(outcome, rollback=deploying.finish(back.run, on_event, is_stopping))


def _run_of(job: SiteJob, runs: Path) -> Journal | None:
    """The run that an earlier delivery of this job has begun."""
    return next(
        (one for one in _in_order(runs) if any(start.job == job.nonce for start in known_provenance(one))), None
    )


def _in_order(runs: Path) -> Iterator[Journal]:
    """Yield the runs, oldest first: a rollback names the job of the run that it undoes, if that was delivered again."""
    return map(Journal, reversed(run_folders(runs)))


def _finished(runs: Path, name: str) -> Journal:
    journal = found_run(runs, name)
    if journal.outcome() is None:
        remedy = f"netkit deploy --resume {journal.run} --fleet DIR"
        raise DeployError(Problem(f"run {journal.run} has not finished", remedy))
    return journal


def _streamed(run: Callable[[EventHandler], Outcome]) -> Generator[Note, None, Outcome]:
    """Yield the events of a run as notes, and return its outcome."""
    events: queue.SimpleQueue[DeployEvent] = queue.SimpleQueue()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, events.put)
        while not running.done() or not events.empty():
            found: list[DeployEvent] = []
            with suppress(queue.Empty):
                found.append(events.get(timeout=EVENTS_S))
                time.sleep(EVENTS_S)
                while True:
                    found.append(events.get_nowait())
            if found:
                yield Note(json.dumps([asdict(one) for one in found]))
    return running.result()

"""Entry points of a deploy: apply a plan, resume or end an interrupted run, roll one back."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from nornir.core.plugins.runners import RunnerPlugin

from netkit import plan as planning
from netkit.deploy import preflight, refusal
from netkit.deploy.approval import Provenance
from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.connection import close, closing, opened
from netkit.deploy.fan_out import each, threads
from netkit.deploy.gate import Gate
from netkit.deploy.job import Connect, Job, PlannedReachability, code_of, is_access, text_of
from netkit.deploy.journal import (
    BEFORE,
    CONFIRMED,
    FINISHED,
    STAGE,
    Journal,
    JournalEntry,
    JournalError,
    Orders,
    known_provenance,
)
from netkit.deploy.lock import lock_fabric
from netkit.deploy.model import (
    ConfigState,
    DeployEvent,
    DeviceOutcome,
    DeviceResult,
    EventHandler,
    Options,
    Outcome,
    Phase,
)
from netkit.deploy.preflight import Task, first_tasks, stages_of
from netkit.deploy.resume import last_known, left_since, refuse_unsettled, resume_device
from netkit.deploy.rollout import INTERRUPTED, Rollout, not_started, untouched
from netkit.deploy.wave import waves
from netkit.design.fabric import Fabric
from netkit.errors import AccessError, DeployError, Problem
from netkit.plan import Plan, Running, Unreachable
from netkit.platforms.config import Files
from netkit.platforms.driver import Reader

ENDED = "ended before its last device, for a rollback"


def ignore_event(_event: DeployEvent) -> None:
    """Do nothing: the default `on_event`."""


def never() -> bool:
    """The default `is_stopping`."""
    return False


def apply(
    plan: Plan,
    fabric: Fabric,
    intended: Mapping[str, Files],
    *,
    connect: Connect,
    gate: Gate,
    options: Options,
    journal: Journal,
    provenance: Provenance | None = None,
    on_event: EventHandler = ignore_event,
    owner: Mapping[str, Files] | None = None,
    runner: RunnerPlugin | None = None,
    clock: DeployClock = CLOCK,
    is_stopping: Callable[[], bool] = never,
    undoes: str = "",
) -> Outcome:
    """Deploy a plan wave by wave and return the outcome of each device.

    Raise DeployError, before anything is changed, if the plan must not be deployed or another deploy is running.
    """
    orders = Orders(
        plan, _changed_files(plan, intended), None if owner is None else _changed_files(plan, owner), options, undoes
    )
    stages = stages_of(plan, orders.intended, orders.owner, options.limit, fabric)
    refusal.check(plan, fabric, intended, first_tasks(stages), options)
    job = _job(orders, stages[0], fabric, connect, gate, journal, on_event, runner, clock, is_stopping)
    with lock_fabric(journal.folder.parent, fabric.name, journal.run):
        refuse_unsettled(journal.folder.parent, clock)
        journal.start(orders, provenance)
        try:
            return _run(Rollout(job, stages, _untouched(orders)))
        finally:
            journal.close()


def resume(
    fabric: Fabric,
    *,
    connect: Connect,
    gate: Gate,
    journal: Journal,
    provenance: Provenance | None = None,
    on_event: EventHandler = ignore_event,
    runner: RunnerPlugin | None = None,
    clock: DeployClock = CLOCK,
    is_stopping: Callable[[], bool] = never,
) -> Outcome:
    """Finish an interrupted run: first the devices left half done, then those not started."""
    orders = journal.orders()
    stages = stages_of(orders.plan, orders.intended, orders.owner, orders.options.limit, fabric)
    job = _job(orders, stages[0], fabric, connect, gate, journal, on_event, runner, clock, is_stopping)
    with lock_fabric(journal.folder.parent, fabric.name, journal.run):
        if journal.outcome() is not None:
            raise DeployError(Problem(f"run {journal.run} has finished", "make a new plan for what is left to do"))
        refusal.check(orders.plan, fabric, orders.intended, first_tasks(stages), orders.options, is_resumed=True)
        if provenance is not None:
            journal.resumed(provenance)
        try:
            job = replace(job, memory=journal.memory())
            number, earlier = _interrupted_state(job, stages, journal.entries())
            found = [*_untouched(orders), *earlier]
            return _run(Rollout(job, stages, found, first=number))
        finally:
            journal.close()


def end(
    fabric: Fabric,
    *,
    connect: Connect,
    gate: Gate,
    journal: Journal,
    provenance: Provenance | None = None,
    on_event: EventHandler = ignore_event,
    runner: RunnerPlugin | None = None,
    clock: DeployClock = CLOCK,
) -> Outcome:
    """End an interrupted run where it is, so that it can be rolled back.

    Unconfirmed changes are reverted and drained devices get their traffic back; nothing else is changed.
    """
    orders = journal.orders()
    stages = stages_of(orders.plan, orders.intended, orders.owner, orders.options.limit, fabric)
    job = _job(orders, stages[0], fabric, connect, gate, journal, on_event, runner, clock, never)
    with lock_fabric(journal.folder.parent, fabric.name, journal.run):
        if (outcome := journal.outcome()) is not None:
            return outcome
        if provenance is not None:
            journal.resumed(provenance)
        try:
            number, earlier = _interrupted_state(job, stages, journal.entries(), is_ending=True)
            found = [*_untouched(orders), *earlier]
            return _run(Rollout(job, stages, found, first=number, stopped=ENDED))
        finally:
            journal.close()


def undo(
    undone: Journal,
    fabric: Fabric,
    *,
    connect: Connect,
    gate: Gate,
    options: Options,
    journal: Journal,
    back: "RollbackPlan | None" = None,
    provenance: Provenance | None = None,
    on_event: EventHandler = ignore_event,
    runner: RunnerPlugin | None = None,
    clock: DeployClock = CLOCK,
    is_stopping: Callable[[], bool] = never,
) -> Outcome:
    """Roll back what a run changed: the same deploy, with the sides of the plan swapped.

    `back` is the rollback plan if it is already known. With backward options, devices that cannot be reached are
    skipped, and the provenance is that of the run.
    """
    plan, before, owner = back or plan_rollback(undone, fabric, connect, lambda _plan: options.limit)
    if provenance is None and options.is_backward and (starts := known_provenance(undone)):
        provenance = starts[-1].rolling_back(undone.run, clock.wall_s())
    return apply(
        plan,
        fabric,
        before,
        connect=connect,
        gate=gate,
        options=options,
        journal=journal,
        provenance=provenance,
        on_event=on_event,
        owner=owner,
        runner=runner,
        clock=clock,
        is_stopping=is_stopping,
        undoes=undone.run,
    )


def rollback_options(failed: Journal) -> Options:
    """The run's own options, extended to all it changed, for rolling it back after a failure."""
    return replace(failed.orders().options, limit=None, on_failure="stop", is_backward=True)


ReadOthers = Callable[[tuple[str, ...]], Mapping[str, Running | Unreachable]]
RollbackPlan = tuple[Plan, Mapping[str, Files], Mapping[str, Files]]
"""The plan of the rollback, the files it leads to, and the files that define what netkit owns."""


def plan_rollback(
    undone: Journal,
    fabric: Fabric,
    connect: Connect,
    limit: Callable[[Plan], Collection[str] | None] = lambda _plan: None,
    read_others: ReadOthers = lambda _names: {},
) -> RollbackPlan:
    """Plan the rollback of a run, for the devices that `limit` chooses of all it changed.

    What the devices run that it changed is taken from the journal; those in an unknown state, and those another
    rollback has started on since, are read. The order takes all others as `read_others` reads them, else as the
    journals know them, else as they are intended. Of what the run changed, spines that cannot be read may carry
    nothing; leaves carry the traffic of what they last confirmed.
    """
    orders = undone.orders()
    changed = _changed(undone, orders)
    before = {name: _files(running) for name, (_, running) in changed.items()}
    owner = {name: (orders.owner or orders.intended)[name] for name in changed}
    current: dict[str, Running | Unreachable] = {
        name: _left_running(orders, fabric, name, _left(one), running) for name, (one, running) in changed.items()
    }
    gone_back = undone.gone_back()
    in_doubt = [name for name, (one, _) in changed.items() if _left(one) is ConfigState.UNKNOWN or name in gone_back]
    planned = {one.name: one for one in orders.plan.devices}

    def read(name: str) -> Running | Unreachable:
        return _read_running(connect, undone.run, changed[name][0], Task(planned[name], before[name]))

    current |= each(threads(orders.options.parallel), in_doubt, read)
    whole = planning.make(fabric, current, before, owner=owner, is_part=True)
    chosen = limit(whole)
    names = set(changed) if chosen is None else set(chosen)
    names_here = [*(switch.name for switch in fabric.switches), *(host.name for host in fabric.hosts)]
    others = _others(undone, tuple(name for name in names_here if name not in changed), read_others)
    leaves = [leaf.name for leaf in fabric.tier("leaf") if isinstance(current.get(leaf.name), Unreachable)]
    reverted: dict[str, Running | None] = {name: _reverted(undone, fabric, name) for name in leaves}
    reverted |= left_since(undone.run, undone.folder.parent, leaves, lambda run, name: _reverted(run, fabric, name))

    def beside() -> Mapping[str, Running | Unreachable]:
        return {**others(), **{name: running for name, running in reverted.items() if running is not None}}

    return planning.limited(fabric, whole, names, planning.sides_of(current, before, owner), beside), before, owner


def _changed(undone: Journal, orders: Orders) -> dict[str, tuple[DeviceOutcome, Running]]:
    """What a run changed: the outcome of each device, and what it ran before."""
    outcome = undone.outcome()
    if outcome is None:
        raise DeployError(Problem(f"run {undone.run} has not finished", f"netkit rollback {undone.run} ends it first"))
    planned = {one.name for one in orders.plan.devices}
    known = planned | {one.name for one in orders.plan.unreachable}
    files_of_run = {"intended.json": orders.intended, "owner.json": orders.owner or orders.intended}
    changed = [one for one in outcome.devices if one.state is not ConfigState.AS_BEFORE]
    if unknown := [one.device for one in changed if one.device not in known]:
        raise DeployError(
            Problem(f"run {undone.run}: {unknown[0]!r} is not a device of its plan", "its files are damaged")
        )
    found: dict[str, tuple[DeviceOutcome, Running]] = {}
    for one in changed:
        before = undone.before(one.device) if one.device in planned else None
        if before is None and one.wave:
            file = str(undone.folder / BEFORE / f"{one.device}.json")
            raise DeployError(Problem("is missing: what the device ran before the run", "it is damaged", file=file))
        if before is None:
            continue
        for file, files in files_of_run.items():
            if one.device not in files:
                raise DeployError(
                    Problem("lacks a device that the run changed", "it is damaged", file=str(undone.folder / file))
                )
        found[one.device] = one, before
    if not found:
        raise DeployError(Problem(f"run {undone.run} changed nothing that could be rolled back", "netkit history"))
    return found


def _left_running(orders: Orders, fabric: Fabric, name: str, state: ConfigState, before: Running) -> Running:
    """What a device runs if a run left it in one of the states that it leads to."""
    files = orders.intended[name]
    if state is ConfigState.BOTH:
        kept = next(bridge.kept for bridge in orders.plan.bridges if bridge.device == name)
        files = planning.keeping(fabric, name, files, kept)
    return Running({file: files.get(file) for file in before.files}, before.version)


def _reverted(run: Journal, fabric: Fabric, name: str) -> Running | None:
    """What a device runs once its unconfirmed change has reverted; None if it may have got the confirmation.

    Nothing may depend on a device that cannot be read, but a leaf that lives still carries the traffic of its hosts.
    A damaged journal does not prove that no confirmation was sent.
    """
    try:
        entries, before, orders = run.entries(), run.before(name), run.orders()
    except DeployError:
        return None
    stage, confirmed, is_sent = 0, -1, False
    for entry in entries:
        if entry.step == STAGE:
            stage = int(entry.note)
        elif entry.device == name and entry.step in {Phase.CONFIRM, CONFIRMED}:
            is_sent = entry.step == Phase.CONFIRM
            confirmed = confirmed if is_sent else stage
    if is_sent or before is None or name not in orders.intended:
        return None
    if confirmed < 0:
        return before
    is_bridged = confirmed == 0 and any(bridge.device == name for bridge in orders.plan.bridges)
    return _left_running(orders, fabric, name, ConfigState.BOTH if is_bridged else ConfigState.INTENDED, before)


def _others(undone: Journal, names: tuple[str, ...], read: ReadOthers) -> planning.ReadBeside:
    """What the devices run that a run did not change, as far as it is known."""

    def others() -> Mapping[str, Running | Unreachable]:
        found, runs = dict(read(names)), undone.folder.parent
        missed = [name for name in names if not isinstance(found.get(name), Running)]
        as_intended = {one.name for one in undone.orders().plan.devices if one.is_unchanged}
        known: dict[str, Running | None] = {**last_known(runs, [name for name in missed if name not in as_intended])}
        known |= {name: running for name in missed if (running := undone.before(name)) is not None}
        known |= left_since(undone.run, runs, missed)
        return found | {name: running for name, running in known.items() if running is not None}

    return others


def _files(running: Running) -> dict[str, str]:
    return {file: text for file, text in running.files.items() if text is not None}


def _left(one: DeviceOutcome) -> ConfigState:
    """What a run left on a device. One that was changed since by others is not read, so that it is refused again."""
    is_refused = one.result is DeviceResult.REFUSED and one.state is ConfigState.UNKNOWN
    return ConfigState.BOTH if is_refused else one.state


def _read_running(connect: Connect, run: str, left: DeviceOutcome, task: Task) -> Running | Unreachable:
    """The actual configuration of a device that a run left in an unknown state, if it can be parsed."""
    driver = connect(left.device)
    try:
        driver.open()
        return preflight.read_device(driver, task).running
    except AccessError as error:
        text = text_of(error)
        known = "; ".join(one for one in left.reasons if one != text) or "its change had begun"
        remedy = "an unconfirmed change reverts by itself; once the device answers, see netkit plan"
        why = f"{text}; last known: {known}".replace(f"{left.device}: ", "")
        return Unreachable(f"{why}; {remedy}, and netkit rollback {run}")
    finally:
        close(driver)


def _untouched(orders: Orders) -> list[DeviceOutcome]:
    missed = ConfigState.UNKNOWN if orders.options.is_backward else ConfigState.AS_BEFORE
    return untouched(orders.plan, orders.options.limit, missed)


def _changed_files(plan: Plan, files: Mapping[str, Files]) -> dict[str, Files]:
    return {device.name: files[device.name] for device in plan.changed if device.name in files}


def _job(
    orders: Orders,
    tasks: Mapping[str, Task],
    fabric: Fabric,
    connect: Connect,
    gate: Gate,
    journal: Journal,
    on_event: EventHandler,
    runner: RunnerPlugin | None,
    clock: DeployClock,
    is_stopping: Callable[[], bool],
) -> Job:
    return Job(
        plan=orders.plan,
        fabric=fabric,
        tasks=tasks,
        connect=connect,
        gate=gate,
        options=orders.options,
        journal=journal,
        on_event=on_event,
        clock=clock,
        runner=runner or threads(orders.options.parallel),
        is_stopping=is_stopping,
        model=PlannedReachability(orders.plan, fabric, is_back=bool(orders.undoes)),
        began_s=clock.steady_s(),
        undoes=orders.undoes,
    )


def _run(rollout: Rollout) -> Outcome:
    with _while_written(rollout):
        rollout.run()
    job = rollout.job
    ended = {**{one.device: one for one in not_started(job.plan, rollout.ended)}, **rollout.ended}
    if job.undoes and rollout.stopped != INTERRUPTED:
        drained = Journal(job.journal.folder.parent / job.undoes).drained()
        ended |= each(job.runner, drained.intersection(ended), lambda name: _undrained(job, ended[name]))
    names = [*(device.name for device in job.plan.devices), *(missed.name for missed in job.plan.unreachable)]
    devices = tuple(ended[name] for name in names)
    outcome = Outcome(job.journal.run, job.plan.fabric, devices, rollout.stopped, undoes=job.undoes)
    if rollout.stopped == INTERRUPTED:
        return outcome
    with _while_written(rollout):
        job.journal.finish(outcome)
    return replace(outcome, stopped=rollout.stopped)


def _undrained(job: Job, outcome: DeviceOutcome) -> DeviceOutcome:
    """Give a device its traffic back that the run before drained and then lost."""
    if outcome.is_failure:
        return outcome
    try:
        with suppress(JournalError):
            job.journal.step(Phase.UNDRAIN, outcome.device, wave=outcome.wave)
        with closing(opened(job, outcome.device)) as driver:
            driver.undrain()
    except Exception as error:
        reasons = (*outcome.reasons, text_of(error), "it is still drained")
        return replace(outcome, result=DeviceResult.FAILED, reasons=reasons, exit_code=code_of(error))
    return replace(outcome, reasons=(*outcome.reasons, "it was left drained, and has its traffic back"))


@contextmanager
def _while_written(rollout: Rollout) -> Iterator[None]:
    """Stop a rollout when its journal cannot be written; the run can be resumed later."""
    try:
        yield
    except JournalError as error:
        rollout.stopped = str(error)


def _interrupted_state(
    job: Job, stages: Sequence[Mapping[str, Task]], entries: Iterable[JournalEntry], *, is_ending: bool = False
) -> tuple[int, list[DeviceOutcome]]:
    """The stage in which the run was interrupted, and the outcomes of the devices it had started.

    Devices that are as before are changed again. With `is_ending`, unconfirmed changes are reverted.
    """
    number = 0
    open_entries: dict[str, list[JournalEntry]] = {}
    ended: dict[str, DeviceOutcome] = {}
    for entry in entries:
        if entry.step == STAGE:
            number = min(int(entry.note), len(stages) - 1)
            for name in stages[number]:
                ended.pop(name, None)
                open_entries.pop(name, None)
        if entry.step == FINISHED or not entry.device:
            continue
        if entry.step == Phase.PREFLIGHT:
            open_entries[entry.device] = []
        if entry.step == Phase.END and entry.outcome is not None:
            ended[entry.device] = entry.outcome
            continue
        open_entries.setdefault(entry.device, []).append(entry)
    tasks = stages[number]
    in_stage = replace(job, tasks=tasks, is_finishing=number > 0)
    left = [name for name in open_entries if name not in ended and name in tasks]

    def resume_one(name: str) -> DeviceOutcome | None:
        return resume_device(in_stage, tasks[name], open_entries[name], is_ending=is_ending)

    found = each(job.runner, left, resume_one)
    return number, [*ended.values(), *(outcome for outcome in found.values() if outcome is not None)]


def rehearse(
    plan: Plan,
    fabric: Fabric,
    intended: Mapping[str, Files],
    *,
    connect: Callable[[str], Reader],
    options: Options,
    runner: RunnerPlugin | None = None,
) -> Outcome:
    """How a deploy would begin. It gets no handle that can change a device, and writes no journal."""
    limit = options.limit
    tasks = first_tasks(stages_of(plan, intended, None, limit, fabric))
    refusal.check(plan, fabric, intended, tasks, options)
    wave_of = {name: wave.number for wave in reversed(waves(plan, fabric, options)) for name in wave.devices}

    def checked(name: str) -> DeviceOutcome:
        try:
            reader = connect(name)
            reader.open()
            try:
                preflight.check(preflight.read_device(reader, tasks[name]), tasks[name])
            finally:
                reader.close()
        except Exception as error:
            result = DeviceResult.UNREACHABLE if is_access(error) else DeviceResult.REFUSED
            return DeviceOutcome(name, result, ConfigState.AS_BEFORE, (text_of(error),), wave_of[name], code_of(error))
        return DeviceOutcome(name, DeviceResult.READY, ConfigState.AS_BEFORE, wave=wave_of[name])

    found = each(runner or threads(options.parallel), tasks, checked)
    outcomes = {outcome.device: outcome for outcome in (*untouched(plan, limit), *found.values())}
    names = [*(device.name for device in plan.devices), *(missed.name for missed in plan.unreachable)]
    return Outcome("", fabric.name, tuple(outcomes[name] for name in names), is_dry_run=True)

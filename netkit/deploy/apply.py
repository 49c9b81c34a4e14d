"""The ways into a deploy: do it, finish one that was killed, take one back, or only try it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from nornir.core.plugins.runners import RunnerPlugin

from netkit import plan as planning
from netkit.deploy import leftover, refusal
from netkit.deploy.clock import CLOCK, Clock
from netkit.deploy.connection import close
from netkit.deploy.fan_out import each, threads
from netkit.deploy.gate import Gate
from netkit.deploy.job import Connect, Job, text_of
from netkit.deploy.journal import FINISHED, Entry, Journal, JournalError, Orders
from netkit.deploy.lock import held
from netkit.deploy.look import Task
from netkit.deploy.roll import INTERRUPTED, Rollout, not_started, untouched
from netkit.deploy.shape import DeviceOutcome, Event, Options, Outcome, Phase, State, Tell
from netkit.design.fabric import Fabric
from netkit.errors import AccessError, DeployError, Problem
from netkit.plan import Plan, Running, Unreachable
from netkit.platforms.config import Files


def quiet(_event: Event) -> None:
    """Show nothing."""


def never() -> bool:
    """Whether somebody asked the deploy to end: nobody did."""
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
    tell: Tell = quiet,
    owner: Mapping[str, Files] | None = None,
    runner: RunnerPlugin | None = None,
    clock: Clock = CLOCK,
    is_stopping: Callable[[], bool] = never,
    undoes: str = "",
) -> Outcome:
    """Change the devices of a plan, wave after wave, and return how each came out.

    DeployError when the plan must not be deployed, or somebody else deploys on this fabric: then nothing happened.
    """
    orders = Orders(plan, _of(plan, intended), None if owner is None else _of(plan, owner), options, undoes)
    tasks = _tasks(orders)
    refusal.check(plan, fabric, intended, tasks, options)
    job = _job(orders, tasks, fabric, connect, gate, journal, tell, runner, clock, is_stopping)
    with held(journal.folder.parent, fabric.name, journal.run):
        journal.start(orders)
        try:
            return _rolled(job, _untouched(orders))
        finally:
            journal.close()


def resume(
    fabric: Fabric,
    *,
    connect: Connect,
    gate: Gate,
    journal: Journal,
    tell: Tell = quiet,
    runner: RunnerPlugin | None = None,
    clock: Clock = CLOCK,
    is_stopping: Callable[[], bool] = never,
) -> Outcome:
    """Finish a run that was killed or interrupted: first the devices it left half done, then those it never came to."""
    orders = journal.orders()
    tasks = _tasks(orders)
    job = _job(orders, tasks, fabric, connect, gate, journal, tell, runner, clock, is_stopping)
    with held(journal.folder.parent, fabric.name, journal.run):
        if journal.outcome() is not None:
            raise DeployError(Problem(f"run {journal.run} has finished", "make a new plan for what is left to do"))
        refusal.check(orders.plan, fabric, orders.intended, tasks, orders.options)
        try:
            earlier = _left_behind(job, journal.entries())
            return _rolled(job, [*_untouched(orders), *earlier])
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
    tell: Tell = quiet,
    runner: RunnerPlugin | None = None,
    clock: Clock = CLOCK,
    is_stopping: Callable[[], bool] = never,
) -> Outcome:
    """Take back what a run changed: the same deploy, with the sides of the plan swapped.

    Backward, devices that are not known to run either state are looked at first; who is out of reach is left alone.
    """
    plan, before, owner = way_back(undone, fabric, connect if options.is_backward else None)
    return apply(
        plan,
        fabric,
        before,
        connect=connect,
        gate=gate,
        options=options,
        journal=journal,
        tell=tell,
        owner=owner,
        runner=runner,
        clock=clock,
        is_stopping=is_stopping,
        undoes=undone.run,
    )


def backward(failed: Journal) -> Options:
    """Return the options by which a run that failed is taken back: its own, on all that it has changed."""
    return replace(failed.orders().options, limit=None, on_failure="stop", is_backward=True)


def way_back(
    undone: Journal, fabric: Fabric, connect: Connect | None = None
) -> tuple[Plan, Mapping[str, Files], Mapping[str, Files]]:
    """Return the plan that takes a run back, the files it leads to, and those that say what is netkit's."""
    outcome, orders = undone.outcome(), undone.orders()
    if outcome is None:
        raise DeployError(Problem(f"run {undone.run} has not finished", f"netkit deploy --resume {undone.run}"))
    names = [device.device for device in outcome.devices if device.state is not State.AS_BEFORE]
    found = {name: running for name in names if (running := undone.before(name)) is not None}
    if not found:
        raise DeployError(Problem(f"run {undone.run} changed nothing that could be taken back", "netkit history"))
    before = {
        name: {file: text for file, text in running.files.items() if text is not None}
        for name, running in found.items()
    }
    there: dict[str, Running | Unreachable] = {
        name: Running({file: orders.intended[name].get(file) for file in running.files}, running.version)
        for name, running in found.items()
    }
    for device in outcome.devices if connect is not None else ():
        if connect is not None and device.device in found and device.state is State.UNKNOWN:
            there[device.device] = _read(connect, undone.run, device, found[device.device].version)
    owner = {name: (orders.owner or orders.intended)[name] for name in found}
    return planning.make(fabric, there, before, owner=owner), before, owner


def _read(connect: Connect, run: str, left: DeviceOutcome, version: str) -> Running | Unreachable:
    """Return what a device runs that a run has left in a state nobody knows."""
    driver = connect(left.device)
    try:
        driver.open()
        return Running(driver.running_files(), version)
    except AccessError as error:
        known = "; ".join(left.reasons) or "its change had begun"
        what = "what it did not confirm it takes back by itself; once it answers, see netkit plan"
        return Unreachable(f"{text_of(error)}; as far as known: {known}; {what}, and netkit rollback {run}")
    finally:
        close(driver)


def _untouched(orders: Orders) -> list[DeviceOutcome]:
    missed = State.UNKNOWN if orders.options.is_backward else State.AS_BEFORE
    return untouched(orders.plan, orders.options.limit, missed)


def _tasks(orders: Orders) -> dict[str, Task]:
    limit = orders.options.limit
    return {
        device.name: Task(device, orders.intended.get(device.name, {}), (orders.owner or {}).get(device.name))
        for device in orders.plan.changed
        if limit is None or device.name in limit
    }


def _of(plan: Plan, files: Mapping[str, Files]) -> dict[str, Files]:
    return {device.name: files[device.name] for device in plan.changed if device.name in files}


def _job(
    orders: Orders,
    tasks: Mapping[str, Task],
    fabric: Fabric,
    connect: Connect,
    gate: Gate,
    journal: Journal,
    tell: Tell,
    runner: RunnerPlugin | None,
    clock: Clock,
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
        tell=tell,
        clock=clock,
        runner=runner or threads(orders.options.parallel),
        is_stopping=is_stopping,
        began_s=clock.wall_s(),
    )


def _rolled(job: Job, earlier: Iterable[DeviceOutcome]) -> Outcome:
    rollout = Rollout(job, earlier)
    with _while_written(rollout):
        rollout.run()
    ended = {**{one.device: one for one in not_started(job.plan, rollout.ended)}, **rollout.ended}
    names = [*(device.name for device in job.plan.devices), *(missed.name for missed in job.plan.unreachable)]
    outcome = Outcome(job.journal.run, job.plan.fabric, tuple(ended[name] for name in names), rollout.stopped)
    if rollout.stopped == INTERRUPTED:
        return outcome
    with _while_written(rollout):
        job.journal.finish(outcome)
    return replace(outcome, stopped=rollout.stopped)


@contextmanager
def _while_written(rollout: Rollout) -> Iterator[None]:
    """Stop a rollout whose journal cannot be written any more; it stays to be resumed."""
    try:
        yield
    except JournalError as error:
        rollout.stopped = str(error)


def _left_behind(job: Job, entries: Iterable[Entry]) -> list[DeviceOutcome]:
    """Return how the devices came out that a killed run had begun with; those as before have their turn again."""
    open_entries: dict[str, list[Entry]] = {}
    ended: dict[str, DeviceOutcome] = {}
    for entry in entries:
        if entry.step == FINISHED or not entry.device:
            continue
        if entry.step == Phase.PREFLIGHT:
            open_entries[entry.device] = []
        if entry.step == Phase.END and entry.outcome is not None:
            ended[entry.device] = entry.outcome
            continue
        open_entries.setdefault(entry.device, []).append(entry)
    left = [name for name in open_entries if name not in ended and name in job.tasks]

    def in_order(name: str) -> DeviceOutcome | None:
        return leftover.bring_in_order(job, job.tasks[name], open_entries[name])

    found = each(job.runner, left, in_order)
    return [*ended.values(), *(outcome for outcome in found.values() if outcome is not None)]

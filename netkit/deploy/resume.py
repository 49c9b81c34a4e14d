"""What earlier runs left: devices they deployed to, and rollouts to resume or roll back. See docs/decisions/0013."""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from netkit.deploy.clock import CLOCK, DeployClock
from netkit.deploy.connection import closing, discard, opened
from netkit.deploy.device_rollout import DeviceRollout, Window
from netkit.deploy.job import Job
from netkit.deploy.journal import CONFIRMED, SAMPLE, Journal, JournalEntry, run_folders
from netkit.deploy.model import ConfigState, DeviceOutcome, Phase
from netkit.deploy.preflight import Task, compared, ending, read_device
from netkit.errors import DeployError, DeviceError, NetkitError, Problem
from netkit.plan import Running
from netkit.platforms.driver import InStep

INTERRUPTED = DeviceError(Problem("the run was interrupted here"))


def refuse_unsettled(root: Path, clock: DeployClock = CLOCK) -> None:
    """Raise DeployError while devices may still revert what the newest run left unconfirmed."""
    newest = next(iter(run_folders(root)), None)
    if newest is None:
        return
    journal = Journal(newest, clock)
    try:
        entries = () if journal.outcome() is not None else journal.entries()
    except DeployError:
        return  # a damaged run cannot be resumed; a device with a pending change is refused when its rollout begins
    left_s: dict[str, float] = {}
    for entry in entries:
        if entry.step == Phase.COMMIT:
            _, began_s = _commit_time(entry, clock)
            left_s[entry.device] = began_s + entry.revert_s - clock.steady_s()
        elif entry.step in {CONFIRMED, Phase.END}:
            left_s.pop(entry.device, None)
    if waiting := {device: left for device, left in left_s.items() if left > 0}:
        what = f"run {journal.run} was interrupted: {', '.join(waiting)} may still revert its change"
        remedy = f"continue it: netkit deploy --resume {journal.run}; or wait {max(waiting.values()):.0f} s"
        raise DeployError(Problem(what, remedy))


def settling_s(journal: Journal, clock: DeployClock = CLOCK) -> dict[str, float]:
    """The devices that an interrupted run left drained or changed, and how long one that does not answer is asked."""
    settle_s = journal.orders().options.settle_s
    found: dict[str, float] = {}
    for entry in journal.entries():
        if entry.step in {Phase.PREFLIGHT, Phase.END}:
            found.pop(entry.device, None)
        elif entry.step == Phase.DRAIN:
            found[entry.device] = settle_s
        elif entry.step == Phase.COMMIT:
            _, began_s = _commit_time(entry, clock)
            found[entry.device] = max(0.0, began_s + entry.revert_s + 2 * settle_s - clock.steady_s())
    return found


def resume_device(
    job: Job, task: Task, entries: Sequence[JournalEntry], *, is_ending: bool = False
) -> DeviceOutcome | None:
    """Finish the device's rollout; return None if it is as before and may be rolled out again.

    `entries` are those of its last rollout. With `is_ending`, an unconfirmed change is reverted.
    """
    rollout = _restored(job, task, entries)
    failed = next((entry.outcome for entry in reversed(entries) if entry.outcome is not None), None)
    if failed is not None:
        return rollout.ended(rollout.outcome_after(failed, rollout.settled()))
    if rollout.window is None and not rollout.is_drained:
        if rollout.is_loaded:
            discard(job, task.name)
        return None
    job.show(Phase.SETTLE, task.name, rollout.wave)
    try:
        if rollout.window is not None and not is_ending and _confirmed_late(rollout, rollout.window):
            return rollout.ended(rollout.done())
        ending = rollout.settled()
    except Exception as error:
        return rollout.ended(rollout.recovered(error))
    if ending.state is ConfigState.AS_BEFORE:
        return None
    return rollout.ended(rollout.outcome_after(rollout.failure(INTERRUPTED), ending))


def _restored(job: Job, task: Task, entries: Sequence[JournalEntry]) -> DeviceRollout:
    """Restore the state of a rollout from its journal entries."""
    rollout = DeviceRollout(job, task, entries[-1].wave)
    steps = {entry.step for entry in entries}
    rollout.sample = next((entry.note for entry in reversed(entries) if entry.step == SAMPLE), "")
    before = job.journal.before(task.name)
    if before is not None:
        rollout.ending = ending(compared(before, task))
    rollout.is_drained, rollout.is_loaded = Phase.DRAIN in steps, Phase.LOAD in steps
    commit = next((entry for entry in entries if entry.step == Phase.COMMIT), None)
    if commit is not None:
        # The journal does not hold when the device's timer started; a commit that took longer was given up. After a
        # reboot of this machine only the wall clock shows the age of the commit, and it may have been set: nothing
        # is confirmed by it.
        now_s, settle_s = job.clock.steady_s(), job.options.settle_s
        is_known, began_s = _commit_time(commit, job.clock)
        rollout.window = Window(
            began_s + commit.revert_s if is_known else min(now_s, began_s + commit.revert_s),
            began_s + commit.revert_s + settle_s,
            began_s + settle_s,
            is_confirming=Phase.CONFIRM in steps,
            is_confirmed=CONFIRMED in steps,
        )
    return rollout


def _commit_time(commit: JournalEntry, clock: DeployClock) -> tuple[bool, float]:
    """The steady-clock time of a commit, and whether that clock has run on since."""
    if commit.boot and commit.boot == clock.boot_id():
        return True, commit.steady_s
    return False, clock.steady_s() - max(0.0, clock.wall_s() - commit.at_s)


def _confirmed_late(rollout: DeviceRollout, window: Window) -> bool:
    """Try to confirm an unconfirmed change; False if it cannot be kept, or too little time is left to judge it."""
    if rollout.left_s(window) < rollout.job.options.settle_s:
        return False
    with closing(opened(rollout.job, rollout.name)) as driver:
        if not driver.has_pending_commit() or not read_device(driver, rollout.task).is_intended():
            return False
        if isinstance(driver, InStep) and not driver.is_applied():
            return False  # half a change may look whole in its files
        rollout.finish(driver, window)
    return True


def deployed(runs: Path, names: Collection[str]) -> frozenset[str]:
    """The devices that some run left as intended, and no later run rolled back.

    A rollback restores what ran before the run that it undoes, so both of them prove nothing. Nor does a damaged run.
    """
    found: set[str] = set()
    undone: dict[str, set[str]] = {}
    for folder in run_folders(runs):
        if found >= set(names):
            break
        journal = Journal(folder)
        try:
            back, outcomes = journal.undoes(), _outcomes(journal)
        except DeployError:
            continue
        for outcome in outcomes:
            gone = undone.setdefault(outcome.device, set())
            if outcome.state is not ConfigState.INTENDED or folder.name in gone:
                continue
            if back:
                gone.add(back)
            else:
                found.add(outcome.device)
    return frozenset(found & set(names))


def last_known(runs: Path, names: Collection[str]) -> dict[str, Running]:
    """What the newest run that changed a device left on it, if that is known."""
    return {name: running for name, running in left_since("", runs, names).items() if running is not None}


def left_since(
    run: str,
    runs: Path,
    names: Collection[str],
    reverted: Callable[[Journal, str], Running | None] = lambda _run, _name: None,
) -> dict[str, Running | None]:
    """What the newest run that changed a device left on it, among those after a run.

    Where its outcome does not say it, `reverted` does: what the device runs once an unconfirmed change has reverted.
    None if that is not known either, and for those that a damaged run changed, or may have.
    """
    found: dict[str, Running | None] = {}
    for folder in run_folders(runs):
        changed = set(names) - found.keys()
        if not changed or folder.name <= run:
            break
        journal = Journal(folder)
        try:
            changed &= {entry.device for entry in journal.entries() if entry.step == Phase.COMMIT}
            if not changed:
                continue
            files, outcomes = journal.orders().intended, {one.device: one for one in _outcomes(journal)}
            for name in changed:
                state = outcomes[name].state if name in outcomes else ConfigState.UNKNOWN
                if state is ConfigState.AS_BEFORE:
                    found[name] = journal.before(name)
                elif state is ConfigState.INTENDED and name in files:
                    found[name] = Running(files[name])
                else:
                    found[name] = reverted(journal, name)
        except NetkitError:
            found |= dict.fromkeys(changed)
    return found


def _outcomes(journal: Journal) -> Iterable[DeviceOutcome]:
    """The outcome of each device, or those known so far of a run that has not finished."""
    outcome = journal.outcome()
    if outcome is not None:
        return outcome.devices
    return [one.outcome for one in journal.entries() if one.step == Phase.END and one.outcome is not None]

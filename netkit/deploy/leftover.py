"""What a killed run left of a device's turn: gone on with where it can be, taken back where not."""

from collections.abc import Sequence

from netkit.deploy.connection import closing, discard, opened
from netkit.deploy.job import Job
from netkit.deploy.journal import CONFIRMED, SAMPLE, Entry
from netkit.deploy.look import Task, ending, look, seen
from netkit.deploy.settle import Window
from netkit.deploy.shape import DeviceOutcome, Phase, State
from netkit.deploy.turn import Turn
from netkit.errors import DeviceError, Problem
from netkit.platforms.driver import InStep

INTERRUPTED = DeviceError(Problem("the run was interrupted here"))


def bring_in_order(job: Job, task: Task, entries: Sequence[Entry]) -> DeviceOutcome | None:
    """Return how a device came out; None when it is as it was before, and may have its turn again.

    `entries` are those of its last turn.
    """
    turn = _turn(job, task, entries)
    failed = next((entry.outcome for entry in reversed(entries) if entry.outcome is not None), None)
    if failed is not None:
        return turn.ended(turn.outcome_after(failed, turn.settled()))
    if turn.window is None and not turn.is_drained:
        if turn.is_loaded:
            discard(job, task.name)
        return None
    try:
        if turn.window is not None and _went_on(turn, turn.window):
            return turn.ended(turn.done())
        ending = turn.settled()
    except Exception as error:
        return turn.ended(turn.recovered(error))
    if ending.state is State.AS_BEFORE:
        return None
    return turn.ended(turn.outcome_after(turn.failure(INTERRUPTED), ending))


def _turn(job: Job, task: Task, entries: Sequence[Entry]) -> Turn:
    """Return a turn as far as the journal tells of it."""
    turn = Turn(job, task, entries[-1].wave)
    steps = {entry.step for entry in entries}
    turn.sample = next((entry.note for entry in reversed(entries) if entry.step == SAMPLE), "")
    before = job.journal.before(task.name)
    if before is not None:
        turn.ending = ending(seen(before, task))
    turn.is_drained, turn.is_loaded = Phase.DRAIN in steps, Phase.LOAD in steps
    commit = next((entry for entry in entries if entry.step == Phase.COMMIT), None)
    if commit is not None:
        # When the device began to count is not in the journal; a commit that took longer has been given up. Since the
        # machine has started again, only a clock that may have been set knows how long ago it was: nothing is confirmed
        # by that one.
        now_s, settle_s = job.clock.steady_s(), job.options.settle_s
        is_known = bool(commit.boot) and commit.boot == job.clock.boot_id()
        began_s = commit.steady_s if is_known else now_s - max(0.0, job.clock.wall_s() - commit.at_s)
        turn.window = Window(
            began_s + commit.revert_s if is_known else min(now_s, began_s + commit.revert_s),
            began_s + commit.revert_s + settle_s,
            began_s + settle_s,
            is_confirming=Phase.CONFIRM in steps,
            is_confirmed=CONFIRMED in steps,
        )
    return turn


def _went_on(turn: Turn, window: Window) -> bool:
    """Whether a change left unconfirmed could be kept; there must be time enough to judge it."""
    if turn.left_s(window) < turn.job.options.settle_s:
        return False
    with closing(opened(turn.job, turn.name)) as driver:
        if not driver.has_pending_commit() or not look(driver, turn.task).is_intended():
            return False
        if isinstance(driver, InStep) and not driver.is_applied():
            return False  # half a change may look whole in its files
        turn.finish(driver, window)
    return True

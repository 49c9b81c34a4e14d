"""`netkit rollback`."""

import sys

from netkit.cli.fabric import open_project
from netkit.cli.requests import RollbackRequest
from netkit.cli.rollout import DECLINED, agreed, changing, options_of, show, watched
from netkit.deploy import Journal, Outcome
from netkit.deploy.model import EventHandler
from netkit.project.deploying import Deploying
from netkit.project.runs import found_run
from netkit.report.outcome_text import outcome_text
from netkit.terminal.interrupt import Interrupt
from netkit.terminal.text import is_agreed, say


def run(request: RollbackRequest) -> int:
    """Undo what a run changed, with the same care; one that was cut off is ended first."""
    if request.fleet is not None:
        from netkit.cli.fleet_rollout import roll_back  # noqa: PLC0415 (an extra)

        return roll_back(request, request.fleet)
    options = options_of(request)
    deploying = Deploying.of(open_project(request.folder, request.lab), request.reason, request.skip_hook)
    undone = found_run(deploying.runs, request.run)
    if undone.outcome() is None and not _ended(request, deploying, undone):
        return DECLINED
    back, options = deploying.plan_rollback(undone, options, request.limit)
    plan, before, _ = back
    show(request, deploying.project.fabric, plan, options)
    deploying.refuse(plan, before, options)
    begun = deploying.control.begun("rollback", plan, undone.run)
    if not agreed(request, plan, options, f"Roll back run {undone.run} on"):
        return DECLINED
    journal = Journal.new(deploying.runs)
    provenance = deploying.control.permitted(begun, plan, journal.run, options)

    def work(on_event: EventHandler, is_stopping: Interrupt) -> Outcome:
        return deploying.undo(undone, options, journal, back, provenance, on_event, is_stopping)

    return watched(request, deploying, journal, changing(plan, options), work)


def _ended(request: RollbackRequest, deploying: Deploying, undone: Journal) -> bool:
    """End an unfinished run; False if the user declines."""
    orders = undone.orders()
    begun = deploying.control.begun("rollback", orders.plan, undone.run)
    say(sys.stderr, f"run {undone.run} has not finished; netkit deploy --resume {undone.run} would continue it\n")
    if not is_agreed("End it here, and revert what waits for confirmation?", yes=request.yes):
        say(sys.stderr, "nothing was changed\n")
        return False
    provenance = deploying.control.permitted(begun, orders.plan, undone.run, orders.options)
    with deploying.locked(undone):
        outcome = deploying.end(undone, provenance)
    say(sys.stderr, outcome_text(outcome))
    return True

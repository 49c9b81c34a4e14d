"""`netkit rollback`."""

import sys
from pathlib import Path
from typing import Any

from netkit.cli.change import rollout
from netkit.cli.change.rollout import DECLINED, Told, agreed, changing, show, watched
from netkit.cli.fabric import open_project
from netkit.deploy import Journal, Outcome
from netkit.deploy.model import Tell
from netkit.project.deploying import Deploying
from netkit.project.runs import found_run
from netkit.report.outcome_text import outcome_text
from netkit.terminal.interrupt import Interrupt
from netkit.terminal.text import is_agreed, say


def run(folder: Path, name: str, **how: Any) -> int:
    """Take back what a run changed, with the same care; one that was cut off is ended first."""
    told = rollout.told(folder, **how)
    deploying = Deploying.of(open_project(told.folder, told.lab), told.reason, told.skip_hook)
    undone = found_run(deploying.runs, name)
    if undone.outcome() is None and not _ended(told, deploying, undone):
        return DECLINED
    back, options = deploying.way_back(undone, told.options, told.limit)
    plan, before, _ = back
    show(told, deploying.project.fabric, plan, options)
    deploying.refuse(plan, before, options)
    begun = deploying.control.begun("rollback", plan, undone.run)
    if not agreed(told, plan, options, f"Take back run {undone.run} on"):
        return DECLINED
    journal = Journal.new(deploying.runs)
    provenance = deploying.control.permitted(begun, plan, journal.run, options)

    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        return deploying.undo(undone, options, journal, back, provenance, tell, is_stopping)

    return watched(told, deploying, journal, changing(plan, options), work)


def _ended(told: Told, deploying: Deploying, undone: Journal) -> bool:
    """End a run that has not finished; False when the user does not want that."""
    orders = undone.orders()
    begun = deploying.control.begun("rollback", orders.plan, undone.run)
    say(sys.stderr, f"run {undone.run} has not finished; netkit deploy --resume {undone.run} would go on with it\n")
    if not is_agreed("End it here, and take back what waits to be confirmed?", yes=told.yes):
        say(sys.stderr, "nothing was changed\n")
        return False
    provenance = deploying.control.permitted(begun, orders.plan, undone.run, orders.options)
    with deploying.locked(undone):
        outcome = deploying.end(undone, provenance)
    say(sys.stderr, outcome_text(outcome))
    return True

"""`netkit rollback`."""

import sys
from pathlib import Path
from typing import Any

from netkit import deploy
from netkit.cli.change import rollout
from netkit.cli.change.rollout import (
    DECLINED,
    Told,
    agreed,
    changing,
    limited,
    refuse,
    refuse_unread,
    runs_of,
    show,
    watched,
)
from netkit.cli.fabric import open_project
from netkit.cli.terminal.consent import is_agreed
from netkit.cli.terminal.interrupt import Interrupt
from netkit.cli.terminal.listener import say
from netkit.deploy import Journal, Outcome
from netkit.deploy.shape import Tell
from netkit.project.control import Control
from netkit.project.fleet import Fleet, fleet
from netkit.project.gate import gate_of
from netkit.project.project import Project
from netkit.project.runs import found_run
from netkit.report.outcome_text import outcome_text


def run(folder: Path, name: str, **how: Any) -> int:
    """Take back what a run changed, with the same care; one that was cut off is ended first."""
    told = rollout.told(folder, **how)
    project = open_project(told.folder, told.lab)
    devices = fleet(project)
    runs = runs_of(project, devices)
    undone = found_run(runs, name)
    control = Control.of(project, told.reason, told.skip_hook)
    if undone.outcome() is None and not _ended(told, project, devices, undone, control):
        return DECLINED
    back = deploy.way_back(undone, project.fabric, devices.connect)
    options = limited(told.options, project, told.limit, back[0])
    if options.limit is not None:
        back = deploy.way_back(undone, project.fabric, devices.connect, options.limit)
    plan, before, _ = back
    show(told, project.fabric, plan, options)
    refuse_unread(plan, options)
    refuse(plan, project.fabric, before, options)
    begun = control.begun("rollback", plan, undone.run)
    if not agreed(told, plan, options, f"Take back run {undone.run} on"):
        return DECLINED
    journal = Journal.new(runs)
    provenance = control.permitted(begun, plan, journal.run, options)

    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        return deploy.undo(
            undone,
            project.fabric,
            connect=devices.connect,
            gate=gate_of(project, devices),
            options=options,
            journal=journal,
            back=back,
            provenance=provenance,
            tell=tell,
            is_stopping=is_stopping,
        )

    return watched(told, project.fabric.name, journal, changing(plan, options), work)


def _ended(told: Told, project: Project, devices: Fleet, undone: Journal, control: Control) -> bool:
    """End a run that has not finished; False when the user does not want that."""
    orders = undone.orders()
    begun = control.begun("rollback", orders.plan, undone.run)
    say(sys.stderr, f"run {undone.run} has not finished; netkit deploy --resume {undone.run} would go on with it\n")
    if not is_agreed("End it here, and take back what waits to be confirmed?", yes=told.yes):
        say(sys.stderr, "nothing was changed\n")
        return False
    provenance = control.permitted(begun, orders.plan, undone.run, orders.options)
    with rollout.locked(told, project.fabric.name, undone):
        outcome = deploy.end(
            project.fabric,
            connect=devices.connect,
            gate=gate_of(project, devices),
            journal=undone,
            provenance=provenance,
        )
    say(sys.stderr, outcome_text(outcome))
    return True

"""`netkit rollback`."""

from pathlib import Path
from typing import Any

from netkit import deploy
from netkit.cli.change import rollout
from netkit.cli.change.control import Control
from netkit.cli.change.gate import gate_of
from netkit.cli.change.rollout import DECLINED, agreed, changing, limited, refuse, runs_of, show, watched
from netkit.cli.fabric import open_project
from netkit.cli.fleet import fleet
from netkit.cli.runs import found_run
from netkit.cli.terminal.interrupt import Interrupt
from netkit.deploy import Journal, Outcome
from netkit.deploy.shape import Tell


def run(folder: Path, name: str, **how: Any) -> int:
    """Take back what a run changed, with the same care."""
    told = rollout.told(folder, **how)
    project = open_project(told.folder)
    devices = fleet(project, told.lab)
    runs = runs_of(project, devices)
    undone = found_run(runs, name)
    plan, before, _ = deploy.way_back(undone, project.fabric)
    options = limited(told.options, project, told.limit, plan)
    if options.limit is not None:
        plan, before, _ = deploy.way_back(undone, project.fabric, options.limit)
    show(told, project.fabric, plan, options)
    refuse(plan, project.fabric, before, options)
    control = Control.of(told, project, devices.lab)
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
            provenance=provenance,
            tell=tell,
            is_stopping=is_stopping,
        )

    return watched(told, project.fabric.name, journal, changing(plan, options), work)

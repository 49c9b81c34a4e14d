"""`netkit deploy`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from netkit import deploy
from netkit import plan as planning
from netkit.cli.change import rollout
from netkit.cli.change.rollout import (
    DECLINED,
    UNREACHED,
    Told,
    agreed,
    changing,
    limited,
    refuse,
    refuse_unread,
    runs_of,
    show,
    tell_outcome,
    watched,
)
from netkit.cli.fabric import open_project, warn
from netkit.cli.terminal.interrupt import Interrupt
from netkit.cli.terminal.listener import say
from netkit.deploy import Journal, Options, Outcome, Phase, Provenance
from netkit.deploy.shape import Tell
from netkit.design.select import select
from netkit.errors import PlanError, Problem, UsageError
from netkit.plan import Plan
from netkit.project.control import Control, finished, given_digest, refuse_unapproved
from netkit.project.fleet import Fleet, fleet
from netkit.project.gate import gate_of, reader_of
from netkit.project.planning import Planned, from_devices
from netkit.project.project import Project
from netkit.project.rendering import intended
from netkit.project.runs import found_run, unfinished_run

NEWEST = "."
"""`--resume` without a name."""


def run(
    folder: Path,
    *,
    file: Path | None,
    resume: str,
    dry: bool,
    approved: str | None,
    approval: Path | None,
    key: Path | None,
    **how: Any,
) -> int:
    """Deploy a plan: the one of a file, or one made now; or finish a run that was interrupted."""
    digest = None if approved is None else given_digest(approved)
    told = rollout.told(folder, **how)
    if resume and (file or dry or told.limit or digest or approval):
        remedy = "it goes on with its own plan, devices and options"
        what = "--resume takes no plan, no --limit, no --approved, no --approval and no --dry-run"
        raise UsageError(Problem(what, remedy))
    project = open_project(told.folder, told.lab)
    devices = fleet(project)
    control = Control.of(project, told.reason, told.skip_hook, plan_file=file, approval_file=approval, key=key)
    if resume:
        return _resume(told, project, devices, resume, control)
    warn(project)
    whole = planned = plan_of_file(project, file) if file else from_devices(project, told.limit, devices)
    is_part = bool(file and told.limit and whole.plan.has_routing)
    if is_part:  # its order is not that of the whole, and takes what all devices run
        planned = from_devices(project, told.limit, devices)
        _refuse_moved(planned.plan, whole.plan)
    if digest and file is None and (done := finished(planned.plan, runs_of(project, devices), digest)):
        say(sys.stdout if told.output == "text" else sys.stderr, f"nothing to change; {digest} was {done}\n")
        return 0
    if digest:
        refuse_unapproved(whole.plan, digest)
    options = told.options if is_part or not file else limited(told.options, project, told.limit, planned.plan)
    return _roll_out(told, project, planned, devices, control, whole.plan, options, dry=dry)


def _roll_out(
    told: Told,
    project: Project,
    planned: Planned,
    devices: Fleet,
    control: Control,
    whole: Plan,
    options: Options,
    *,
    dry: bool,
) -> int:
    """Show a plan, ask, and deploy it, or try it without writing anything. `whole` is what was approved."""
    show(told, project.fabric, planned.plan, options)
    if dry:
        if planned.plan.changed:
            control.begun("deploy", whole)
        return _rehearse(told, project, planned, devices, options)
    if not planned.plan.changed:
        deploy.refuse_unsettled(runs_of(project, devices))
        return 0 if planned.plan.is_complete else UNREACHED
    refuse_unread(planned.plan, options)
    refuse(planned.plan, project.fabric, planned.intended, options)
    begun = control.begun("deploy", whole)
    if not agreed(told, planned.plan, options, "Deploy to"):
        return DECLINED
    journal = Journal.new(runs_of(project, devices))
    provenance = control.permitted(begun, whole, journal.run, options)
    return _apply(told, project, planned, devices, options, journal, provenance)


def plan_of_file(project: Project, file: Path) -> Planned:
    """Return the plan a file holds, with what its devices are intended to run now."""
    try:
        plan = planning.read(file.read_text(encoding="utf-8", errors="replace"), str(file))
    except OSError as error:
        raise UsageError(Problem(f"{file} cannot be read: {error.strerror}", "netkit plan -o FILE")) from None
    if plan.fabric != project.fabric.name:
        raise PlanError(Problem(f"{file} is of fabric {plan.fabric}, not {project.fabric.name}", "make the plan again"))
    names = {device.name for device in plan.devices}
    return Planned(plan, intended(project, [one for one in select(project.fabric, "") if one.name in names]))


def _refuse_moved(now: Plan, planned: Plan) -> None:
    """Raise PlanError when a part of a plan is not what it was: an order of that part needs all devices read again."""
    for device in now.changed:
        was = planned.device(device.name)
        if was is None or was.changes != device.changes:
            raise PlanError(Problem(f"{device.name}: changed since the plan was made", "make the plan again"))


def _rehearse(told: Told, project: Project, planned: Planned, devices: Fleet, options: Options) -> int:
    """Try it by handles that cannot write."""
    outcome = deploy.rehearse(
        planned.plan, project.fabric, planned.intended, connect=reader_of(devices), options=options
    )
    return tell_outcome(told, outcome)


def _apply(
    told: Told,
    project: Project,
    planned: Planned,
    devices: Fleet,
    options: Options,
    journal: Journal,
    provenance: Provenance,
) -> int:
    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        return deploy.apply(
            planned.plan,
            project.fabric,
            planned.intended,
            connect=devices.connect,
            gate=gate_of(project, devices),
            options=options,
            journal=journal,
            provenance=provenance,
            tell=tell,
            is_stopping=is_stopping,
        )

    total = changing(planned.plan, options)
    return watched(told, project.fabric.name, journal, total, work, _back(project, devices, journal))


def _back(project: Project, devices: Fleet, failed: Journal) -> Callable[[Journal, Tell, Interrupt], Outcome]:
    """Return what takes a failed run back."""

    def back(journal: Journal, tell: Tell, is_stopping: Interrupt) -> Outcome:
        return deploy.undo(
            failed,
            project.fabric,
            connect=devices.connect,
            gate=gate_of(project, devices),
            options=deploy.backward(failed),
            journal=journal,
            tell=tell,
            is_stopping=is_stopping,
        )

    return back


def _resume(told: Told, project: Project, devices: Fleet, name: str, control: Control) -> int:
    runs = runs_of(project, devices)
    journal = unfinished_run(runs) if name == NEWEST else found_run(runs, name)
    orders = journal.orders()
    provenance = control.begun("resume", orders.plan)
    if journal.outcome() is None:
        provenance = control.permitted(provenance, orders.plan, journal.run, orders.options)

    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        if failed is not None:  # only its way back is left to do
            return failed
        return deploy.resume(
            project.fabric,
            connect=devices.connect,
            gate=gate_of(project, devices),
            journal=journal,
            provenance=provenance,
            tell=tell,
            is_stopping=is_stopping,
        )

    failed = journal.outcome() if journal.is_to_be_undone() else None
    ended = {entry.device for entry in journal.entries() if entry.step == Phase.END}
    total = changing(orders.plan, orders.options) - len(ended)
    return watched(told, project.fabric.name, journal, total, work, _back(project, devices, journal))

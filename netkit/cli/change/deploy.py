"""`netkit deploy`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from netkit import deploy
from netkit import plan as planning
from netkit.cli.change import rollout
from netkit.cli.change.approval import digest_of, finished, refuse_unapproved
from netkit.cli.change.gate import gate_of, reader_of
from netkit.cli.change.rollout import (
    DECLINED,
    UNREACHED,
    Told,
    agreed,
    changing,
    limited,
    refuse,
    runs_of,
    show,
    tell_outcome,
    watched,
)
from netkit.cli.fabric import Project, open_project, warn
from netkit.cli.fleet import Fleet, fleet
from netkit.cli.intended import intended
from netkit.cli.planning import Planned, from_devices
from netkit.cli.runs import found_run, unfinished_run
from netkit.cli.terminal.interrupt import Interrupt
from netkit.cli.terminal.listener import say
from netkit.deploy import Journal, Options, Outcome, Phase
from netkit.deploy.shape import Tell
from netkit.design.select import select
from netkit.errors import AccessError, PlanError, Problem, UsageError
from netkit.plan import Plan
from netkit.report.plan_view import listed

NEWEST = "."
"""`--resume` without a name."""


def run(folder: Path, *, file: Path | None, resume: str, dry: bool, approved: str | None = None, **how: Any) -> int:
    """Deploy a plan: the one of a file, or one made now; or finish a run that was interrupted."""
    digest = None if approved is None else digest_of(approved)
    told = rollout.told(folder, **how)
    if resume and (file or dry or told.limit or digest):
        remedy = "it goes on with its own plan, devices and options"
        raise UsageError(Problem("--resume takes no plan, no --limit, no --approved and no --dry-run", remedy))
    project = open_project(told.folder)
    devices = fleet(project, told.lab)
    if resume:
        return _resume(told, project, devices, resume)
    warn(project)
    planned = _from_file(project, file) if file else from_devices(project, told.limit, devices)
    if digest and file is None and (done := finished(planned.plan, runs_of(project, devices), digest)):
        say(sys.stdout if told.output == "text" else sys.stderr, f"nothing to change; {digest} was {done}\n")
        return 0
    if digest:
        refuse_unapproved(planned.plan, digest)
    return _roll_out(told, project, planned, devices, limit=told.limit if file else "", dry=dry)


def _roll_out(told: Told, project: Project, planned: Planned, devices: Fleet, *, limit: str, dry: bool) -> int:
    """Show a plan, ask, and deploy it, or try it without writing anything."""
    options = limited(told.options, project, limit, planned.plan)
    show(told, project.fabric, planned.plan, options)
    if dry:
        return _rehearse(told, project, planned, devices, options)
    if not planned.plan.changed:
        return 0 if planned.plan.is_complete else UNREACHED
    _refuse_unread(planned.plan, options)
    refuse(planned.plan, project.fabric, planned.intended, options)
    if not agreed(told, planned.plan, options, "Deploy to"):
        return DECLINED
    return _apply(told, project, planned, devices, options)


def _from_file(project: Project, file: Path) -> Planned:
    try:
        plan = planning.read(file.read_text(encoding="utf-8", errors="replace"), str(file))
    except OSError as error:
        raise UsageError(Problem(f"{file} cannot be read: {error.strerror}", "netkit plan -o FILE")) from None
    if plan.fabric != project.fabric.name:
        raise PlanError(Problem(f"{file} is of fabric {plan.fabric}, not {project.fabric.name}", "make the plan again"))
    names = {device.name for device in plan.devices}
    return Planned(plan, intended(project, [one for one in select(project.fabric, "") if one.name in names]))


def _refuse_unread(plan: Plan, options: Options) -> None:
    """Raise AccessError when what could not be read would stop the deploy at once, before anybody is asked."""
    missed = [one.name for one in plan.unreachable if options.limit is None or one.name in options.limit]
    if len(missed) > options.max_fail:
        message = f"{listed(missed)}: could not be read for the plan, and {options.max_fail} may fail"
        raise AccessError(Problem(message, f"leave them out with --limit, or go on with --max-fail {len(missed)}"))


def _rehearse(told: Told, project: Project, planned: Planned, devices: Fleet, options: Options) -> int:
    """Try it by handles that cannot write."""
    outcome = deploy.rehearse(
        planned.plan, project.fabric, planned.intended, connect=reader_of(devices), options=options
    )
    return tell_outcome(told, outcome)


def _apply(told: Told, project: Project, planned: Planned, devices: Fleet, options: Options) -> int:
    journal = Journal.new(runs_of(project, devices))

    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        return deploy.apply(
            planned.plan,
            project.fabric,
            planned.intended,
            connect=devices.connect,
            gate=gate_of(project, devices),
            options=options,
            journal=journal,
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


def _resume(told: Told, project: Project, devices: Fleet, name: str) -> int:
    runs = runs_of(project, devices)
    journal = unfinished_run(runs) if name == NEWEST else found_run(runs, name)

    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        if failed is not None:  # only its way back is left to do
            return failed
        return deploy.resume(
            project.fabric,
            connect=devices.connect,
            gate=gate_of(project, devices),
            journal=journal,
            tell=tell,
            is_stopping=is_stopping,
        )

    failed = journal.outcome() if journal.is_to_be_undone() else None
    orders = journal.orders()
    ended = {entry.device for entry in journal.entries() if entry.step == Phase.END}
    total = changing(orders.plan, orders.options) - len(ended)
    return watched(told, project.fabric.name, journal, total, work, _back(project, devices, journal))

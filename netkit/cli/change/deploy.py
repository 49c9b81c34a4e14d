"""`netkit deploy`."""

import re
import sys
from pathlib import Path
from typing import Any

from netkit import deploy
from netkit import plan as planning
from netkit.cli.change import rollout
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
from netkit.deploy import Journal, Options, Outcome, Phase, history
from netkit.deploy.shape import Tell
from netkit.design.select import select
from netkit.errors import AccessError, PlanError, Problem, UsageError
from netkit.plan import Plan
from netkit.plan.shift import approval
from netkit.report.plan_view import listed

DIGEST = re.compile(r"[0-9a-f]{32}")
NEWEST = "."
"""`--resume` without a name."""


def run(folder: Path, *, file: Path | None, resume: str, dry: bool, approved: str | None = None, **how: Any) -> int:
    """Deploy a plan: the one of a file, or one made now; or finish a run that was interrupted."""
    digest = None if approved is None else _digest(approved)
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
    if digest:
        if file is None and (done := _finished(planned.plan, runs_of(project, devices), digest)):
            say(sys.stdout if told.output == "text" else sys.stderr, f"nothing to change; {digest} was {done}\n")
            return 0
        _refuse_unapproved(planned.plan, digest)
    options = limited(told.options, project, told.limit if file else "", planned.plan)
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


def _digest(approved: str) -> str:
    """Return the digest that was given: an empty one, like that of a variable nobody set, approves nothing."""
    digest = approved.strip().lower()
    if DIGEST.fullmatch(digest):
        return digest
    found = f"{approved!r} is not the digest of a plan" if digest else "it is empty"
    remedy = "give it the 32 digits of netkit plan --against running"
    raise UsageError(Problem(f"--approved: {found}", remedy))


def _finished(plan: Plan, runs: Path, approved: str) -> str:
    """Return which run did all that was approved, when nothing is left to do: to ask for it again is no mistake."""
    if plan.changed or not plan.is_complete:
        return ""
    whole = (one.run for one in history(runs) if one.outcome is not None and one.outcome.exit_code == 0)
    return next((f"deployed by run {run}" for run in whole if _is_of(Journal(runs / run), approved)), "")


def _is_of(journal: Journal, approved: str) -> bool:
    """Whether a run was told to deploy a plan, and all of it."""
    orders = journal.orders()
    return orders.options.limit is None and approval(orders.plan) == approved


def _refuse_unapproved(plan: Plan, approved: str) -> None:
    """Raise PlanError when this is not the plan that somebody agreed to."""
    if plan.unreachable:
        missed = listed([one.name for one in plan.unreachable])
        raise AccessError(
            Problem(f"{missed}: could not be read, so this is not the plan that was approved", "try again")
        )
    found = approval(plan)
    if found != approved:
        what = f"the plan that was approved is {approved}, what would change now is {found}"
        remedy = "intent or devices have changed since: see netkit plan --against running, and have it approved again"
        raise PlanError(Problem(what, remedy))


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

    return watched(told, project.fabric.name, journal, changing(planned.plan, options), work)


def _resume(told: Told, project: Project, devices: Fleet, name: str) -> int:
    runs = runs_of(project, devices)
    journal = unfinished_run(runs) if name == NEWEST else found_run(runs, name)

    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        return deploy.resume(
            project.fabric,
            connect=devices.connect,
            gate=gate_of(project, devices),
            journal=journal,
            tell=tell,
            is_stopping=is_stopping,
        )

    orders = journal.orders()
    ended = {entry.device for entry in journal.entries() if entry.step == Phase.END}
    total = changing(orders.plan, orders.options) - len(ended)
    return watched(told, project.fabric.name, journal, total, work)

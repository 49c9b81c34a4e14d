"""`netkit deploy`."""

import sys
from pathlib import Path
from typing import Any

from netkit import deploy
from netkit.cli.change import rollout
from netkit.cli.change.rollout import DECLINED, UNREACHED, Told, agreed, changing, report_outcome, show, watched
from netkit.cli.fabric import open_project, warn
from netkit.deploy import Journal, Options, Outcome, Phase
from netkit.deploy.model import Tell
from netkit.errors import PlanError, Problem, UsageError
from netkit.plan import Plan
from netkit.project.control import finished, given_digest, refuse_unapproved
from netkit.project.deploying import Deploying
from netkit.project.planning import Planned, from_devices, plan_of_file
from netkit.project.runs import found_run, unfinished_run
from netkit.terminal.interrupt import Interrupt
from netkit.terminal.text import say

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
    files = {"plan_file": file, "approval_file": approval, "key": key}
    deploying = Deploying.of(project, told.reason, told.skip_hook, **files)
    if resume:
        return _resume(told, deploying, resume)
    warn(project)
    whole = planned = plan_of_file(project, file) if file else from_devices(project, told.limit, deploying.devices)
    is_part = bool(file and told.limit and whole.plan.has_routing)
    if is_part:  # its order is not that of the whole, and takes what all devices run
        planned = from_devices(project, told.limit, deploying.devices)
        _refuse_moved(planned.plan, whole.plan)
    if digest and file is None and (done := finished(planned.plan, deploying.runs, digest)):
        say(sys.stdout if told.output == "text" else sys.stderr, f"nothing to change; {digest} was {done}\n")
        return 0
    if digest:
        refuse_unapproved(whole.plan, digest)
    options = told.options if is_part or not file else deploying.limited(told.options, told.limit, planned.plan)
    return _roll_out(told, deploying, planned, whole.plan, options, dry=dry)


def _roll_out(told: Told, deploying: Deploying, planned: Planned, whole: Plan, options: Options, *, dry: bool) -> int:
    """Show a plan, ask, and deploy it, or try it without writing anything. `whole` is what was approved."""
    plan = planned.plan
    show(told, deploying.project.fabric, plan, options)
    if dry:
        if plan.changed:
            deploying.control.begun("deploy", whole)
        return report_outcome(told, deploying.rehearse(planned, options))
    if not plan.changed:
        deploy.refuse_unsettled(deploying.runs)
        return 0 if plan.is_complete else UNREACHED
    deploying.refuse(plan, planned.intended, options)
    begun = deploying.control.begun("deploy", whole)
    if not agreed(told, plan, options, "Deploy to"):
        return DECLINED
    journal = Journal.new(deploying.runs)
    provenance = deploying.control.permitted(begun, whole, journal.run, options)

    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        return deploying.apply(planned, options, journal, provenance, tell, is_stopping)

    return watched(told, deploying, journal, changing(plan, options), work, has_way_back=True)


def _refuse_moved(now: Plan, planned: Plan) -> None:
    """Raise PlanError when a part of a plan is not what it was: an order of that part needs all devices read again."""
    for device in now.changed:
        was = planned.device(device.name)
        if was is None or was.changes != device.changes:
            raise PlanError(Problem(f"{device.name}: changed since the plan was made", "make the plan again"))


def _resume(told: Told, deploying: Deploying, name: str) -> int:
    runs = deploying.runs
    journal = unfinished_run(runs) if name == NEWEST else found_run(runs, name)
    orders = journal.orders()
    provenance = deploying.control.begun("resume", orders.plan)
    if journal.outcome() is None:
        provenance = deploying.control.permitted(provenance, orders.plan, journal.run, orders.options)

    def work(tell: Tell, is_stopping: Interrupt) -> Outcome:
        return deploying.resume(journal, provenance, tell, is_stopping)

    ended = {entry.device for entry in journal.entries() if entry.step == Phase.END}
    total = changing(orders.plan, orders.options) - len(ended)
    return watched(told, deploying, journal, total, work, has_way_back=True)

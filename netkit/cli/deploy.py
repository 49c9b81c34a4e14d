"""`netkit deploy`."""

import sys

from netkit import deploy
from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import DeployRequest
from netkit.cli.rollout import DECLINED, UNREACHED, agreed, changing, options_of, report_outcome, show, watched
from netkit.deploy import Journal, Options, Outcome, Phase
from netkit.deploy.model import EventHandler
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


def run(asked: DeployRequest) -> int:
    """Deploy a plan: the one of a file, or one made now; or finish a run that was interrupted."""
    digest = None if asked.approved is None else given_digest(asked.approved)
    options, file = options_of(asked), asked.file
    if asked.resume and (file or asked.is_dry or asked.limit or digest or asked.approval):
        remedy = "it goes on with its own plan, devices and options"
        what = "--resume takes no plan, no --limit, no --approved, no --approval and no --dry-run"
        raise UsageError(Problem(what, remedy))
    project = open_project(asked.folder, asked.lab)
    files = {"plan_file": file, "approval_file": asked.approval, "key": asked.key}
    deploying = Deploying.of(project, asked.reason, asked.skip_hook, **files)
    if asked.resume:
        return _resume(asked, deploying, asked.resume)
    warn(project)
    whole = planned = plan_of_file(project, file) if file else from_devices(project, asked.limit, deploying.devices)
    is_part = bool(file and asked.limit and whole.plan.has_routing)
    if is_part:  # its order is not that of the whole, and takes what all devices run
        planned = from_devices(project, asked.limit, deploying.devices)
        _refuse_moved(planned.plan, whole.plan)
    if digest and file is None and (done := finished(planned.plan, deploying.runs, digest)):
        say(sys.stdout if asked.output == "text" else sys.stderr, f"nothing to change; {digest} was {done}\n")
        return 0
    if digest:
        refuse_unapproved(whole.plan, digest)
    if file and not is_part:
        options = deploying.limited(options, asked.limit, planned.plan)
    return _roll_out(asked, deploying, planned, whole.plan, options)


def _roll_out(asked: DeployRequest, deploying: Deploying, planned: Planned, whole: Plan, options: Options) -> int:
    """Show a plan, ask, and deploy it, or try it without writing anything. `whole` is what was approved."""
    plan = planned.plan
    show(asked, deploying.project.fabric, plan, options)
    if asked.is_dry:
        if plan.changed:
            deploying.control.begun("deploy", whole)
        return report_outcome(asked, deploying.rehearse(planned, options))
    if not plan.changed:
        deploy.refuse_unsettled(deploying.runs)
        return 0 if plan.is_complete else UNREACHED
    deploying.refuse(plan, planned.intended, options)
    begun = deploying.control.begun("deploy", whole)
    if not agreed(asked, plan, options, "Deploy to"):
        return DECLINED
    journal = Journal.new(deploying.runs)
    provenance = deploying.control.permitted(begun, whole, journal.run, options)

    def work(on_event: EventHandler, is_stopping: Interrupt) -> Outcome:
        return deploying.apply(planned, options, journal, provenance, on_event, is_stopping)

    return watched(asked, deploying, journal, changing(plan, options), work, has_way_back=True)


def _refuse_moved(now: Plan, planned: Plan) -> None:
    """Raise PlanError when a part of a plan is not what it was: an order of that part needs all devices read again."""
    for device in now.changed:
        was = planned.device(device.name)
        if was is None or was.changes != device.changes:
            raise PlanError(Problem(f"{device.name}: changed since the plan was made", "make the plan again"))


def _resume(asked: DeployRequest, deploying: Deploying, name: str) -> int:
    runs = deploying.runs
    journal = unfinished_run(runs) if name == NEWEST else found_run(runs, name)
    orders = journal.orders()
    provenance = deploying.control.begun("resume", orders.plan)
    if journal.outcome() is None:
        provenance = deploying.control.permitted(provenance, orders.plan, journal.run, orders.options)

    def work(on_event: EventHandler, is_stopping: Interrupt) -> Outcome:
        return deploying.resume(journal, provenance, on_event, is_stopping)

    ended = {entry.device for entry in journal.entries() if entry.step == Phase.END}
    total = changing(orders.plan, orders.options) - len(ended)
    return watched(asked, deploying, journal, total, work, has_way_back=True)

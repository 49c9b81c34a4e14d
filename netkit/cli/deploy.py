"""`netkit deploy` and `netkit rollback`."""

import sys
import time
from dataclasses import replace

from netkit import deploy
from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import DeployRequest, RollbackRequest
from netkit.cli.rollout import (
    DECLINED,
    UNREACHED,
    agreed,
    announce_wait,
    changing,
    options_of,
    report_outcome,
    show,
    watched,
)
from netkit.deploy import Journal, Options, Outcome, Phase
from netkit.deploy.model import EventHandler, weightiest
from netkit.errors import NetkitError, Problem, UsageError
from netkit.plan import Plan
from netkit.project.control import finished, given_digest, refuse_unapproved
from netkit.project.deploying import Deploying
from netkit.project.planning import Planned, from_devices, plan_of_file, taking_over
from netkit.project.runs import found_run, unfinished_run
from netkit.report.history_text import outcome_text
from netkit.terminal.ctrl_c import INTERRUPTED
from netkit.terminal.interrupt import Interrupt
from netkit.terminal.output import is_agreed, say
from netkit.terminal.progress import lines

NEWEST = "."
"""`--resume` without a name."""


def run(request: DeployRequest) -> int:
    """Deploy one fabric, and those that follow it as long as no more fail than may."""
    if request.then and (request.file or request.resume or request.approved is not None or request.approval):
        what = "a plan, --resume, --approved and --approval apply to one fabric"
        raise UsageError(Problem(what, "drop them, or --then"))
    return _run(request) if not request.then else _run_each(request)


def _run_each(request: DeployRequest) -> int:
    """Deploy one fabric after another; an error of one counts as a failure, and Ctrl-C ends all."""
    codes: list[int] = []
    for folder in (request.folder, *request.then):
        failed = sum(map(bool, codes))
        if failed > request.max_failed_fabrics or Interrupt.was_asked:
            why = "you have asked to stop" if Interrupt.was_asked else f"{failed} of {len(codes)} failed"
            say(sys.stderr, f"{folder}: not started, because {why}\n")
            continue
        say(sys.stderr, f"{folder}:\n")
        try:
            codes.append(_run(replace(request, folder=folder)))
        except NetkitError as error:
            say(sys.stderr, "".join(f"error: {problem}\n" for problem in error.problems))
            codes.append(error.exit_code)
    return INTERRUPTED if INTERRUPTED in codes else weightiest(*codes) or max(codes)


def _run(request: DeployRequest) -> int:
    """Deploy a plan from a file or one made now, or finish an interrupted run."""
    digest = None if request.approved is None else given_digest(request.approved)
    options, file = options_of(request), request.file
    if request.resume and (file or request.is_dry or request.limit or digest or request.approval):
        remedy = "the run continues with its own plan, devices and options"
        what = "--resume takes no plan, no --limit, no --approved, no --approval and no --dry-run"
        raise UsageError(Problem(what, remedy))
    if request.fleet is not None:
        from netkit.cli.fleet_rollout import roll_out  # noqa: PLC0415 (an extra)

        return roll_out(request, request.fleet)
    project = open_project(request.folder, request.lab)
    deploying = Deploying.of(
        project, request.reason, request.skip_hook, plan_file=file, approval_file=request.approval, key=request.key
    )
    if request.resume:
        return _resume(request, deploying, request.resume)
    warn(project)
    planned = plan_of_file(project, file) if file else from_devices(project, request.limit, deploying.devices)
    planned = taking_over(planned, options)
    whole = planned.plan
    options = replace(options, is_taking_over=whole.is_taking_over)
    if file:
        options = deploying.limited(options, request.limit, whole)
        planned, whole = deploying.as_now(planned, options)
    if digest and file is None and (done := finished(planned.plan, deploying.runs, digest)):
        say(sys.stdout if request.output == "text" else sys.stderr, f"nothing to change; {digest} was {done}\n")
        return 0
    if digest:
        refuse_unapproved(whole, digest)
    return _roll_out(request, deploying, planned, whole, options)


def _roll_out(request: DeployRequest, deploying: Deploying, planned: Planned, whole: Plan, options: Options) -> int:
    """Show a plan, ask, and deploy or rehearse it; `whole` is the approved plan."""
    plan = planned.plan
    show(request, deploying.project.fabric, plan, options)
    if request.is_dry:
        if plan.changed:
            deploying.control.begun("deploy", whole)
        return report_outcome(request, deploying.rehearse(planned, options))
    if not plan.changed:
        deploy.refuse_unsettled(deploying.runs)
        return 0 if plan.is_complete else UNREACHED
    deploying.refuse(plan, planned.intended, options)
    begun = deploying.control.begun("deploy", whole)
    if not agreed(request, plan, options, "Deploy to"):
        return DECLINED
    journal = Journal.new(deploying.runs)
    provenance = deploying.control.permitted(begun, whole, journal.run, options)

    def work(on_event: EventHandler, is_stopping: Interrupt) -> Outcome:
        return deploying.apply(planned, options, journal, provenance, on_event, is_stopping)

    return watched(request, deploying, journal, changing(plan, options), work, can_roll_back=True)


def _resume(request: DeployRequest, deploying: Deploying, name: str) -> int:
    runs = deploying.runs
    journal = unfinished_run(runs) if name == NEWEST else found_run(runs, name)
    orders = journal.orders()
    provenance = deploying.control.begun("resume", orders.plan)
    if journal.outcome() is None:
        provenance = deploying.control.permitted(provenance, orders.plan, journal.run, orders.options)

    def work(on_event: EventHandler, is_stopping: Interrupt) -> Outcome:
        announce_wait(journal)
        return deploying.resume(journal, provenance, on_event, is_stopping)

    ended = {entry.device for entry in journal.entries() if entry.step == Phase.END}
    total = changing(orders.plan, orders.options) - len(ended)
    return watched(request, deploying, journal, total, work, can_roll_back=True)


def rollback(request: RollbackRequest) -> int:
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
    again = request.again(f"rollback {undone.run}")
    began_s = time.monotonic()
    with deploying.locked(undone), Interrupt(again, request.revert_s) as is_stopping:
        announce_wait(undone)
        with lines(lambda: f"{time.monotonic() - began_s:6.1f} s  ending run {undone.run}"):
            outcome = deploying.end(undone, provenance)
    say(sys.stderr, outcome_text(outcome))
    if is_stopping():
        say(sys.stderr, f"not rolled back; to continue: {again}\n")
    return not is_stopping()

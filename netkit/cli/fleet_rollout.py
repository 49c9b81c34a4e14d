"""`netkit deploy`, `rollback` and `history` with `--fleet`: the workers of the sites change the devices."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import DeployRequest, RollbackRequest, RolloutRequest
from netkit.cli.rollout import DECLINED, UNREACHED, agreed, changing, options_of, show
from netkit.deploy import DeviceResult, Options, model
from netkit.deploy.model import EventHandler
from netkit.errors import Problem, UsageError
from netkit.fleet.deploying import FleetDeploying, LeftRunningError, RollOut, SitePart, Stopping
from netkit.fleet.job import DeployWork, RehearseWork, ResumeWork, RollbackWork
from netkit.plan import Plan
from netkit.plan.model import approval as digest_of
from netkit.project.control import (
    deployer_signature,
    given_approval,
    given_digest,
    names_of_user,
    refuse_unapproved,
    who,
)
from netkit.project.planning import plan_of_file
from netkit.project.project import Project
from netkit.report.history_text import outcome_text
from netkit.terminal.ctrl_c import INTERRUPTED
from netkit.terminal.display import display
from netkit.terminal.interrupt import ASKED, Interrupt
from netkit.terminal.output import say, write_json

NEWEST = "."
MOST_REASON = 2000


def roll_out(request: DeployRequest, folder: Path) -> int:
    """Deploy a plan through the sites of a fabric, or continue a run there."""
    digest = None if request.approved is None else given_digest(request.approved)
    options = options_of(request)
    project = open_project(request.folder, request.lab)
    fleet = FleetDeploying.of(folder, project)
    if request.resume:
        name = "" if request.resume == NEWEST else request.resume
        site, run = fleet.located(name) if name else (fleet.unfinished(), None)
        return _run(
            request,
            fleet,
            [SitePart(site, fleet.names("", site), ResumeWork(run=run, **_about(request, project, options)), 0)],
        )
    with fleet.turn():  # fail early if another run holds it: the site would plan only after that run
        warn(project)
    if request.file is not None:
        plans = fleet.divided(plan_of_file(project, request.file).plan, request.limit)
    else:
        plans = fleet.plans(request.limit)
    is_taking_over = request.take_over or any(plan.is_taking_over for plan in plans.values())
    plans = {site: replace(plan, is_taking_over=is_taking_over) for site, plan in plans.items()}
    options = replace(options, is_taking_over=is_taking_over)
    whole = fleet.whole(plans)
    if digest:
        refuse_unapproved(whole, digest)
    show(request, project.fabric, whole, options)
    if not whole.changed:
        return 0 if whole.is_complete else UNREACHED
    if not request.is_dry and not agreed(request, whole, options, "Deploy to"):
        return DECLINED
    approval = given_approval(request.file, request.approval)
    about = _about(request, project, options, approval)

    def part(site: str, plan: Plan) -> SitePart:
        signature = deployer_signature(plan, "", request.key, time.time()) if request.key else ""
        work = (RehearseWork if request.is_dry else DeployWork)(plan=digest_of(plan), signature=signature, **about)
        return SitePart(site, fleet.names(request.limit, site), work, changing(plan, options))

    parts = [part(site, plan) for site, plan in plans.items() if plan.changed]
    if not request.is_dry:
        return _run(request, fleet, parts)
    found = fleet.rehearse(parts)
    _report(request, found)
    return found.exit_code


def roll_back(request: RollbackRequest, folder: Path) -> int:
    """Undo a run at its site."""
    options = options_of(request)
    project = open_project(request.folder, request.lab)
    fleet = FleetDeploying.of(folder, project)
    site, run = fleet.located(request.run)
    plans = fleet.plans(request.limit, undone=run, site=site)
    if site not in plans:
        what = f"--limit {request.limit!r} selects no device at {site}, where run {run} was"
        raise UsageError(Problem(what, f"{request.again(f'history {run}')} lists its devices"))
    plan = plans[site]
    show(request, project.fabric, plan, options)
    if not agreed(request, plan, options, f"Roll back run {run} on"):
        return DECLINED
    work = RollbackWork(run=run, plan=digest_of(plan), **_about(request, project, options))
    part = SitePart(site, fleet.names(request.limit, site), work, changing(plan, options))
    return _run(request, fleet, [part])


def show_history(folder: Path, lab: str, fleet: Path, run: str, output: str) -> None:
    """Print the runs at the sites of a fabric, or one of them."""
    known = FleetDeploying.of(fleet, open_project(folder, lab))
    if run:
        site, name = known.located(run)
        found = known.history(name, site)
    else:
        found = known.history()
    if output == "json":
        write_json({site: one["document"] for site, one in found.items()})
        return
    for site, one in found.items():
        sys.stdout.write(f"{site}:\n{one['text'] or 'no run yet' + chr(10)}")


def _about(request: RolloutRequest, project: Project, options: Options, approval: str | None = None) -> dict[str, Any]:
    """The deployer and the options, as fields of jobs."""
    if len(request.reason) > MOST_REASON:
        raise UsageError(Problem(f"--reason has more than {MOST_REASON:,} characters", "name the ticket instead"))
    return {
        "asked_by": who(),
        "names": names_of_user(project),
        "reason": request.reason,
        "skip_hook": request.skip_hook,
        "approval": approval,
        "options": options,
        "goes_on": request.on_disconnect == "continue",
    }


def _run(request: RolloutRequest, fleet: FleetDeploying, parts: list[SitePart]) -> int:
    go_on = request.again("deploy --resume")

    history = request.again("history")
    goes_on = f"the run continues at its site; its result: {history}"
    if request.on_disconnect == "continue":
        asked, left = "interrupted", goes_on
    else:
        asked, left = ASKED, f"the run at its site ends at the next safe place; its result: {history}"

    @contextmanager
    def watching(part: SitePart) -> Iterator[tuple[EventHandler, Stopping]]:
        say(sys.stderr, f"at {part.site}:\n")
        with (
            Interrupt(go_on, request.revert_s, left, asked) as is_stopping,
            display(part.total, is_stopping) as on_event,
        ):
            yield on_event, is_stopping

    try:
        found = fleet.roll_out(parts, watching)
    except LeftRunningError:
        say(sys.stderr, f"{goes_on}\n")
        return INTERRUPTED
    _report(request, found)
    if not all(one.is_finished for one in found.sites):
        say(sys.stderr, f"to continue: {go_on}\n")
    for one in found.sites:
        has_changed = any(device.result is DeviceResult.DONE for device in one.outcome.devices)
        if has_changed and one.is_finished and one.outcome.rollback is None:
            say(sys.stderr, f"to roll back: {request.again(f'rollback {one.outcome.run}')}\n")
    return found.exit_code


def _report(request: RolloutRequest, found: RollOut) -> None:
    if request.output == "json":
        documents = [{"site": one.site, "outcome": model.plain(one.outcome)} for one in found.sites]
        write_json({"sites": documents, "stopped": found.stopped})
        return
    for one in found.sites:
        head = f"{one.site}: run {one.outcome.run}" if one.outcome.run else f"{one.site}:"
        say(sys.stdout, f"{head}\n{outcome_text(one.outcome)}")
        if one.outcome.rollback is not None:
            say(sys.stdout, f"run {one.outcome.rollback.run} rolled it back:\n{outcome_text(one.outcome.rollback)}")
    if found.stopped:
        say(sys.stdout, f"stopped: {found.stopped}\n")

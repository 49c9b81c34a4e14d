"""`netkit plan`."""

import sys
from dataclasses import replace
from pathlib import Path

from netkit import plan as planning
from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import PlanRequest
from netkit.errors import Problem, UsageError
from netkit.plan import Plan
from netkit.plan.intent_diff import IntentDiff
from netkit.project.against import RUNNING, at_revision, between, of_running
from netkit.project.planning import from_devices, from_files
from netkit.project.project import Project
from netkit.report import intent_diff
from netkit.report.annotation import annotate
from netkit.report.cluster_diff import cluster_json, cluster_text
from netkit.report.intent_diff import NO_PROOF, ProofNotes
from netkit.report.plan_text import markdown, text
from netkit.terminal.output import write_named

FORMATS = {"text": text, "markdown": markdown, "json": planning.write}
SHIFT_FORMATS = {
    "text": intent_diff.intent_diff_text,
    "markdown": intent_diff.intent_diff_markdown,
    "json": intent_diff.intent_diff_json,
}
CLUSTER_FORMATS = {"text": cluster_text, "json": cluster_json}
UNREACHED, PENDING = 4, 2
REVISION = "git:"


def run(request: PlanRequest) -> int:
    """Print the plan; return 4 if a device could not be read, with --detailed-exitcode 2 if there are changes."""
    if request.output not in FORMATS:
        raise UsageError(Problem(f"unknown format {request.output!r}", f"use one of {', '.join(FORMATS)}"))
    if request.lab and request.running is not None:
        raise UsageError(Problem("--lab and --running exclude each other", "drop one of the options"))
    if request.fleet is not None and (request.running or request.cluster or request.against not in {"", RUNNING}):
        what = "--fleet reads devices; --running, --cluster and a revision do not"
        raise UsageError(Problem(what, "drop one of the options"))
    if request.has_proof and not (request.against.startswith(REVISION) and not request.limit):
        what = "--prove tests a whole change against a revision"
        raise UsageError(Problem(what, "use it with --against git:REVISION, without --limit"))
    if request.against:
        return _against(request)
    if request.cluster:
        return _cluster(request, request.cluster)
    project = open_project(request.folder, request.lab, request.processes)
    warn(project)
    found = replace(_live(project, request.limit, request.running, request.fleet), is_taking_over=request.take_over)
    if request.out is not None:
        write_named(request.out, planning.write(found))
    sys.stdout.write(FORMATS[request.output](found))
    return exit_code(found, detailed=request.is_detailed)


def _cluster(request: PlanRequest, source: str) -> int:
    """Print what applying the rendered files would change in a running cluster; no device is read."""
    from netkit.project.cluster import compared  # noqa: PLC0415 (most plans need no cluster)

    if request.output not in CLUSTER_FORMATS:
        what = f"--cluster cannot be printed as {request.output}"
        raise UsageError(Problem(what, f"use {' or '.join(CLUSTER_FORMATS)}"))
    if request.limit or request.running is not None or request.out is not None:
        what = "--cluster compares the cluster alone"
        raise UsageError(Problem(what, "drop --limit, --running and --out"))
    project = open_project(request.folder, request.lab, request.processes)
    warn(project)
    found = compared(project, source)
    sys.stdout.write(CLUSTER_FORMATS[request.output](found.diff, found.reading.unread, found.reading.unsearched))
    if found.reading.unread:
        return UNREACHED
    return PENDING if request.is_detailed and found.diff else 0


def _against(request: PlanRequest) -> int:
    """Print a plan for a pull request: against a revision, or against what devices run."""
    if request.against != RUNNING and not request.against.startswith(REVISION):
        raise UsageError(Problem(f"--against {request.against!r} is unknown", "use --against git:REVISION or running"))
    if request.against != RUNNING and (request.lab or request.running is not None or request.out is not None):
        what = "a comparison with a revision reads no device, and its plan cannot be deployed"
        raise UsageError(Problem(what, "drop --lab, --running and --out"))
    project, aside = open_project(request.folder, request.lab, request.processes), NO_PROOF
    if request.against == RUNNING:
        warn(project)
        live = _live(project, request.limit, request.running, request.fleet)
        shift = of_running(replace(live, is_taking_over=request.take_over))
    else:
        with at_revision(project, request.against.removeprefix(REVISION)) as (base, shown):
            shift = between(base, project, request.limit, shown)
            aside = _proven(base, project, shift, request) if request.has_proof else NO_PROOF
    annotate(shift.warnings)
    if request.out is not None:
        write_named(request.out, planning.write(shift.plan))
    sys.stdout.write(SHIFT_FORMATS[request.output](shift, aside))
    code = aside.exit_code or exit_code(shift.plan, detailed=request.is_detailed)
    return code or (PENDING if request.is_detailed and not shift.is_nothing else 0)


def _proven(base: Project, project: Project, shift: IntentDiff, request: PlanRequest) -> ProofNotes:
    from netkit.project import proving  # noqa: PLC0415 (slow to import)
    from netkit.prove import proof_text  # noqa: PLC0415 (see above)
    from netkit.terminal.display import display  # noqa: PLC0415 (see above)

    return proof_text.aside(
        proving.prove(base, project, shift, proving.Wish(request.most_devices, request.within_s), display)
    )


def _live(project: Project, limit: str, running: Path | None, fleet: Path | None) -> Plan:
    if running is not None:
        return from_files(project, limit, running)
    if fleet is not None:
        from netkit.fleet.deploying import FleetDeploying  # noqa: PLC0415 (an extra)

        sites = FleetDeploying.of(fleet, project)
        return sites.whole(sites.plans(limit))
    from netkit.project.connections import Connections  # noqa: PLC0415 (slow to import, and files do not need it)

    return from_devices(project, limit, Connections.of(project)).plan


def exit_code(plan: Plan, *, detailed: bool) -> int:
    """Compute the exit code; an incomplete plan outweighs pending changes."""
    if not plan.is_complete:
        return UNREACHED
    return PENDING if detailed and plan.changed else 0

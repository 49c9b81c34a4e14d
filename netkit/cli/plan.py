"""`netkit plan`."""

import sys
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
from netkit.report.intent_diff import NO_PROOF, ProofNotes
from netkit.report.plan_markdown import markdown
from netkit.report.plan_text import text
from netkit.terminal.annotation import annotate
from netkit.terminal.whole_file import write_named

FORMATS = {"text": text, "markdown": markdown, "json": planning.write}
SHIFT_FORMATS = {
    "text": intent_diff.intent_diff_text,
    "markdown": intent_diff.intent_diff_markdown,
    "json": intent_diff.intent_diff_json,
}
UNREACHED, PENDING = 4, 2
REVISION = "git:"


def run(asked: PlanRequest) -> int:
    """Show what would change; return 4 when a device could not be read, 2 on request when something would."""
    if asked.output not in FORMATS:
        raise UsageError(Problem(f"no output format {asked.output!r}", f"use one of {', '.join(FORMATS)}"))
    if asked.lab and asked.running is not None:
        raise UsageError(Problem("--lab and --running are two places to read from", "choose one"))
    if asked.has_proof and not (asked.against.startswith(REVISION) and not asked.limit):
        raise UsageError(Problem("--prove rolls a whole change", "use it with --against git:REVISION, without --limit"))
    if asked.against:
        return _against(asked)
    project = open_project(asked.folder, asked.lab)
    warn(project)
    found = _live(project, asked.limit, asked.running)
    if asked.out is not None:
        write_named(asked.out, planning.write(found))
    sys.stdout.write(FORMATS[asked.output](found))
    return exit_code(found, detailed=asked.is_detailed)


def _against(asked: PlanRequest) -> int:
    """Show a plan as a pull request wants to see it: against a revision, or against what devices run."""
    _refuse_against(asked.against, has_devices=bool(asked.lab) or asked.running is not None or asked.out is not None)
    project, aside = open_project(asked.folder, asked.lab), NO_PROOF
    if asked.against == RUNNING:
        warn(project)
        shift = of_running(_live(project, asked.limit, asked.running))
    else:
        with at_revision(project, asked.against.removeprefix(REVISION)) as (base, shown):
            shift = between(base, project, asked.limit, shown)
            aside = _proven(base, project, shift, asked) if asked.has_proof else NO_PROOF
    annotate(shift.warnings)
    if asked.out is not None:
        write_named(asked.out, planning.write(shift.plan))
    sys.stdout.write(SHIFT_FORMATS[asked.output](shift, aside))
    code = aside.exit_code or exit_code(shift.plan, detailed=asked.is_detailed)
    return code or (PENDING if asked.is_detailed and not shift.is_nothing else 0)


def _refuse_against(against: str, *, has_devices: bool) -> None:
    if against != RUNNING and not against.startswith(REVISION):
        raise UsageError(Problem(f"--against {against!r} says neither", "use --against git:REVISION or running"))
    if against != RUNNING and has_devices:
        what = "a revision is compared with no device, and its plan cannot be deployed"
        raise UsageError(Problem(what, "leave out --lab, --running and --out"))


def _proven(base: Project, project: Project, shift: IntentDiff, asked: PlanRequest) -> ProofNotes:
    from netkit.project import proving  # noqa: PLC0415 (what boots a lab and deploys is slow to import)
    from netkit.prove import proof_text  # noqa: PLC0415 (see above)
    from netkit.terminal.display import display  # noqa: PLC0415 (see above)

    return proof_text.aside(
        proving.prove(base, project, shift, proving.Wish(asked.most_devices, asked.within_s), display)
    )


def _live(project: Project, limit: str, running: Path | None) -> Plan:
    return _of_devices(project, limit) if running is None else from_files(project, limit, running)


def _of_devices(project: Project, limit: str) -> Plan:
    from netkit.project.fleet import fleet  # noqa: PLC0415 (what connects is slow to import, and files need none of it)

    return from_devices(project, limit, fleet(project)).plan


def exit_code(plan: Plan, *, detailed: bool) -> int:
    """Return what a plan ends with: what nobody could read weighs more than what is to be done."""
    if not plan.is_complete:
        return UNREACHED
    return PENDING if detailed and plan.changed else 0

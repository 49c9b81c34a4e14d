"""`netkit plan`."""

import sys
from pathlib import Path

from netkit import plan as planning
from netkit.cli.against import RUNNING, of_revision, of_running
from netkit.cli.annotation import annotate
from netkit.cli.fabric import Project, open_project, warn
from netkit.cli.planning import from_devices, from_files
from netkit.errors import OutputError, Problem, UsageError
from netkit.plan import Plan
from netkit.report import shift_json, shift_markdown, shift_text
from netkit.report.plan_markdown import markdown
from netkit.report.plan_text import text

FORMATS = {"text": text, "markdown": markdown, "json": planning.write}
SHIFT_FORMATS = {"text": shift_text.text, "markdown": shift_markdown.markdown, "json": shift_json.write}
UNREACHED, PENDING = 4, 2
REVISION = "git:"


def run(
    folder: Path,
    *,
    limit: str,
    lab: str,
    running: Path | None,
    out: Path | None,
    output: str,
    detailed: bool,
    against: str = "",
) -> int:
    """Show what would change; return 4 when a device could not be read, 2 on request when something would."""
    if output not in FORMATS:
        raise UsageError(Problem(f"no output format {output!r}", f"use one of {', '.join(FORMATS)}"))
    if lab and running is not None:
        raise UsageError(Problem("--lab and --running are two places to read from", "choose one"))
    if against:
        return _against(folder, against, limit, lab, running, out, output, detailed=detailed)
    project = open_project(folder)
    warn(project)
    found = _live(project, limit, lab, running)
    if out is not None:
        _write(out, found)
    sys.stdout.write(FORMATS[output](found))
    return exit_code(found, detailed=detailed)


def _against(
    folder: Path,
    against: str,
    limit: str,
    lab: str,
    running: Path | None,
    out: Path | None,
    output: str,
    *,
    detailed: bool,
) -> int:
    """Show a plan as a pull request wants to see it: against a revision, or against what devices run."""
    if against == RUNNING:
        project = open_project(folder)
        shift = of_running(_live(project, limit, lab, running))
    elif against.startswith(REVISION) and not lab and running is None and out is None:
        project = open_project(folder)
        shift = of_revision(project, limit, against.removeprefix(REVISION))
    elif against.startswith(REVISION):
        what = "a revision is compared with no device, and its plan cannot be deployed"
        raise UsageError(Problem(what, "leave out --lab, --running and --out"))
    else:
        raise UsageError(Problem(f"--against {against!r} says neither", "use --against git:REVISION or running"))
    annotate(shift.warnings)
    if out is not None:
        _write(out, shift.plan)
    sys.stdout.write(SHIFT_FORMATS[output](shift))
    code = exit_code(shift.plan, detailed=detailed)
    return code or (PENDING if detailed and not shift.is_nothing else 0)


def _live(project: Project, limit: str, lab: str, running: Path | None) -> Plan:
    return _of_devices(project, limit, lab) if running is None else from_files(project, limit, running)


def _of_devices(project: Project, limit: str, lab: str) -> Plan:
    from netkit.cli.fleet import fleet  # noqa: PLC0415 (what connects is slow to import, and files need none of it)

    return from_devices(project, limit, fleet(project, lab)).plan


def exit_code(plan: Plan, *, detailed: bool) -> int:
    """Return what a plan ends with: what nobody could read weighs more than what is to be done."""
    if not plan.is_complete:
        return UNREACHED
    return PENDING if detailed and plan.changed else 0


def _write(file: Path, plan: Plan) -> None:
    draft = file.with_name(f".{file.name}.draft")
    try:
        draft.write_text(planning.write(plan), encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise OutputError(Problem(f"{file} cannot be written: {error.strerror}", "check its folder")) from None

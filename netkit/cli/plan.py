"""`netkit plan`."""

import sys
from pathlib import Path

from netkit import plan as planning
from netkit.cli.fabric import Project, open_project, warn
from netkit.cli.planning import from_devices, from_files
from netkit.errors import OutputError, Problem, UsageError
from netkit.plan import Plan
from netkit.report.plan_markdown import markdown
from netkit.report.plan_text import text

FORMATS = {"text": text, "markdown": markdown, "json": planning.write}
UNREACHED, PENDING = 4, 2


def run(
    folder: Path, *, limit: str, lab: str, running: Path | None, out: Path | None, output: str, detailed: bool
) -> int:
    """Show what would change; return 4 when a device could not be read, 2 on request when something would."""
    if output not in FORMATS:
        raise UsageError(Problem(f"no output format {output!r}", f"use one of {', '.join(FORMATS)}"))
    if lab and running is not None:
        raise UsageError(Problem("--lab and --running are two places to read from", "choose one"))
    project = open_project(folder)
    warn(project)
    found = _of_devices(project, limit, lab) if running is None else from_files(project, limit, running)
    if out is not None:
        _write(out, found)
    sys.stdout.write(FORMATS[output](found))
    return exit_code(found, detailed=detailed)


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

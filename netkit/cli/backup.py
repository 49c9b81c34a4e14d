"""`netkit backup`: running configurations without secrets, one file per device that changes only with the device."""

import sys
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.design.select import select
from netkit.errors import OutputError, Problem
from netkit.report.plan_view import counted, listed
from netkit.terminal.ctrl_c import interrupt_on_sigterm
from netkit.terminal.whole_file import write_whole

UNREACHED = 4
SUFFIX = ".conf"


def run(folder: Path, out: Path, *, limit: str, lab: str, processes: int, fleet: Path | None) -> int:
    """Save running configurations; return 4 if a device could not be read."""
    project = open_project(folder, lab, processes)
    warn(project)
    devices = select(project.fabric, limit)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(Problem(f"{out} cannot be created: {error.strerror}", "name another folder")) from None
    if fleet is None:
        from netkit.project.backups import backed_up  # noqa: PLC0415 (what connects is slow to import)

        texts, missed = backed_up(project, devices)
    else:
        from netkit.fleet.reading import backups_at  # noqa: PLC0415 (an extra)

        interrupt_on_sigterm()
        texts, missed = backups_at(fleet, project, devices)
    changed = [name for name, text in texts.items() if write_whole(out / f"{name}{SUFFIX}", text)]
    news = f"{counted(len(changed), 'file')} changed: {listed(changed)}" if changed else "nothing changed"
    sys.stdout.write(f"{project.fabric.name}: {counted(len(texts), 'device')} saved, {news}\n")
    others = sorted(file.stem for file in out.glob(f"*{SUFFIX}") if project.fabric.device(file.stem) is None)
    if others:
        sys.stdout.write(f"not of this fabric, and left as they are: {listed(others)}\n")
    for name, reason in missed.items():
        sys.stderr.write(f"not saved: {name}: {reason}; its earlier backup stays\n")
    return UNREACHED if missed else 0

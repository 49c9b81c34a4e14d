"""`netkit snapshot`."""

import gzip
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.errors import OutputError, Problem
from netkit.facts import Snapshot, serial
from netkit.project import trials
from netkit.report.plan_view import counted
from netkit.terminal.ctrl_c import interrupt_on_sigterm
from netkit.terminal.whole_file import write_named

UNREACHED = 4


def run(
    folder: Path,
    out: Path,
    files: Sequence[Path] = (),
    *,
    limit: str,
    lab: str,
    window_s: float,
    light: bool,
    source: str,
    processes: int,
    fleet: Path | None,
) -> int:
    """Save the facts of devices; return 4 if one could not be reached."""
    check_place(out)
    project = open_project(folder, lab, processes)
    warn(project)
    measured = trials.read(files)
    if fleet is None:
        found = project.snapshot(limit, window_s=window_s, is_light=light, source=source)
    else:
        from netkit.fleet.reading import snapshot_at  # noqa: PLC0415 (an extra)

        interrupt_on_sigterm()
        found = snapshot_at(fleet, project, limit, window_s=window_s, is_light=light, source=source)
    found = trials.added(found, measured)
    save(found, out)
    return tell(found, out)


def tell(found: Snapshot, out: Path) -> int:
    """Report what was saved; return 4 if a device could not be reached."""
    missed = [one for one in found.devices.values() if one.failure]
    sys.stdout.write(f"{out}: {counted(len(found.devices) - len(missed), 'device')} of {found.fabric}\n")
    for one in missed:
        sys.stderr.write(f"not reached: {one.device}: {one.failure}\n")
    return UNREACHED if missed else 0


def check_place(out: Path) -> None:
    """Refuse an unwritable file before any device is read, which may take minutes."""
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        reason = "it is a folder" if out.is_dir() else f"{out.parent} is not writable"
        raise OutputError(Problem(f"{out} cannot be written: {reason}", "name another file with -o"))


def save(found: Snapshot, out: Path) -> None:
    """Write a snapshot completely or not at all; pipes and devices are written in place."""
    data = serial.dump(found)
    write_named(out, gzip.compress(data, mtime=0) if out.suffix == ".gz" else data)

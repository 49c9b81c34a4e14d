"""`netkit snapshot` and `netkit backup`: what devices are like, and what they run."""

import gzip
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.design.select import select
from netkit.errors import OutputError, Problem
from netkit.facts import Snapshot, serial
from netkit.project import checking
from netkit.report.plan_view import counted, listed
from netkit.terminal.ctrl_c import interrupt_on_signals
from netkit.terminal.output import write_named, write_whole

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
    measured = checking.read(files)
    if fleet is None:
        found = project.snapshot(limit, window_s=window_s, is_light=light, source=source)
    else:
        from netkit.fleet.reading import snapshot_at  # noqa: PLC0415 (an extra)

        interrupt_on_signals()
        found = snapshot_at(fleet, project, limit, window_s=window_s, is_light=light, source=source)
    found = checking.added(found, measured)
    save(found, out)
    return summarise(found, out)


def summarise(found: Snapshot, out: Path) -> int:
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


SUFFIX = ".conf"


def backup(folder: Path, out: Path, *, limit: str, lab: str, processes: int, fleet: Path | None) -> int:
    """Save running configurations; return 4 if a device could not be read."""
    project = open_project(folder, lab, processes)
    warn(project)
    devices = select(project.fabric, limit)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(Problem(f"{out} cannot be created: {error.strerror}", "name another folder")) from None
    if fleet is None:
        from netkit.project.reading import backed_up  # noqa: PLC0415 (what connects is slow to import)

        texts, missed = backed_up(project, devices)
    else:
        from netkit.fleet.reading import backups_at  # noqa: PLC0415 (an extra)

        interrupt_on_signals()
        texts, missed = backups_at(fleet, project, devices)
    changed = [name for name, text in texts.items() if write_whole(out / f"{name}{SUFFIX}", text)]
    news = f"{counted(len(changed), 'file')} changed: {listed(changed)}" if changed else "nothing changed"
    sys.stdout.write(f"{project.fabric.name}: {counted(len(texts), 'device')} saved, {news}\n")
    others = sorted(file.stem for file in out.glob(f"*{SUFFIX}") if project.fabric.device(file.stem) is None)
    if others:
        sys.stdout.write(f"not part of this fabric, and unchanged: {listed(others)}\n")
    for name, reason in missed.items():
        sys.stderr.write(f"not saved: {name}: {reason}; its earlier backup stays\n")
    return UNREACHED if missed else 0

"""`netkit lab up`."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netkit.cli.fabric import open_project, warn
from netkit.errors import LabError, Problem
from netkit.lab import netlink, personality
from netkit.lab.folder import LabFolder, LabJob, ask_keeper, lab_folder, only_one
from netkit.project.lab import await_birth, boot_files, placed, start
from netkit.project.project import Project
from netkit.terminal.progress import lines

POLL_S = 0.2
WIDTH = 30


def up(folder: Path, name: str, *, bare: bool, configs: Path | None, patience_s: float) -> int:
    """Boot a fabric, or report that it runs already; show the progress."""
    project = open_project(folder)
    warn(project)
    personality.check()
    lab = lab_folder(name or project.fabric.name)
    with netlink.announced():
        with only_one():
            is_new = not lab.is_alive
            if is_new:
                files = {} if bare else boot_files(project, configs)
                is_rendered = bool(files) and configs is None
                job = LabJob(project.fabric, files, lab, str(folder.absolute()), patience_s, is_rendered=is_rendered)
                start(lab, project, job)
            else:
                known = lab.record().get("fabric")
                if known and Path(known).resolve() != folder.resolve():
                    what = f"the lab {lab.name} already runs the fabric in {known}"
                    raise LabError(Problem(what, "choose another name with --lab"))
        await_birth(lab)
    try:
        return _follow(lab, project, is_new=is_new)
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{lab.name} is still booting: netkit lab up waits for it, netkit lab down stops it\n")
        raise


def _follow(lab: LabFolder, project: Project, *, is_new: bool) -> int:
    """Follow the keeper until the lab is up, and report what is missing."""
    progress = ask_keeper(lab, "progress" if is_new else "again")
    shown = ""
    with lines(lambda: f"{progress['step']} {progress['done']}/{progress['total']}, {progress['seconds']:.0f} s"):
        while True:
            if progress["failure"]:
                lab.end()
                raise LabError(Problem(f"the lab could not be built: {progress['failure']}"))
            shown = _show(progress, shown)
            if progress["is_up"]:
                break
            time.sleep(POLL_S)
            progress = ask_keeper(lab, "progress")
    for device, port, what in progress["shortfalls"]:
        sys.stderr.write(f"error: {placed(project, device, f'{port}: {what}' if port else what)}\n")
    for device, what in progress.get("notes", ()):  # missing from the keeper of an earlier netkit
        sys.stderr.write(f"note: {device}: {what}\n")
    state = "is up" if is_new else "runs already, as it was booted"
    sys.stdout.write(f"{lab.name} {state}: {len(project.fabric.names)} devices on {progress['block']}.0.0/16\n")
    return 1 if progress["shortfalls"] else 0


def _show(progress: Mapping[str, Any], shown: str) -> str:
    """Draw the progress: a bar on a terminal, elsewhere each step at once."""
    step, done, total = progress["step"], progress["done"], max(progress["total"], 1)
    if sys.stderr.isatty():
        bar = "━" * (WIDTH * done // total)
        text = (
            ""
            if progress["is_up"]
            else f"{step:<12} {bar:<{WIDTH}} {done}/{progress['total']}  {progress['seconds']:.0f} s"
        )
        sys.stderr.write("\r\x1b[K" + text)
        sys.stderr.flush()
    elif step != shown and not progress["is_up"]:
        sys.stderr.write(f"{step}\n")
    return str(step)

"""`netkit lab up`."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netkit.cli.fabric import open_project, warn
from netkit.design import Host, Switch
from netkit.errors import LabError, Problem, UsageError
from netkit.errors import Path as IntentPath
from netkit.lab import personality
from netkit.lab.folder import LabFolder, LabJob, ask_keeper, lab_folder, only_one
from netkit.lab.system import netlink
from netkit.project.lab import await_birth, start
from netkit.project.project import Project
from netkit.render import Engine, render

POLL_S = 0.2
WIDTH = 30


def up(folder: Path, name: str, *, bare: bool, configs: Path | None, patience_s: float) -> int:
    """Boot a fabric, or say that it runs already; show how far it is."""
    project = open_project(folder)
    warn(project)
    personality.check()
    lab = lab_folder(name or project.fabric.name)
    with netlink.announced():
        with only_one():
            is_new = not lab.is_alive
            if is_new:
                files = {} if bare else _files(project, configs)
                start(lab, project, LabJob(project.fabric, files, lab, str(folder.absolute()), patience_s))
            else:
                _recognise(lab, folder)
        await_birth(lab)
    try:
        return _follow(lab, project, is_new=is_new)
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{lab.name} goes on without you: netkit lab up waits again, netkit lab down ends it\n")
        raise


def _recognise(lab: LabFolder, folder: Path) -> None:
    """Refuse to take another fabric's lab for the one that is asked for."""
    known = lab.record().get("fabric")
    if known and Path(known).resolve() != folder.resolve():
        raise LabError(Problem(f"the lab {lab.name} runs already, from {known}", "choose another name with --lab"))


def _files(project: Project, configs: Path | None) -> Mapping[str, Mapping[str, str]]:
    """Return what the devices begin with: rendered now, or a folder that was rendered before."""
    if configs is None:
        devices: tuple[Switch | Host, ...] = (*project.fabric.switches, *project.fabric.hosts)
        made = render(project.fabric, devices, Engine(project.template_folders))
        return {one.device: one.files for one in made}
    found = {name: _read(configs / name) for name in project.fabric.names}
    missing = [name for name, files in found.items() if not files]
    if missing:
        raise UsageError(Problem(f"{configs} has no files of {missing[0]}", "netkit render --out writes such a folder"))
    return found


def _read(folder: Path) -> Mapping[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*")) if file.is_file()}


def _follow(lab: LabFolder, project: Project, *, is_new: bool) -> int:
    """Follow the keeper until the lab is up, and say what is missing."""
    progress = ask_keeper(lab, "progress" if is_new else "again")
    shown = ""
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
    for device, what in progress.get("notes", ()):  # a keeper of an earlier netkit has none
        sys.stderr.write(f"note: {device}: {what}\n")
    state = "is up" if is_new else "runs already, as it was booted"
    sys.stdout.write(f"{lab.name} {state}: {len(project.fabric.names)} devices on {progress['block']}.0.0/16\n")
    return 1 if progress["shortfalls"] else 0


def _show(progress: Mapping[str, Any], shown: str) -> str:
    """Draw how far it is: one moving line on a terminal, one line for each step elsewhere."""
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


def of_device(project: Project, name: str) -> IntentPath:
    """Return the path of the entry that decides most about a device: its override, its unit, or its tier."""
    if name in project.intent.overrides:
        return ("overrides", name)
    device = project.fabric.device(name)
    if isinstance(device, Switch) and device.role != "leaf":
        return ("switches", device.role)
    if device is not None:
        for index, entry in enumerate(project.intent.units):
            if device.unit in entry.unit and device.pod in entry.pod:
                return ("units", index)
    return ()


def placed(project: Project, name: str, what: str) -> Problem:
    """Return a problem with a device at its line of intent."""
    return project.loaded.places.locate(Problem(f"{name}: {what}", path=of_device(project, name)))

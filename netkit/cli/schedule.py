"""`netkit schedule`: systemd timers and services that run checks and backups, and keep their output."""

import sys
from pathlib import Path

from netkit.cli.fabric import open_project
from netkit.errors import Problem, UsageError
from netkit.project.systemd_units import EVERY, UNITS_S, folder_of, unit_files
from netkit.report.plan_view import counted
from netkit.terminal.output import write_whole

ACTIONS = ("show", "install")


def run(
    folder: Path,
    action: str,
    *,
    every: str,
    backup: Path | None,
    units: Path,
    is_notifying: bool,
    fleet: Path | None,
) -> None:
    """Print the units, or install those that are missing or changed."""
    if action not in ACTIONS:
        raise UsageError(Problem(f"unknown action {action!r}", f"use one of {', '.join(ACTIONS)}"))
    found = EVERY.fullmatch(every)
    if found is None:
        what = f"--every {every!r} is not a duration"
        raise UsageError(Problem(what, "use minutes, hours or days, such as 15m, 1h or 1d"))
    every_s = int(found["number"]) * UNITS_S[found["unit"]]
    project = open_project(folder)
    options = ("--notify",) if is_notifying else ()
    place = project.folder.resolve()
    sites = () if fleet is None else ("--fleet", str(fleet.resolve()))
    made = dict(unit_files(project.fabric.name, place, every_s, (*options, *sites), backup and backup.resolve(), sites))
    if action == "show":
        sys.stdout.write("\n".join(f"# {units / name}\n{text}" for name, text in made.items()))
        return
    for name in made:
        known = folder_of(units / name)
        if known and known != str(place):  # the other fabric would no longer be checked
            what = f"{units / name} belongs to the fabric in {known}, which has the same name"
            remedy = "rename one of the fabrics in its fabric.yaml, or remove that unit if its folder is gone"
            raise UsageError(Problem(what, remedy))
    written = [name for name, text in made.items() if write_whole(units / name, text)]
    news = f"{counted(len(written), 'unit')} written to {units}" if written else f"{units} is up to date"
    timers = " ".join(name for name in made if name.endswith(".timer"))
    sys.stdout.write(f"{news}\nnext: systemctl daemon-reload && systemctl enable --now {timers}\n")

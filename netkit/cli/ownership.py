"""`netkit leave` and `netkit own`."""

import sys
from pathlib import Path

from netkit.cli.fabric import open_project
from netkit.errors import Problem, UsageError
from netkit.intent.model import PathRuleIntent
from netkit.project import ownership
from netkit.project.ownership import OwnershipEdit
from netkit.project.planning import plan_of_file
from netkit.project.project import Project
from netkit.terminal.whole_file import write_named

AFTER_OWN = "netkit removes there what no template renders: see netkit plan before you deploy\n"


def leave(folder: Path, path: str, *, devices: str, from_plan: Path | None, is_dry: bool) -> None:
    """Add a path, or all that a plan lists as unexplained, to `leave`."""
    if bool(path) == (from_plan is not None) or (from_plan is not None and devices):
        what = "name a path, with --devices for some devices, or a plan with --from-plan"
        raise UsageError(Problem(what, "netkit leave 'frr.conf / ip prefix-list HAND *' --devices leaf01"))
    project = open_project(folder)
    if from_plan is None:
        rules = [_rule(project, path, devices)]
    else:
        rules = list(ownership.rules_of(project, plan_of_file(project, from_plan).plan))
    _finish(ownership.left(project, rules), is_dry=is_dry)


def own(folder: Path, path: str, *, devices: str, is_dry: bool) -> None:
    """Add a path to `own`, or take it out of `leave`."""
    project = open_project(folder)
    edit = ownership.owned(project, _rule(project, path, devices))
    _finish(edit, is_dry=is_dry)
    if edit.before != edit.after:
        sys.stdout.write(AFTER_OWN)


def _rule(project: Project, path: str, devices: str) -> PathRuleIntent:
    project.devices(devices)  # refuses what selects none
    try:
        return PathRuleIntent(path=path, devices=devices)
    except ValueError:
        what = f"{path!r} is not a path"
        raise UsageError(Problem(what, "write it from the outside in with ' / ' between its parts")) from None


def _finish(edit: OwnershipEdit, *, is_dry: bool) -> None:
    """Show the edit, and write it unless this is a dry run."""
    if edit.before == edit.after:
        sys.stdout.write(f"{edit.file}: nothing to change\n")
        return
    sys.stdout.write(edit.diff())
    if not is_dry:
        write_named(edit.file, edit.after)
        sys.stdout.write(f"{edit.file}: written\n")

"""`netkit init`, `validate`, `schema`, `platforms`, `leave` and `own`."""

import difflib
import sys
from pathlib import Path

from netkit import design
from netkit.cli.fabric import open_project, warn
from netkit.errors import NetkitError, Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent import Intent, document, scaffold
from netkit.intent.model import PathRuleIntent
from netkit.intent.scaffold import Size
from netkit.platforms import PLATFORMS
from netkit.platforms.compare import MODELS
from netkit.project import ownership
from netkit.project.ownership import OwnershipEdit
from netkit.project.planning import plan_of_file
from netkit.project.project import Project
from netkit.project.validation import SCHEMAS, settings_schema, validated
from netkit.report.platform_text import platform_details, platform_entry, platform_sections, platform_table
from netkit.terminal.output import check_format, write_json, write_named


def init(
    folder: Path,
    *,
    leaves: int,
    spines: int,
    planes: int,
    pods: int,
    cores: int,
    hosts: int,
    units: int,
    platform: str,
    model: str,
    cluster: str,
) -> None:
    """Write the folder of a new fabric, once its design has proved valid."""
    catalog = Catalog()
    size = Size(leaves, spines, hosts, units, platform, model, cluster, planes, pods, cores)
    text = scaffold.text(folder, size, catalog)
    try:
        fabric = design.build(Intent.model_validate(document.parse(text, "fabric.yaml").value), catalog)
    except NetkitError as error:
        remedy = "change --units, --hosts-per-unit, --spines, --leaves, --pods, --cores, --platform or --model"
        messages = dict.fromkeys(problem.message for problem in error.problems)
        raise UsageError(Problem(f"cannot build this fabric: {message}", remedy) for message in messages) from None
    file = scaffold.write(folder, text)
    sys.stdout.write(f"{file}: {len(fabric.switches)} switches, {len(fabric.hosts)} hosts\n")
    sys.stdout.write(f"next: netkit design --fabric {folder}, then netkit render --fabric {folder} --out out\n")


def validate(folder: Path, output: str) -> None:
    """Check the intent, its design, its files, and the settings beside it."""
    check_format(output)
    try:
        project = validated(folder)
    except NetkitError as error:
        if output == "json":
            write_json({"valid": False, "problems": list(map(_problem_entry, error.problems))})
        raise
    fabric = project.fabric
    if output == "json":
        write_json({"valid": True, "problems": list(map(_problem_entry, project.notes()))})
        return
    warn(project, notes=True)
    sys.stdout.write(f"{fabric.name}: valid; {len(fabric.switches)} switches, {len(fabric.hosts)} hosts\n")


def _problem_entry(problem: object) -> dict[str, object]:
    names = ("severity", "file", "line", "path", "message", "remedy")
    return {name: getattr(problem, name) for name in names}


def print_schema(name: str) -> None:
    """Print the JSON Schema of a file in a fabric's folder."""
    if name not in SCHEMAS:
        raise UsageError(Problem(f"no schema of {name!r}", f"use one of {', '.join(SCHEMAS)}"))
    write_json(settings_schema(name))


def platforms(name: str, output: str) -> None:
    """Print what each platform supports, or everything about one."""
    check_format(output)
    if name and name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, 1)
        remedy = f"did you mean {close[0]}?" if close else f"use one of {', '.join(MODELS)}"
        raise UsageError(Problem(f"unknown platform {name!r}", remedy))
    if output == "json":
        write_json(platform_details(name) if name else {one: platform_entry(PLATFORMS[one]) for one in PLATFORMS})
    elif name:
        sys.stdout.write("\n".join(platform_sections(name)))
    else:
        sys.stdout.writelines(platform_table())


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

"""`netkit init`, `netkit validate` and `netkit schema`."""

import importlib
import operator
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from netkit import design
from netkit.cli.fabric import open_project, warn
from netkit.errors import IntentError, NetkitError, Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent import Intent, document, scaffold
from netkit.intent.model import DIALECT, json_schema
from netkit.intent.scaffold import Size
from netkit.project.project import Project
from netkit.terminal.text import check_format, write_json


def init(
    folder: Path,
    *,
    leaves: int,
    spines: int,
    planes: int,
    hosts: int,
    units: int,
    platform: str,
    model: str,
    cluster: str,
) -> None:
    """Write the folder of a new fabric, once its design has proved valid."""
    catalog = Catalog()
    size = Size(leaves, spines, hosts, units, platform, model, cluster, planes)
    text = scaffold.text(folder, size, catalog)
    try:
        fabric = design.build(Intent.model_validate(document.parse(text, "fabric.yaml").value), catalog)
    except NetkitError as error:
        remedy = "change --units, --hosts-per-unit, --spines, --leaves, --platform or --model"
        messages = dict.fromkeys(problem.message for problem in error.problems)
        raise UsageError(Problem(f"cannot build this fabric: {message}", remedy) for message in messages) from None
    file = scaffold.write(folder, text)
    sys.stdout.write(f"{file}: {len(fabric.switches)} switches, {len(fabric.hosts)} hosts\n")
    sys.stdout.write(f"next: netkit design --fabric {folder}, then netkit render --fabric {folder} --out out\n")


SILENCES = "silences.yaml"
SETTINGS = {
    "access.yaml": "netkit.access.settings",
    "deploy.yaml": "netkit.deploy.policy",
    "notify.yaml": "netkit.notify.settings",
    SILENCES: "netkit.silence.file",
}
"""File → the module that loads it."""


def validate(folder: Path, output: str) -> None:
    """Check the intent, the design and the settings beside the intent."""
    check_format(output)
    try:
        project = _validated(folder)
    except NetkitError as error:
        if output == "json":
            write_json({"valid": False, "problems": list(map(_problem_entry, error.problems))})
        raise
    fabric = project.fabric
    if output == "json":
        write_json(
            {"valid": True, "problems": [_problem_entry(project.loaded.places.locate(note)) for note in fabric.notes]}
        )
        return
    warn(project, notes=True)
    sys.stdout.write(f"{fabric.name}: valid; {len(fabric.switches)} switches, {len(fabric.hosts)} hosts\n")


def _validated(folder: Path) -> Project:
    """Open a fabric; report problems of its intent, design and settings together."""
    try:
        project = open_project(folder)
    except NetkitError as error:
        error.problems = (*error.problems, *_of_settings(folder))
        raise
    if problems := tuple(_of_settings(folder)):
        raise IntentError(problems)
    if os.access(project.folder / SILENCES, os.F_OK):
        # Imported here: few fabrics have the file, and this loads all checks.
        judging = importlib.import_module("netkit.project.judging")
        judging.loaded(project, judging.known_of(project))
    return project


def _of_settings(folder: Path) -> Iterator[Problem]:
    """Yield the problems of the settings beside the intent; each file is optional."""
    home = folder if folder.is_dir() else folder.parent
    for name, module in SETTINGS.items():
        if os.access(home / name, os.F_OK):
            try:
                importlib.import_module(module).load(home)  # imported here, since few fabrics have the file
            except NetkitError as error:
                yield from error.problems


def _problem_entry(problem: object) -> dict[str, object]:
    names = ("severity", "file", "line", "path", "message", "remedy")
    return {name: getattr(problem, name) for name in names}


SCHEMAS = {
    "fabric": "",
    "access": "netkit.access.settings:AccessSettings.model_json_schema",
    "deploy": "netkit.deploy.policy:DeployPolicy.model_json_schema",
    "fleet": "netkit.fleet.settings:FleetSettings.model_json_schema",
    "notify": "netkit.notify.settings:NotifySettings.model_json_schema",
    "silences": "netkit.silence.entry:schema",
}
"""File → the function that returns its schema, imported on demand."""


def print_schema(name: str) -> None:
    """Print the JSON Schema of a file in a fabric's folder."""
    if name not in SCHEMAS:
        raise UsageError(Problem(f"no schema of {name!r}", f"use one of {', '.join(SCHEMAS)}"))
    if name == "fabric":
        write_json(json_schema())
        return
    module, _, attribute = SCHEMAS[name].partition(":")
    schema = operator.attrgetter(attribute)(importlib.import_module(module))()
    head = {"$schema": DIALECT, "$comment": f"written by `netkit schema {name}`"}
    write_json({**head, **schema, "title": f"netkit {name}"})

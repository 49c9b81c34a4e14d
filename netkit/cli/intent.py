"""`netkit init`, `netkit validate` and `netkit schema`."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from netkit import design
from netkit.cli.fabric import open_project, warn
from netkit.design import Fabric
from netkit.errors import IntentError, NetkitError, Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent import Intent, document, scaffold
from netkit.intent.model import DIALECT, json_schema
from netkit.intent.scaffold import Size
from netkit.project.project import Project
from netkit.terminal.text import check_format, write_json


def init(folder: Path, *, leaves: int, spines: int, hosts: int, units: int, platform: str, model: str) -> None:
    """Prove that a fabric of the size is valid, and only then write its folder."""
    catalog = Catalog()
    size = Size(leaves=leaves, spines=spines, hosts_per_unit=hosts, units=units, platform=platform, model=model)
    text = scaffold.text(folder, size, catalog)
    fabric = _designed(text, catalog)
    file = scaffold.write(folder, text)
    sys.stdout.write(f"{file}: {len(fabric.switches)} switches, {len(fabric.hosts)} hosts\n")
    sys.stdout.write(f"next: netkit design --fabric {folder}, then netkit render --fabric {folder} --out out\n")


def _designed(text: str, catalog: Catalog) -> Fabric:
    try:
        return design.build(Intent.model_validate(document.parse(text, "fabric.yaml").value), catalog)
    except NetkitError as error:
        remedy = "change --units, --hosts-per-unit, --spines, --leaves, --platform or --model"
        messages = dict.fromkeys(problem.message for problem in error.problems)
        raise UsageError(Problem(f"no such fabric can be built: {message}", remedy) for message in messages) from None


SILENCES = "silences.yaml"
SETTINGS = {
    "access.yaml": "netkit.access.settings",
    "deploy.yaml": "netkit.deploy.policy",
    "notify.yaml": "netkit.notify.settings",
    SILENCES: "netkit.silence.file",
}
"""File → the module that loads it."""


def validate(folder: Path, output: str) -> None:
    """Check everything up to the design, and the settings beside the intent."""
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
    """Open a fabric, or report the problems of its intent, its design and its settings together."""
    try:
        project = open_project(folder)
    except NetkitError as error:
        error.problems = (*error.problems, *_of_settings(folder))
        raise
    if problems := tuple(_of_settings(folder)):
        raise IntentError(problems)
    if os.access(project.folder / SILENCES, os.F_OK):
        # Here, since few fabrics have the file, and all checks are loaded to compare it with.
        judging = importlib.import_module("netkit.project.judging")
        judging.loaded(project, judging.known_of(project))
    return project


def _of_settings(folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with the settings beside the intent; each file is optional."""
    home = folder if folder.is_dir() else folder.parent
    for name, module in SETTINGS.items():
        if os.access(home / name, os.F_OK):
            try:
                importlib.import_module(module).load(home)  # here, since few fabrics have the file
            except NetkitError as error:
                yield from error.problems


def _problem_entry(problem: object) -> dict[str, object]:
    names = ("severity", "file", "line", "path", "message", "remedy")
    return {name: getattr(problem, name) for name in names}


Plain = dict[str, Any]


def print_schema(name: str) -> None:
    """Print the JSON Schema of a file of a fabric's folder."""
    if name not in SCHEMAS:
        raise UsageError(Problem(f"no schema of {name!r}", f"use one of {', '.join(SCHEMAS)}"))
    write_json(SCHEMAS[name]())


def _access() -> Plain:
    from netkit.access.settings import AccessSettings  # noqa: PLC0415 (the schema of the intent does without)

    return _whole("access", AccessSettings.model_json_schema())


def _deploy() -> Plain:
    from netkit.deploy.policy import DeployPolicy  # noqa: PLC0415 (the schema of the intent does without)

    return _whole("deploy", DeployPolicy.model_json_schema())


def _notify() -> Plain:
    from netkit.notify.settings import NotifySettings  # noqa: PLC0415 (the schema of the intent does without)

    return _whole("notify", NotifySettings.model_json_schema())


def _silences() -> Plain:
    from netkit.silence.entry import schema  # noqa: PLC0415 (the schema of the intent does without)

    return _whole("silences", schema())


def _whole(name: str, schema: Plain) -> Plain:
    return {"$schema": DIALECT, "$comment": f"written by `netkit schema {name}`", **schema, "title": f"netkit {name}"}


SCHEMAS: Mapping[str, Callable[[], Plain]] = {
    "fabric": json_schema,
    "access": _access,
    "deploy": _deploy,
    "notify": _notify,
    "silences": _silences,
}

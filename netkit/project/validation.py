"""Validation of a fabric's folder: the intent, its design, and the files of settings beside it."""

import importlib
import operator
import os
from collections.abc import Iterator
from pathlib import Path

from netkit.errors import IntentError, NetkitError, Problem, RenderError
from netkit.intent.model import DIALECT, json_schema
from netkit.project.project import Project
from netkit.project.rendering import bounded, each_in_time
from netkit.render import Engine, render, render_clusters

SILENCES = "silences.yaml"
SETTINGS = {
    "access.yaml": "netkit.access.settings",
    "deploy.yaml": "netkit.deploy.policy",
    "notify.yaml": "netkit.notify.settings",
    SILENCES: "netkit.silence",
}
"""File → the module that loads it."""

SCHEMAS = {
    "fabric": "",
    "access": "netkit.access.settings:AccessSettings.model_json_schema",
    "deploy": "netkit.deploy.policy:DeployPolicy.model_json_schema",
    "fleet": "netkit.fleet.settings:FleetSettings.model_json_schema",
    "notify": "netkit.notify.settings:NotifySettings.model_json_schema",
    "silences": "netkit.silence:schema",
}
"""File → the function that returns its schema, imported on demand."""


def validated(folder: Path) -> Project:
    """Open a fabric; report problems of its intent, design and settings together, then those of its files."""
    try:
        project = Project.open(folder)
    except NetkitError as error:
        error.problems = (*error.problems, *_of_settings(folder))
        raise
    if problems := tuple(_of_settings(folder)):
        raise IntentError(problems)
    if problems := tuple(dict.fromkeys(map(project.loaded.places.locate, _of_rendering(project)))):
        raise RenderError(problems)
    if os.access(project.folder / SILENCES, os.F_OK):
        # Imported here: few fabrics have the file, and this loads all checks.
        judging = importlib.import_module("netkit.project.judging")
        judging.loaded(project, judging.known_of(project))
    return project


def _of_rendering(project: Project) -> Iterator[Problem]:
    """Yield what a NOS or a template refuses, of every switch, of the hosts and of the clusters."""
    fabric, engine = project.fabric, Engine(project.template_folders)
    parts = [render(fabric, [switch], engine, extra=True) for switch in fabric.switches]
    parts += [render(fabric, fabric.hosts, engine, extra=True)]
    parts += [render_clusters(fabric, [cluster], engine, extra=True) for cluster in fabric.clusters]
    with bounded():
        for part in parts:
            try:
                for _ in each_in_time(part):
                    pass
            except RenderError as error:
                yield from error.problems


def _of_settings(folder: Path) -> Iterator[Problem]:
    """Yield the problems of the settings beside the intent; each file is optional."""
    home = folder if folder.is_dir() else folder.parent
    for name, module in SETTINGS.items():
        if os.access(home / name, os.F_OK):
            try:
                importlib.import_module(module).load(home)  # imported here, since few fabrics have the file
            except NetkitError as error:
                yield from error.problems


def settings_schema(name: str) -> dict[str, object]:
    """The JSON Schema of a file in a fabric's folder."""
    if name == "fabric":
        return json_schema()
    module, _, attribute = SCHEMAS[name].partition(":")
    schema = operator.attrgetter(attribute)(importlib.import_module(module))()
    head = {"$schema": DIALECT, "$comment": f"written by `netkit schema {name}`"}
    return {**head, **schema, "title": f"netkit {name}"}

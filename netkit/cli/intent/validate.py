"""`netkit validate`."""

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from netkit.cli.fabric import open_project, warn
from netkit.errors import IntentError, NetkitError, Problem
from netkit.project.project import Project
from netkit.terminal.text import check_format, write_json

SILENCES = "silences.yaml"
SETTINGS = {
    "access.yaml": "netkit.access.settings",
    "deploy.yaml": "netkit.deploy.policy",
    "notify.yaml": "netkit.notify.settings",
    SILENCES: "netkit.silence.file",
}
"""File → the module that loads it."""


def run(folder: Path, output: str) -> None:
    """Check everything up to the design, and the settings beside the intent."""
    check_format(output)
    try:
        project = _opened(folder)
    except NetkitError as error:
        if output == "json":
            write_json({"valid": False, "problems": list(map(_entry, error.problems))})
        raise
    fabric = project.fabric
    if output == "json":
        write_json({"valid": True, "problems": [_entry(project.loaded.places.locate(note)) for note in fabric.notes]})
        return
    warn(project, notes=True)
    sys.stdout.write(f"{fabric.name}: valid; {len(fabric.switches)} switches, {len(fabric.hosts)} hosts\n")


def _opened(folder: Path) -> Project:
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


def _entry(problem: object) -> dict[str, object]:
    names = ("severity", "file", "line", "path", "message", "remedy")
    return {name: getattr(problem, name) for name in names}

"""`netkit validate`."""

import sys
from pathlib import Path

from netkit.cli.fabric import check_format, open_project, warn
from netkit.cli.text import write_json
from netkit.errors import NetkitError


def run(folder: Path, output: str) -> None:
    """Check everything up to the design."""
    check_format(output)
    try:
        project = open_project(folder)
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


def _entry(problem: object) -> dict[str, object]:
    names = ("severity", "file", "line", "path", "message", "remedy")
    return {name: getattr(problem, name) for name in names}

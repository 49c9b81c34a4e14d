"""`netkit truth`."""

import sys
from dataclasses import astuple
from pathlib import Path

from netkit.access import settings
from netkit.access.secrets import SecretStore
from netkit.cli.fabric import open_project
from netkit.errors import Problem
from netkit.report.plan_view import shown
from netkit.report.table import columns
from netkit.terminal.text import check_format, write_json
from netkit.truth.difference import differences, of_fabric
from netkit.truth.source import read

HEAD = ("DEVICE", "PORT", "ATTRIBUTE", "TRUTH", "INTENT")


def run(folder: Path, *, output: str) -> int:
    """Print the differences between a source of truth and the intent; return 1 if there are any."""
    check_format(output)
    project = open_project(folder)
    access = settings.load(project.folder)
    if access.truth is None:
        remedy = "add `truth: {kind: nautobot, url: https://…, token: {env: NAME}}`"
        raise settings.AccessFileError(
            Problem("names no source of truth", remedy, file=str(project.folder / settings.FILE))
        )
    token = SecretStore(access.secrets).read(access.truth.token, "the token of the source of truth", "TRUTH_TOKEN")
    found = differences(read(access.truth, token), of_fabric(project.fabric))
    if output == "json":
        write_json(found)
    elif found:
        rows = [tuple(shown(cell) for cell in astuple(one)) for one in found]
        sys.stdout.write(columns(rows, HEAD))
    else:
        sys.stdout.write(f"{access.truth.kind} and the intent of {project.fabric.name} agree\n")
    return 1 if found else 0

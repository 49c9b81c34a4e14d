"""`netkit truth`."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from pathlib import Path

from netkit.access import settings
from netkit.access.secrets import SecretStore
from netkit.cli.design import use_hint
from netkit.cli.fabric import open_project
from netkit.errors import Problem, UsageError
from netkit.intent import csv_table
from netkit.intent.model import Tables
from netkit.project.checking import Checking
from netkit.report.plan_view import counted, shown
from netkit.report.table import columns
from netkit.terminal.output import check_format, write_json
from netkit.truth.difference import TruthDifference, TruthDrift, differences, heard_cables, of_fabric, of_snapshot
from netkit.truth.difference import drift as differing
from netkit.truth.export import TruthExport
from netkit.truth.imports import TruthImport, redesigned
from netkit.truth.reading import read, read_inventory
from netkit.truth.source import TruthApi, export_of, exported, site_of

HEAD = ("DEVICE", "PORT", "ATTRIBUTE", "TRUTH", "INTENT")
UNREACHED = 4
SHOWN = 20
"""Lines of one kind that are printed."""


def diff(folder: Path, *, output: str) -> int:
    """Print the differences between a source of truth and the intent; return 1 if there are any."""
    check_format(output)
    project = open_project(folder)
    api = connected(project.folder)
    found = differences(read(api), of_fabric(project.fabric))
    if output == "json":
        write_json(found)
    elif found:
        sys.stdout.write(columns(_cells(found), HEAD))
    else:
        sys.stdout.write(f"{api.settings.kind} and the intent of {project.fabric.name} agree\n")
    return 1 if found else 0


def _cells(found: Iterable[TruthDifference | TruthDrift]) -> list[tuple[str, ...]]:
    return [tuple(shown(cell) for cell in astuple(one)) for one in found]


def connected(folder: Path) -> TruthApi:
    """The source of truth that access.yaml in a folder names."""
    access = settings.load(folder)
    if access.truth is None:
        remedy = "add `truth: {kind: nautobot, url: https://…, token: {env: NAME}}`"
        raise settings.AccessFileError(Problem("names no source of truth", remedy, file=str(folder / settings.FILE)))
    token = SecretStore(access.secrets).read(access.truth.token, "the token of the source of truth", "TRUTH_TOKEN")
    return TruthApi(access.truth, token)


def export(folder: Path, *, yes: bool, output: str) -> int:
    """Write the fabric into a source of truth, or print what would be written.

    Return 1 if something is in the way, or a dry run has something to write.
    """
    check_format(output)
    project = open_project(folder)
    api = connected(project.folder)
    found = exported(api, project.fabric, writes=yes)
    if output == "json":
        write_json(found.found)
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(found, api.settings.kind))
    return 1 if any(one.action == "left" or not yes for one in found.found) else 0


def read_into(folder: Path, out: Path) -> int:
    """Write the tables of an intent from a source of truth; return 1 if the two still differ."""
    project = open_project(folder)
    api = connected(project.folder)
    inventory = read_inventory(api, *filter(None, [project.fabric.host_pool, project.fabric.host_pool_v6]))
    found = TruthImport(project.fabric, inventory)
    rows = found.tables()
    for name, kind in Tables.columns().items():
        count = csv_table.write(out / f"{name}.csv", kind, rows[name])
        sys.stdout.write(f"{out / name}.csv: {counted(count, 'row')}\n")
    missing = [name for name in found.interconnect.names if name not in found.names]
    for title, names in (("not in the source, designed by rule", missing), ("left out", found.left_out)):
        lines = [f"{name}: {why}" if (why := found.left_out.get(name)) else name for name in names]
        sys.stdout.writelines(f"{title}: {shown(line)}\n" for line in lines[:SHOWN])
        if len(lines) > SHOWN:
            sys.stdout.write(f"{title}: and {len(lines) - SHOWN} more\n")
    fabric = redesigned(project.intent, rows, project.catalog, out)
    if not project.intent.tables.model_fields_set:
        sys.stdout.write(use_hint(out, project.folder))
    differing = differences(inventory.records, of_fabric(fabric))
    if differing:
        sys.stdout.write("still different:\n" + columns(_cells(differing[:SHOWN]), HEAD))
    return 1 if differing else 0


def drift(folder: Path, *, lab: str, snapshot: Path | None, write_cables: bool, yes: bool, output: str) -> int:
    """Print where truth, intent and what runs differ; with `write_cables`, write those that LLDP names."""
    check_format(output)
    if yes and not write_cables:
        raise UsageError(Problem("--yes writes cables", "add --write-cables, or drop --yes"))
    project = open_project(folder, lab)
    api = connected(project.folder)
    seen = Checking.of(project, snapshot=snapshot, is_light=True).base_context().snapshot
    truth, running = read(api), of_snapshot(project.fabric, seen)
    found = differing(truth, of_fabric(project.fabric), running)
    missed = [f"not read: {one.device}: {one.failure}\n" for one in seen.devices.values() if one.failure]
    sys.stderr.writelines(missed)
    export = None
    if write_cables:
        site = site_of(api, project.fabric)
        export = export_of(api, site, heard_cables(project.fabric, site, truth, running), writes=yes)
    if output == "json":
        write_json({"drift": found, "cables": export.found} if export else found)
    elif found:
        sys.stdout.write(columns(_cells(found), (*HEAD, "RUNNING")))
    else:
        sys.stdout.write(f"{api.settings.kind}, the intent of {project.fabric.name} and the running fabric agree\n")
    if export and output != "json":
        sys.stdout.writelines(f"{line}\n" for line in _lines(export, api.settings.kind))
    return UNREACHED if missed else 1 if found else 0


def _lines(export: TruthExport, kind: str) -> Iterator[str]:
    counts = Counter((one.kind, one.action) for one in export.found)
    kinds = dict.fromkeys(one.kind for one in export.found)
    rows = [(each, *(str(counts[(each, action)]) for action in ("create", "change", "left"))) for each in kinds]
    if rows:
        yield columns(rows, ("WHAT", "CREATE", "CHANGE", "LEFT")).rstrip("\n")
    for action, title in (("change", "changed"), ("left", "left unchanged")):
        found = [one for one in export.found if one.action == action]
        if found:
            yield f"{title}:"
            yield from (f"  {one.kind} {shown(one.name)}: {shown(one.detail)}" for one in found[:SHOWN])
        if len(found) > SHOWN:
            yield f"  and {len(found) - SHOWN} more; --format json lists all"
    yield f"{counted(export.unchanged, 'object')} of {kind} match the intent"
    if not export.writes and any(one.action != "left" for one in export.found):
        yield "nothing was written; --yes writes it"

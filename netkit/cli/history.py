"""`netkit history`."""

import sys
from collections.abc import Container
from pathlib import Path

from netkit.cli.fabric import open_project
from netkit.deploy import Journal, history
from netkit.design import Fabric
from netkit.design.select import select
from netkit.errors import DeployError, Problem, UsageError
from netkit.project.runs import found_run, runs_folder
from netkit.report.history_text import entry, run_document, run_text, table
from netkit.terminal.output import check_format, write_json


def run(folder: Path, name: str, *, limit: str, lab: str, output: str, fleet: Path | None) -> None:
    """List the runs on a fabric, or print one of them."""
    check_format(output)
    if fleet is not None:
        from netkit.cli.fleet_rollout import show_history  # noqa: PLC0415 (an extra)

        if limit:
            raise UsageError(Problem("--limit does not work with --fleet", "drop --limit"))
        show_history(folder, lab, fleet, name, output)
        return
    if limit and not name:
        raise UsageError(Problem("--limit selects diffs of one run", "name the run, or last"))
    project = open_project(folder, lab)
    fabric, runs = project.fabric, runs_folder(project.fabric.name, project.lab)
    if name:
        journal = found_run(runs, name)
        names = _selected(journal, fabric, limit) if limit else None
        if output == "json":
            write_json(run_document(journal, names))
        else:
            sys.stdout.write(run_text(journal, names))
        return
    found = history(runs)
    if output == "json":
        write_json([entry(one) for one in found])
    elif found:
        sys.stdout.write(table(found))
    else:
        sys.stdout.write(f"no run on {fabric.name} yet\n")
    if damaged := [problem for one in found if one.damage is not None for problem in one.damage.problems]:
        sys.stdout.flush()
        raise DeployError(damaged)


def _selected(journal: Journal, fabric: Fabric, limit: str) -> Container[str]:
    """Select devices of a run; a name may belong to a device the fabric no longer has."""
    if journal.orders().plan.device(limit) is not None:
        return {limit}
    return {device.name for device in select(fabric, limit)}

"""`netkit history`: runs of deploys, and with `--checks` runs of checks."""

import sys
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from netkit.cli.check import FORMATS
from netkit.cli.fabric import open_project
from netkit.deploy import Journal, history
from netkit.design import Fabric
from netkit.design.select import select
from netkit.errors import DeployError, Problem, UsageError
from netkit.judge.run import Judgement
from netkit.project.past import place_of, source_of
from netkit.project.runs import LAST, found_run, runs_folder
from netkit.report.history_text import entry, run_document, run_text, table
from netkit.report.judgement_view import Judged
from netkit.report.table import columns
from netkit.store import CheckRun
from netkit.store.store import open_store
from netkit.terminal.text import check_format, write_json


def run(folder: Path, name: str, *, limit: str, lab: str, output: str) -> None:
    """List the runs on a fabric, or print all about one."""
    check_format(output)
    if limit and not name:
        raise UsageError(Problem("--limit is for the diffs of one run", "name the run, or last"))
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
    """Return the devices of a run that an expression selects; a name may be one that the fabric has no more."""
    if journal.orders().plan.device(limit) is not None:
        return {limit}
    return {device.name for device in select(fabric, limit)}


CHECKS_HEAD = ("RUN", "TAKEN", "WINDOW", "DEVICES", "EXAMINED", "RESULT")


def run_checks(folder: Path, name: str, *, lab: str, store: str, output: str) -> None:
    """List the stored runs of checks on a fabric, or print one of them again."""
    _refuse(output, name)
    source = source_of(open_project(folder, lab))
    with open_store(place_of(store or "."), is_new_allowed=False) as opened:
        found = opened.runs(source)
        if name:
            one = chosen(found, name)
            sys.stdout.write(FORMATS[output](judged_again(one, opened.judgement(one))))
            return
    if output == "json":
        write_json([_entry(one) for one in found])
    elif found:
        sys.stdout.write(columns(rows(found), CHECKS_HEAD))
    else:
        sys.stdout.write(f"no run of checks on {source.fabric} is stored\n")


def _refuse(output: str, name: str) -> None:
    if not name:
        check_format(output)
    elif output not in FORMATS:
        raise UsageError(Problem(f"no output format {output!r}", f"use one of {', '.join(FORMATS)}"))


def chosen(runs: Sequence[CheckRun], name: str) -> CheckRun:
    """Return a run by its name, the beginning of it, or `last`."""
    found = [one for one in runs if one.name.startswith(name)] if name != LAST else list(runs[:1])
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(Problem(f"{len(found)} runs begin with {name!r}", "use more of the name"))
    raise UsageError(Problem(f"no run {name!r} is stored", "netkit history --checks lists them, with --lab of a lab"))


def judged_again(run: CheckRun, judgement: Judgement) -> Judged:
    """Return a stored run as it was shown."""
    return Judged(
        run.source.fabric, run.devices, run.window_s, run.taken_s, judgement, run.layers, exit_code=run.exit_code
    )


def rows(runs: Iterable[CheckRun]) -> Iterator[tuple[object, ...]]:
    """Yield what is said of each run in a line."""
    for one in runs:
        taken = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(one.taken_s))
        reached = f"{one.devices - one.counts.unreached} of {one.devices}"
        yield one.name, taken, f"{one.window_s:.0f} s", reached, f"{one.counts.examined:,}", _result(one)


def _result(run: CheckRun) -> str:
    counts = run.counts
    told = ((counts.errors, "error"), (counts.failures, "fail"), (counts.warnings, "warn"))
    bad = ", ".join(f"{number} {word}" for number, word in told if number)
    if not counts.examined:
        return "nothing could be judged"
    silenced = f"{counts.silenced} silenced" if counts.silenced else ""
    if bad:
        return ", ".join(filter(None, (bad, silenced)))
    clean = "not known to be clean" if counts.unreached else "clean"
    return f"{clean} but for {silenced}" if silenced else clean


def _entry(run: CheckRun) -> dict[str, object]:
    told = ("taken_s", "window_s", "devices", "exit_code", "intent", "version")
    return {
        "run": run.name,
        **asdict(run.source),
        **{name: getattr(run, name) for name in told},
        "verdict": run.verdict.word,
        **asdict(run.counts),
        "checks": list(run.layers),
    }

"""`netkit history --checks`."""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from netkit.cli.check import FORMATS
from netkit.cli.fabric import open_project
from netkit.errors import Problem, UsageError
from netkit.project.past import chosen_run, place_of, source_of
from netkit.report.judgement_view import judged_again
from netkit.report.table import columns
from netkit.store import CheckRun
from netkit.store.store import open_store
from netkit.terminal.output import check_format, write_json

HEAD = ("RUN", "TAKEN", "WINDOW", "DEVICES", "EXAMINED", "RESULT")


def run(folder: Path, name: str, *, lab: str, store: str, site: str, output: str) -> None:
    """List the stored runs of checks on a fabric, or print one of them."""
    if not name:
        check_format(output)
    elif output not in FORMATS:
        raise UsageError(Problem(f"unknown format {output!r}", f"use one of {', '.join(FORMATS)}"))
    source = source_of(open_project(folder, lab, site=site))
    with open_store(place_of(store or "."), is_new_allowed=False) as opened:
        found = opened.runs(source)
        if name:
            one = chosen_run(found, name)
            sys.stdout.write(FORMATS[output](judged_again(one, opened.judgement(one))))
            return
    if output == "json":
        write_json([_entry(one) for one in found])
    elif found:
        sys.stdout.write(columns(rows(found), HEAD))
    else:
        sys.stdout.write(f"no stored run of checks on {source.shown}\n")


def rows(runs: Iterable[CheckRun]) -> Iterator[tuple[object, ...]]:
    for one in runs:
        taken = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(one.taken_s))
        reached = f"{one.devices - one.counts.unreached} of {one.devices}"
        yield one.name, taken, f"{one.window_s:.0f} s", reached, f"{one.counts.examined:,}", _result(one)


def _result(run: CheckRun) -> str:
    counts = run.counts
    words = ((counts.errors, "error"), (counts.failures, "fail"), (counts.warnings, "warn"))
    bad = ", ".join(f"{number} {word}" for number, word in words if number)
    if not counts.examined:
        return "nothing could be judged"
    silenced = f"{counts.silenced} silenced" if counts.silenced else ""
    if bad:
        return ", ".join(filter(None, (bad, silenced)))
    clean = "not known to be clean" if counts.unreached else "clean"
    return f"{clean} but for {silenced}" if silenced else clean


def _entry(run: CheckRun) -> dict[str, object]:
    names = ("taken_s", "window_s", "devices", "exit_code", "intent", "version")
    return {
        "run": run.name,
        **asdict(run.source),
        **{name: getattr(run, name) for name in names},
        "verdict": run.verdict.word,
        **asdict(run.counts),
        "checks": list(run.layers),
    }

"""Reports on the current state of a fabric, or on a stored run, with trends."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from netkit.errors import Problem, UsageError
from netkit.facts import Snapshot
from netkit.judge import CheckContext, catalog
from netkit.judge.run import Judgement
from netkit.project.checking import NO_PAST, Checking
from netkit.project.judging import judged_of, silencing
from netkit.project.past import Past, StoredPast, Storing, chosen_run, digest, source_of
from netkit.project.project import Project
from netkit.report.judgement_view import Judged, judged_again
from netkit.report.page import MOST_DEVICES, NO_TRENDS, Reported, Tally, Trends, page, page_json, view
from netkit.store import CheckRun
from netkit.store.record import StoredHistory

if TYPE_CHECKING:
    from netkit.store.store import Store


CHANGED = "The intent has changed since this run: the drawing shows the current intent."
MOST_RUNS = 200
FILES: Mapping[str, Callable[[Reported], str]] = {".html": page, ".json": page_json}


def report_now(
    checking: Checking, names: Sequence[str], results: Sequence[Path], store: "Store | None", *, has_since: bool
) -> Reported:
    """Judge the devices now, or a snapshot; with a store, trends come from its runs."""
    project = checking.project
    _refuse_large(len(checking.devices), "select some with --limit")
    known = project.checks()
    checks = catalog.select(known, names)
    past = NO_PAST if store is None else StoredPast(store, project, Storing(has_since=has_since))
    silenced = silencing(project, past, known)
    context = checking.context(checks, past, results)
    judged = judged_of(context, checks, silenced=silenced)
    trends = NO_TRENDS
    if store is not None:
        readings = view.UpToNow(context.history, context.snapshot)
        runs = store.runs(source_of(project), MOST_RUNS)
        trends = Trends(tallies(runs), view.series(judged.judgement, readings))
    return Reported(judged, context.fabric, context, trends=trends)


def report_of_run(project: Project, name: str, store: "Store") -> Reported:
    """Report on a stored run; `name` is its name, the beginning of it, or `last`."""
    one = chosen_run(store.runs(source_of(project)), name)
    _refuse_large(one.devices, "netkit history --checks prints what the run found")
    judged = judged_again(one, store.judgement(one))
    notes = () if one.intent == digest(project.intent) else (CHANGED,)
    trends = trends_of(store, one, judged.judgement)
    return Reported(judged, project.fabric, None, one.counts.absent, one.name, trends, notes)


def _refuse_large(devices: int, remedy: str) -> None:
    if devices > MOST_DEVICES:
        what = f"a report on {devices:,} devices would be too large to open; the most are {MOST_DEVICES:,}"
        raise UsageError(Problem(what, remedy))


def trends_of(store: "Store", run: CheckRun, judgement: Judgement) -> Trends:
    """The runs up to a stored one, and the measurements of it and the earlier ones."""
    source = run.source
    known = [one for one in store.runs(source) if one.taken_s <= run.taken_s]
    just_after = Snapshot(source.fabric, run.taken_s + 1, {})
    history = StoredHistory(lambda *about: store.readings(source, *about), just_after)
    return Trends(tallies(known[:MOST_RUNS]), view.series(judgement, history))


def tallies(runs: Sequence[CheckRun]) -> tuple[Tally, ...]:
    """Summarise runs, the earliest first."""
    return tuple(
        Tally(
            one.name,
            one.taken_s,
            one.verdict,
            one.counts.failures,
            one.counts.warnings,
            one.counts.errors,
            one.counts.examined,
            one.counts.unreached,
        )
        for one in reversed(runs)
    )


def judged_report(file: Path, context: CheckContext, judged: Judged, earlier: Past) -> str:
    """The report in the format of the file's suffix, with trends if the run is saved in a store."""
    if earlier.kept is None:
        return FILES[file.suffix](Reported(judged, context.fabric, context))
    store, run = earlier.kept
    trends = trends_of(store, run, judged.judgement)
    return FILES[file.suffix](Reported(judged, context.fabric, context, run=run.name, trends=trends))

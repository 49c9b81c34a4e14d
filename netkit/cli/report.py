"""`netkit report`, and the report that `netkit check --report` writes."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from netkit.cli.check_history import chosen, judged_again
from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import ReportRequest, check_profile
from netkit.errors import Problem, UsageError
from netkit.facts import Snapshot
from netkit.judge import CheckContext, catalog
from netkit.judge.run import Judgement
from netkit.project.checking import NO_PAST, Checking
from netkit.project.judging import judged_of, silencing
from netkit.project.past import LAST, Past, StoredPast, Storing, digest, place_of, source_of
from netkit.report.judgement_view import Judged, headline
from netkit.report.page import NO_TRENDS, Reported, Tally, Trends, page, page_json, trend
from netkit.report.page.frame import asset
from netkit.store import CheckRun, Source
from netkit.store.measurement import StoredHistory
from netkit.terminal.whole_file import write_named

if TYPE_CHECKING:
    from netkit.store.store import Store


FORMATS: Mapping[str, Callable[[Reported], str]] = {"html": page, "json": page_json}
SCHEMA = "schema"
CHANGED = "The intent has changed since this run: the picture shows the fabric as it is intended now."


def run(asked: ReportRequest) -> int:
    """Write a report; end as `netkit check` does."""
    if asked.output == SCHEMA:
        sys.stdout.write(asset("report.schema.json"))
        return 0
    if asked.output not in FORMATS:
        raise UsageError(Problem(f"no output format {asked.output!r}", f"use one of {', '.join((*FORMATS, SCHEMA))}"))
    where = place_of(asked.store or ("." if asked.run else ""))
    _refuse(asked, where)
    with _opened(where) as opened:
        reported = _stored(asked, opened) if asked.run and opened is not None else _seen(asked, opened)
    _write(FORMATS[asked.output](reported), reported, asked.out)
    return reported.judged.exit_code


def _refuse(asked: ReportRequest, store: str) -> None:
    """Refuse what contradicts itself."""
    check_profile(asked.profile)
    if asked.since not in {"", LAST}:
        raise UsageError(Problem(f"no run {asked.since!r} to judge counters since", f"use --since {LAST}"))
    if asked.since and not store:
        raise UsageError(Problem("--since last needs a store", "give --store too"))
    given: dict[str, object] = {"--from": asked.snapshot, "--limit": asked.limit, "--check": asked.names}
    given |= {"--source": asked.source, "--results": asked.results, "--since": asked.since}
    if wrong := [name for name, value in given.items() if asked.run and value]:
        what = f"{wrong[0]} has no meaning for a stored run"
        raise UsageError(Problem(what, "leave it away, or leave the run away to look at the devices now"))


@contextmanager
def _opened(where: str) -> Iterator["Store | None"]:
    """Open the store, if there is to be one; it is only read."""
    if not where:
        yield None
        return
    # Here, since it loads the database library, and most reports have no store.
    from netkit.store.store import open_store  # noqa: PLC0415

    with open_store(where, is_new_allowed=False) as store:
        yield store


def _seen(asked: ReportRequest, store: "Store | None") -> Reported:
    """Return what checks say of the devices now, or in a snapshot."""
    project = open_project(asked.folder, asked.lab)
    warn(project)
    checking = Checking.of(
        project,
        limit=asked.limit,
        window_s=asked.window_s,
        snapshot=asked.snapshot,
        is_light=asked.profile == "light",
        source=asked.source,
    )
    known = checking.project.checks()
    checks = catalog.select(known, asked.names)
    past = NO_PAST if store is None else StoredPast(store, checking.project, Storing(has_since=bool(asked.since)))
    silenced = silencing(checking.project, past, known)
    scene = checking.context(checks, past, asked.results)
    judged = judged_of(scene, checks, silenced=silenced)
    trends = NO_TRENDS if store is None else _trends(store, source_of(checking.project), judged, scene)
    return Reported(judged, scene.fabric, scene, trends=trends)


def _trends(store: "Store", source: Source, judged: Judged, scene: CheckContext) -> Trends:
    """Return how earlier runs went, and what they and this one have measured."""
    readings = trend.UpToNow(scene.history, scene.snapshot)
    return Trends(tallies(store.runs(source, MOST_RUNS)), trend.series(judged.judgement, readings))


def _stored(asked: ReportRequest, store: "Store") -> Reported:
    """Return what a stored run said."""
    project = open_project(asked.folder, asked.lab)
    runs = store.runs(source_of(project))
    one = chosen(runs, asked.run)
    judged = judged_again(one, store.judgement(one))
    notes = () if one.intent == digest(project.intent) else (CHANGED,)
    trends = trends_of(store, one, judged.judgement)
    return Reported(judged, project.fabric, None, one.counts.absent, one.name, trends, notes)


def _write(text: str, reported: Reported, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    write_named(out, text)
    sys.stdout.write(f"{out}: {headline(reported.judged)}\n")


MOST_RUNS = 200


def trends_of(store: "Store", run: CheckRun, judgement: Judgement) -> Trends:
    """Return how runs went up to a stored one, and what they and it have measured."""
    source = run.source
    known = [one for one in store.runs(source) if one.taken_s <= run.taken_s]
    just_after = Snapshot(source.fabric, run.taken_s + 1, {})
    history = StoredHistory(lambda *about: store.readings(source, *about), just_after)
    return Trends(tallies(known[:MOST_RUNS]), trend.series(judgement, history))


def tallies(runs: Sequence[CheckRun]) -> tuple[Tally, ...]:
    """Return how runs came out, the earliest first."""
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


FILES: Mapping[str, Callable[[Reported], str]] = {".html": page, ".json": page_json}


def judged_report(file: Path, scene: CheckContext, judged: Judged, earlier: Past) -> str:
    """Return the report as the name of its file says; with trends when the run is kept in a store."""
    if earlier.kept is None:
        return FILES[file.suffix](Reported(judged, scene.fabric, scene))
    store, run = earlier.kept
    trends = trends_of(store, run, judged.judgement)
    return FILES[file.suffix](Reported(judged, scene.fabric, scene, run=run.name, trends=trends))

"""`netkit report`, and the report of `netkit check --report`."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from netkit.cli.check_history import chosen
from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import ReportRequest, check_profile
from netkit.errors import Problem, UsageError
from netkit.facts import Snapshot
from netkit.judge import CheckContext, catalog
from netkit.judge.run import Judgement
from netkit.project.checking import NO_PAST, Checking
from netkit.project.judging import judged_of, silencing
from netkit.project.past import LAST, Past, StoredPast, Storing, digest, place_of, source_of
from netkit.report.judgement_view import Judged, headline, judged_again
from netkit.report.page import MOST_DEVICES, NO_TRENDS, Reported, Tally, Trends, page, page_json, trend
from netkit.report.page.frame import asset
from netkit.store import CheckRun
from netkit.store.measurement import StoredHistory
from netkit.terminal.whole_file import write_named

if TYPE_CHECKING:
    from netkit.store.store import Store


FORMATS: Mapping[str, Callable[[Reported], str]] = {"html": page, "json": page_json}
SCHEMA = "schema"
CHANGED = "The intent has changed since this run: the drawing shows the fabric as it is intended now."


def run(request: ReportRequest) -> int:
    """Write a report; the exit code is that of `netkit check`."""
    if request.output == SCHEMA:
        sys.stdout.write(asset("report.schema.json"))
        return 0
    if request.output not in FORMATS:
        raise UsageError(Problem(f"unknown format {request.output!r}", f"use one of {', '.join((*FORMATS, SCHEMA))}"))
    where = place_of(request.store or ("." if request.run else ""))
    _refuse(request, where)
    with _opened(where) as opened:
        reported = _stored(request, opened) if request.run and opened is not None else _judge(request, opened)
    text = FORMATS[request.output](reported)
    if request.out is None:
        sys.stdout.write(text)
    else:
        write_named(request.out, text)
        sys.stdout.write(f"{request.out}: {headline(reported.judged)}\n")
    return reported.judged.exit_code


def _refuse(request: ReportRequest, store: str) -> None:
    """Refuse options that contradict each other."""
    check_profile(request.profile)
    if request.since not in {"", LAST}:
        raise UsageError(Problem(f"--since {request.since!r} is not supported", f"use --since {LAST}"))
    if request.since and not store:
        raise UsageError(Problem("--since last needs a store", "give --store too"))
    given: dict[str, object] = {"--from": request.snapshot, "--limit": request.limit, "--check": request.names}
    given |= {"--source": request.source, "--results": request.results, "--since": request.since}
    if wrong := [name for name, value in given.items() if request.run and value]:
        what = f"{wrong[0]} does not apply to a stored run"
        raise UsageError(Problem(what, "drop it, or drop the run to read the devices now"))


@contextmanager
def _opened(where: str) -> Iterator["Store | None"]:
    """Open the store for reading, if one is set."""
    if not where:
        yield None
        return
    from netkit.store.store import open_store  # noqa: PLC0415 (it loads the database library)

    with open_store(where, is_new_allowed=False) as store:
        yield store


def _judge(request: ReportRequest, store: "Store | None") -> Reported:
    """Judge the devices now, or a snapshot."""
    project = open_project(request.folder, request.lab, site=request.site)
    warn(project)
    checking = Checking.of(
        project,
        limit=request.limit,
        window_s=request.window_s,
        snapshot=request.snapshot,
        is_light=request.profile == "light",
        source=request.source,
    )
    _refuse_large(len(checking.devices), "select some with --limit")
    known = checking.project.checks()
    checks = catalog.select(known, request.names)
    past = NO_PAST if store is None else StoredPast(store, checking.project, Storing(has_since=bool(request.since)))
    silenced = silencing(checking.project, past, known)
    scene = checking.context(checks, past, request.results)
    judged = judged_of(scene, checks, silenced=silenced)
    trends = NO_TRENDS
    if store is not None:
        readings = trend.UpToNow(scene.history, scene.snapshot)
        runs = store.runs(source_of(checking.project), MOST_RUNS)
        trends = Trends(tallies(runs), trend.series(judged.judgement, readings))
    return Reported(judged, scene.fabric, scene, trends=trends)


def _stored(request: ReportRequest, store: "Store") -> Reported:
    project = open_project(request.folder, request.lab, site=request.site)
    runs = store.runs(source_of(project))
    one = chosen(runs, request.run)
    _refuse_large(one.devices, "netkit history --checks prints what the run found")
    judged = judged_again(one, store.judgement(one))
    notes = () if one.intent == digest(project.intent) else (CHANGED,)
    trends = trends_of(store, one, judged.judgement)
    return Reported(judged, project.fabric, None, one.counts.absent, one.name, trends, notes)


def _refuse_large(devices: int, remedy: str) -> None:
    if devices > MOST_DEVICES:
        what = f"a report on {devices:,} devices would be too large to open; the most are {MOST_DEVICES:,}"
        raise UsageError(Problem(what, remedy))


MOST_RUNS = 200


def trends_of(store: "Store", run: CheckRun, judgement: Judgement) -> Trends:
    """Return the runs up to a stored one, and the measurements of it and the earlier ones."""
    source = run.source
    known = [one for one in store.runs(source) if one.taken_s <= run.taken_s]
    just_after = Snapshot(source.fabric, run.taken_s + 1, {})
    history = StoredHistory(lambda *about: store.readings(source, *about), just_after)
    return Trends(tallies(known[:MOST_RUNS]), trend.series(judgement, history))


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


FILES: Mapping[str, Callable[[Reported], str]] = {".html": page, ".json": page_json}


def judged_report(file: Path, scene: CheckContext, judged: Judged, earlier: Past) -> str:
    """Return the report in the format of the file's suffix, with trends if the run is saved in a store."""
    if earlier.kept is None:
        return FILES[file.suffix](Reported(judged, scene.fabric, scene))
    store, run = earlier.kept
    trends = trends_of(store, run, judged.judgement)
    return FILES[file.suffix](Reported(judged, scene.fabric, scene, run=run.name, trends=trends))

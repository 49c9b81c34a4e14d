"""`netkit check`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import CheckRequest, check_profile
from netkit.errors import NetkitError, Problem, UsageError
from netkit.facts.snapshot import Trial
from netkit.judge import Check, CheckContext, catalog
from netkit.project.checking import Checking
from netkit.project.deadline import Deadline
from netkit.project.judging import judged_of, silencing
from netkit.project.past import Past, Storing, extent_of, past
from netkit.project.project import Project
from netkit.report.changes_text import Changes, changes_json, changes_markdown, changes_text
from netkit.report.judgement_json import judgement_json, judgement_junit
from netkit.report.judgement_text import judgement_markdown, judgement_text
from netkit.report.judgement_view import Judged
from netkit.report.metrics import metrics
from netkit.report.table import columns
from netkit.store.open_cause import OpenNow, cause_changes
from netkit.store.silence import SilenceEnd
from netkit.terminal.progress import QUIET
from netkit.terminal.text import write_json
from netkit.terminal.whole_file import write_whole

if TYPE_CHECKING:
    from netkit.project.notifying import Notifying

FORMATS: Mapping[str, Callable[[Judged], str]] = {
    "text": judgement_text,
    "json": judgement_json,
    "junit": judgement_junit,
    "markdown": judgement_markdown,
}
CHANGES: Mapping[str, Callable[[Changes], str]] = {
    "text": changes_text,
    "json": changes_json,
    "markdown": changes_markdown,
}
LISTS = ("text", "json")
REPORTS = (".html", ".json")


def run(asked: CheckRequest) -> int:
    """Judge the fabric; return 4 when a device could not be reached, 1 when a check failed or nothing was judged."""
    storing = Storing.of(asked.store, asked.since, asked.keep)
    if asked.has_changes_only:
        QUIET.set()
    _refuse(asked, storing)
    checking = _checking(asked)
    known = checking.project.checks()
    checks = catalog.select(known, asked.names)
    if asked.lists:
        _list(checks, asked.output)
        return 0
    notifying = _notifying(asked, checking.project)
    with past(storing, checking.project) as earlier:
        silenced = silencing(checking.project, earlier, known)
        deadline = _deadline(asked, storing)
        scene = _scene(asked, replace(checking, deadline=deadline), checks, earlier)
        judged = judged_of(scene, checks, deadline.judging(), silenced)
        failure = _failure(lambda: _tell(asked, scene, judged))
        extent = extent_of(scene, judged, has_all_checks=not asked.names)
        tell = notifying.tell(scene, judged, extent) if notifying is not None else None
        before = earlier.open_now() if asked.has_changes_only else OpenNow()
        saved = earlier.save(scene, judged, checking.project.intent, tell, extent)
        failure = failure or _failure(lambda: _tell_changes(asked, judged, before, earlier, saved.ends))
        if notifying is not None:
            earlier.deliver(notifying)
        if asked.report_file is not None:
            _report(asked.report_file, scene, judged, earlier)
        if failure is not None:
            raise failure
    return judged.exit_code


def _list(checks: Sequence[Check], output: str) -> None:
    """List checks; with all that there is to know of them for machines."""
    if output == "json":
        write_json([_entry(check) for check in checks])
    else:
        sys.stdout.write(columns((check.name, check.layer, check.title) for check in checks))


def _entry(check: Check) -> dict[str, object]:
    about = "fabric" if check.of_fabric is not None else check.on
    named = {"name": check.name, "layer": check.layer, "title": check.title, "text": check.text}
    return {**named, "on": about, "needs": check.needs, "has_window": check.has_window}


def _deadline(asked: CheckRequest, storing: Storing) -> Deadline:
    return Deadline(asked.deadline, 0.0 if storing.has_since else asked.window_s)


def _scene(asked: CheckRequest, checking: Checking, checks: Sequence[Check], earlier: Past) -> CheckContext:
    """Have hosts measure and look at the fabric before the deadline; measuring leaves half of the time."""
    with checking.deadline:
        measuring = _measuring(asked, checking, checking.deadline)
        return checking.context(checks, earlier, asked.results, measuring)


def _measuring(asked: CheckRequest, checking: Checking, deadline: Deadline) -> Callable[[], tuple[Trial, ...]]:
    if not asked.has_rdma:
        return tuple
    # Here, since most runs measure nothing.
    from netkit.project.rdma import measured  # noqa: PLC0415

    return lambda: measured(checking, deadline.half())


def _report(file: Path, scene: CheckContext, judged: Judged, earlier: Past) -> None:
    # Here, since most runs write no report.
    from netkit.cli.report import judged_report  # noqa: PLC0415

    write_whole(file, judged_report(file, scene, judged, earlier))


def _notifying(asked: CheckRequest, project: Project) -> "Notifying | None":
    if not asked.is_notifying:
        return None
    # Here, since it loads the database library, and most runs notify nobody.
    from netkit.project.notifying import Notifying  # noqa: PLC0415

    return Notifying.of(project)


def _refuse(asked: CheckRequest, storing: Storing) -> None:
    _deadline(asked, storing)  # one that cannot be is refused before anything is measured
    if asked.output not in FORMATS:
        raise UsageError(Problem(f"no output format {asked.output!r}", f"use one of {', '.join(FORMATS)}"))
    if asked.lists and asked.output not in LISTS:
        raise UsageError(Problem(f"--list is no judgement to show as {asked.output}", f"use {' or '.join(LISTS)}"))
    check_profile(asked.profile)
    if asked.report_file is not None and asked.report_file.suffix not in REPORTS:
        what = f"--report {asked.report_file} is neither a page nor data"
        raise UsageError(Problem(what, f"end its name with {' or '.join(REPORTS)}"))
    if asked.is_notifying and not storing.where:
        raise UsageError(Problem("--notify reports changes since the last stored run", "give --store"))
    if asked.has_changes_only and not storing.where:
        raise UsageError(Problem("--changes compares with the last stored run", "give --store"))
    if asked.has_changes_only and asked.output not in CHANGES:
        raise UsageError(Problem(f"--changes are not shown as {asked.output}", f"use {' or '.join(CHANGES)}"))


def _checking(asked: CheckRequest) -> Checking:
    project = open_project(asked.folder, asked.lab)
    warn(project)
    return Checking.of(
        project,
        limit=asked.limit,
        window_s=asked.window_s,
        snapshot=asked.snapshot,
        is_light=asked.profile == "light",
        source=asked.source,
    )


def _tell(asked: CheckRequest, scene: CheckContext, judged: Judged) -> None:
    """Say what was found, before it is stored: a store that fails takes nothing from who looks on."""
    if not asked.has_changes_only:
        sys.stdout.write(FORMATS[asked.output](judged))
    if asked.metrics_file is not None:
        write_whole(asked.metrics_file, metrics(scene, judged))


def _tell_changes(
    asked: CheckRequest, judged: Judged, before: OpenNow, earlier: Past, ends: Sequence[SilenceEnd]
) -> None:
    if asked.has_changes_only:
        after = earlier.open_now()
        told = Changes(judged.fabric, cause_changes(before, after), after.counts, ends)
        sys.stdout.write(CHANGES[asked.output](told))
    sys.stdout.flush()  # who reads it need not wait for receivers


def _failure(say: Callable[[], None]) -> Exception | None:
    """Say something, and return why it could not be said: a run is stored and its news are sent all the same."""
    try:
        say()
    except (OSError, NetkitError) as failure:
        return failure
    return None

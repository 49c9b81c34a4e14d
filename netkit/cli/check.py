"""`netkit check`."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import CheckRequest, ReportRequest, check_profile
from netkit.errors import NetkitError, Problem, UsageError
from netkit.facts.snapshot import Trial
from netkit.judge import Check, CheckContext, catalog
from netkit.project import steering
from netkit.project.checking import Checking
from netkit.project.deadline import Deadline
from netkit.project.judging import judged_of, silencing
from netkit.project.past import Past, Storing, extent_of, past
from netkit.project.project import Project
from netkit.project.revision import path_in_repository
from netkit.report.changes_text import Changes, changes_json, changes_markdown, changes_text
from netkit.report.judgement_json import judgement_json, judgement_junit
from netkit.report.judgement_text import judgement_markdown, judgement_text, steering_text
from netkit.report.judgement_view import Judged
from netkit.report.metrics import metrics
from netkit.report.table import columns
from netkit.store.open_cause import OpenNow, cause_changes
from netkit.store.state import SilenceEnd
from netkit.terminal.ctrl_c import interrupt_on_signals
from netkit.terminal.output import say, write_json, write_whole
from netkit.terminal.progress import QUIET

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


def run(request: CheckRequest) -> int:
    """Judge the fabric; return 4 if a device could not be reached, 1 if a check failed or nothing was judged."""
    storing = replace(Storing.of(request.store, request.since, request.keep), has_counters=request.fleet is None)
    if request.has_changes_only:
        QUIET.set()
    _refuse(request, storing)
    checking, sites = _checking(request)
    storing = replace(storing, sites=sites)
    if request.steered:
        steering.cluster_of(checking.project, request.steered)
    known = checking.project.checks()
    checks = catalog.select(known, request.names)
    if request.lists:
        if request.output == "json":
            write_json([_entry(check) for check in checks])
        else:
            sys.stdout.write(columns((check.name, check.layer, check.title) for check in checks))
        return 0
    notifying = _notifying(request, checking.project)
    with past(storing, checking.project) as earlier:
        silenced = silencing(checking.project, earlier, known, sites)
        deadline = _deadline(request, storing)
        checking = replace(checking, deadline=deadline, cluster=request.cluster, has_pod_routes=request.has_pod_routes)
        with deadline:
            context = checking.context(checks, earlier, request.results, _measuring(request, checking))
        judged = judged_of(context, checks, deadline.judging(), silenced)
        failure = _failure(lambda: _print(request, context, judged))
        extent = extent_of(context, judged, has_all_checks=not request.names)
        decide = notifying.decider(context, judged, extent) if notifying is not None else None
        before = earlier.open_now() if request.has_changes_only else OpenNow()
        saved = earlier.save(context, judged, checking.project.intent, decide, extent)
        failure = failure or _failure(lambda: _print_changes(request, judged, before, earlier, saved.ends))
        is_steered = not request.steered or _steer(request, checking.project, judged)
        if notifying is not None:
            earlier.deliver(notifying)
        if request.report_file is not None:
            _write_report(request.report_file, context, judged, earlier)
        if failure is not None:
            raise failure
    return judged.exit_code or int(not is_steered)


def _write_report(file: Path, context: CheckContext, judged: Judged, earlier: Past) -> None:
    from netkit.project.reporting import judged_report  # noqa: PLC0415 (most runs write no report)
    from netkit.report.page import MOST_DEVICES  # noqa: PLC0415

    if len(context.devices) > MOST_DEVICES:
        what = f"{len(context.devices):,} devices are too many for one; the most are {MOST_DEVICES:,}"
        say(sys.stderr, f"no report: {what}\n")
        return
    write_whole(file, judged_report(file, context, judged, earlier))


def _steer(request: CheckRequest, project: Project, judged: Judged) -> bool:
    """Decide which nodes get no new jobs, and print or run the commands; return whether all went well."""
    cluster = steering.cluster_of(project, request.steered)
    prefix = getattr(cluster.settings, "label_prefix", "")
    with steering.round_lock(project, cluster.kind):
        found = steering.steered(project, cluster, judged.judgement)
        done = steering.applied(found, prefix) if request.is_applied else None
        failed = done.failed if done else None
        steering.save(project, found, failed)
    stream = sys.stdout if request.output == "text" else sys.stderr
    stream.write(steering_text(found, prefix, failed, done.left if done else {}))
    return not failed


def _entry(check: Check) -> dict[str, object]:
    about = "fabric" if check.of_fabric is not None else check.on
    named = {"name": check.name, "layer": check.layer, "title": check.title, "text": check.text}
    return {**named, "on": about, "needs": check.needs, "has_window": check.has_window}


def _deadline(request: CheckRequest, storing: Storing) -> Deadline:
    return Deadline(request.deadline, 0.0 if storing.has_since else request.window_s)


def _measuring(request: CheckRequest, checking: Checking) -> Callable[[], tuple[Trial, ...]]:
    """What measures between hosts, within half of the time."""
    if not request.has_rdma:
        return tuple
    from netkit.project.rdma import measured  # noqa: PLC0415 (most runs measure nothing)

    return lambda: measured(checking, checking.deadline.half())


def _notifying(request: CheckRequest, project: Project) -> "Notifying | None":
    if not request.is_notifying:
        return None
    from netkit.project.notifying import Notifying  # noqa: PLC0415 (it loads the database library)

    return Notifying.of(project)


def _refuse(request: CheckRequest, storing: Storing) -> None:
    _deadline(request, storing)  # an invalid one is refused before anything is measured
    if request.output not in FORMATS:
        raise UsageError(Problem(f"unknown format {request.output!r}", f"use one of {', '.join(FORMATS)}"))
    if request.lists and request.output not in LISTS:
        raise UsageError(Problem(f"--list cannot be printed as {request.output}", f"use {' or '.join(LISTS)}"))
    check_profile(request.profile)
    if request.report_file is not None and request.report_file.suffix not in REPORTS:
        what = f"--report {request.report_file} has an unknown suffix"
        raise UsageError(Problem(what, f"end the name with {' or '.join(REPORTS)}"))
    if request.is_notifying and not storing.where:
        raise UsageError(Problem("--notify reports changes since the last stored run", "give --store"))
    _refuse_beside_fleet(request)
    if request.has_pod_routes and not request.cluster:
        raise UsageError(Problem("--pod-routes asks the pods of --cluster", "give --cluster with a kubeconfig"))
    if request.is_applied and not request.steered:
        raise UsageError(Problem("--apply runs the commands of --steer", "give --steer too"))
    if request.steered and request.snapshot is not None:
        raise UsageError(Problem("a snapshot is not a new round of --steer", "read the devices, or a lab"))
    if request.is_applied and request.lab:
        what = "--apply would change the real cluster for a fault of a lab"
        raise UsageError(Problem(what, "drop --apply, and read the commands"))
    if request.is_applied and request.cluster:
        what = "--apply uses the configuration of kubectl or scontrol, not that of --cluster"
        raise UsageError(Problem(what, "set KUBECONFIG or SLURM_CONF, and drop --cluster"))
    if request.has_changes_only and not storing.where:
        raise UsageError(Problem("--changes compares with the last stored run", "give --store"))
    if request.has_changes_only and request.output not in CHANGES:
        raise UsageError(Problem(f"--changes cannot be printed as {request.output}", f"use {' or '.join(CHANGES)}"))


def _refuse_beside_fleet(request: CheckRequest) -> None:
    """Refuse what needs this machine to read devices."""
    given = {
        "--from": request.snapshot is not None,
        "--rdma": request.has_rdma,
        "--site": bool(request.site),
    }
    for option in (name for name, is_given in given.items() if is_given and request.fleet is not None):
        raise UsageError(Problem(f"{option} does not work with --fleet", f"drop {option}, or --fleet"))


def checking_of(project: Project, request: CheckRequest | ReportRequest) -> Checking:
    """Print the warnings of a fabric's design, and select what a check or a report reads of it."""
    warn(project)
    return Checking.of(
        project,
        limit=request.limit,
        window_s=request.window_s,
        snapshot=request.snapshot,
        is_light=request.profile == "light",
        source=request.source,
    )


def _checking(request: CheckRequest) -> tuple[Checking, Mapping[str, Collection[str]]]:
    """What to judge, and the devices at each site if the fabric is at several."""
    project = open_project(request.folder, request.lab, request.processes, request.site)
    checking = checking_of(project, request)
    if request.fleet is None:
        return checking, {}
    from netkit.fleet.checking import FleetCollector  # noqa: PLC0415 (an extra, and most runs read devices themselves)
    from netkit.fleet.dispatch import Dispatch  # noqa: PLC0415

    interrupt_on_signals()
    dispatch = Dispatch.of(request.fleet)
    sites = dispatch.sites_of(project.folder)
    if len(sites) == 1:
        checking = replace(checking, project=replace(project, site=sites[0]))
    placed = dispatch.placed(path_in_repository(project.folder), project.devices()) if len(sites) > 1 else {}
    parts = {site: frozenset(names) for site, names in placed.items()}
    return replace(checking, collector=FleetCollector(dispatch)), parts


def _print(request: CheckRequest, context: CheckContext, judged: Judged) -> None:
    """Print the result before it is saved, so that a failing store does not hide it."""
    if not request.has_changes_only:
        sys.stdout.write(FORMATS[request.output](judged))
    if request.metrics_file is not None:
        write_whole(request.metrics_file, metrics(context, judged))


def _print_changes(
    request: CheckRequest, judged: Judged, before: OpenNow, earlier: Past, ends: Sequence[SilenceEnd]
) -> None:
    if request.has_changes_only:
        after = earlier.open_now()
        changes = Changes(judged.fabric, cause_changes(before, after), after.counts, ends)
        sys.stdout.write(CHANGES[request.output](changes))
    sys.stdout.flush()  # do not make the reader wait for receivers


def _failure(write: Callable[[], None]) -> Exception | None:
    """Print something, and return the error if that fails: the run is saved and notified in any case."""
    try:
        write()
    except (OSError, NetkitError) as failure:
        return failure
    return None

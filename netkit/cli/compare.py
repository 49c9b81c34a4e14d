"""`netkit check --compare BEFORE AFTER`."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from multiprocessing.connection import Connection
from pathlib import Path

from netkit.cli.check_history import chosen
from netkit.cli.fabric import open_project, warn
from netkit.cli.requests import CheckRequest
from netkit.design.select import select
from netkit.errors import CheckError, Problem, UsageError
from netkit.facts import Snapshot
from netkit.facts.device import KINDS
from netkit.judge import Check, CheckContext, catalog
from netkit.judge.difference import Differences, differences
from netkit.project.checking import Checking
from netkit.project.judging import judged_of
from netkit.project.past import place_of, source_of
from netkit.report.comparison_text import comparison_json, comparison_markdown, comparison_text
from netkit.report.comparison_view import Comparison, Side, attached, causes
from netkit.report.judgement_view import Judged, judged_again
from netkit.store.store import open_store

FORMATS: Mapping[str, Callable[[Comparison], str]] = {
    "text": comparison_text,
    "json": comparison_json,
    "markdown": comparison_markdown,
}
TAKEN = frozenset({"folder", "compared", "names", "limit", "lab", "output", "store", "site"})
WORSE = 1
FEWEST = 64
"""Below this number of devices, starting a process takes longer than judging."""


def run(request: CheckRequest) -> int:
    """Compare two states of a fabric; return 1 if the later one is worse anywhere."""
    _refuse(request)
    project = open_project(request.folder, request.lab, site=request.site)
    warn(project)
    checking, fabric = Checking.of(project, limit=request.limit), project.fabric
    checks = catalog.select(checking.project.checks(), request.names)
    first, second = request.compared or ("", "")
    with _side(first, request, checking, checks) as early, _side(second, request, checking, checks) as late:
        (after, new), (before, old) = late(), early()
    if not before.devices & after.devices:
        what = f"{before.name} and {after.name} have no device in common"
        raise CheckError(Problem(what, "compare two that cover the same devices"))
    found = _facts(request, checks, old, new)
    peers = {(one.device, one.port): one.peer for one in fabric.links()}
    peers |= {(one.peer, one.peer_port): one.device for one in fabric.links()}
    cable = CheckContext(fabric, Snapshot(fabric.name, 0.0, {})).cable
    changes, rest = attached(causes(before, after, peers), found.found, cable)
    notes = tuple(_notes(before, after))
    result = Comparison(fabric.name, before, after, changes, rest, found.uncompared, notes)
    sys.stdout.write(FORMATS[request.output](result))
    return WORSE if result.is_worse else 0


def _refuse(request: CheckRequest) -> None:
    """Refuse options that read a device, or write the result of a single run."""
    if request.output not in FORMATS:
        raise UsageError(Problem(f"unknown format {request.output!r} of a comparison", f"use {', '.join(FORMATS)}"))
    usual = CheckRequest(request.folder)
    other = [one.name for one in fields(request) if one.name not in TAKEN]
    if any(getattr(request, name) != getattr(usual, name) for name in other):
        what = "--compare reads two snapshots or stored runs, and no device"
        raise UsageError(Problem(what, "combine it with NAMES, --limit, --format, --store and --lab only"))


@contextmanager
def _side(
    name: str, request: CheckRequest, checking: Checking, checks: Sequence[Check]
) -> Iterator[Callable[[], tuple[Side, CheckContext | None]]]:
    """Yield a function that returns one state: a snapshot that is judged now, or a stored run as it was judged."""
    file = Path(name)
    if not file.exists() and "/" not in name and file.suffix not in {".json", ".gz"}:
        found = _stored(name, request, checking, checks)
        yield lambda: (found, None)
        return
    scene = replace(checking, snapshot=file).scene()
    scene = replace(scene, names=frozenset(scene.devices) & scene.snapshot.devices.keys())
    if name == (request.compared or ("",))[0] and len(scene.devices) >= FEWEST and len(os.sched_getaffinity(0)) > 1:
        with _judged_beside(scene, checks) as judged:
            yield lambda: (_of(name, judged(), scene), scene)
        return
    yield lambda: (_of(name, judged_of(scene, checks), scene), scene)


@contextmanager
def _judged_beside(scene: CheckContext, checks: Sequence[Check]) -> Iterator[Callable[[], Judged]]:
    """Judge in a child process; only the judgement is sent back, the facts are in this process already."""
    processes = multiprocessing.get_context("fork")
    receiver, sender = processes.Pipe(duplex=False)
    worker = processes.Process(target=_judge, args=(scene, checks, sender), daemon=True)
    worker.start()
    sender.close()

    def judged() -> Judged:
        try:
            found: Judged = receiver.recv()
        except EOFError:
            what = "the process that judged the first state died"
            raise CheckError(Problem(what, "check for lack of memory")) from None
        return found

    try:
        yield judged
    finally:
        receiver.close()
        worker.kill()
        worker.join()


def _judge(scene: CheckContext, checks: Sequence[Check], sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    sender.send(judged_of(scene, checks))


def _of(name: str, judged: Judged, scene: CheckContext | None) -> Side:
    snapshot = scene.snapshot if scene is not None else None
    return Side(name, judged.taken_s, judged.window_s, judged.judgement, judged.layers, snapshot)


def _stored(name: str, request: CheckRequest, checking: Checking, checks: Sequence[Check]) -> Side:
    source = source_of(checking.project)
    with open_store(place_of(request.store or "."), is_new_allowed=False) as store:
        one = chosen(store.runs(source), name)
        judged = judged_again(one, store.judgement(one))
    names, wanted = {device.name for device in checking.devices}, {check.name for check in checks}
    results = tuple(
        replace(result, findings=tuple(each for each in result.findings if each.device in {"", *names}))
        for result in judged.judgement.results
        if result.check in wanted and result.device in {"fabric", *names}
    )
    return _of(one.name, replace(judged, judgement=replace(judged.judgement, results=results)), None)


def _facts(
    request: CheckRequest, checks: Sequence[Check], old: CheckContext | None, new: CheckContext | None
) -> Differences:
    """Compare the facts; with check names, only those that these checks need."""
    if old is None or new is None:
        return Differences((), ())
    seen = {*old.snapshot.devices, *new.snapshot.devices}
    names = [device.name for device in select(new.fabric, request.limit) if device.name in seen]
    if not request.limit:
        names += sorted(seen - set(new.fabric.names))
    kinds = {kind for check in checks for kind in check.needs} if request.names else set(KINDS)
    return differences(old.snapshot, new.snapshot, names, kinds, new.limits.light_trend_db)


def _notes(before: Side, after: Side) -> Iterator[str]:
    if after.taken_s < before.taken_s:
        yield f"{after.name} was taken earlier than {before.name}: swap them to see what happened"
    if before.snapshot is None or after.snapshot is None:
        yield "a stored run keeps findings and no facts: only causes are compared"
    elif not before.window_s or not after.window_s:
        yield "rates are not compared: that takes two samples of counters in both snapshots"

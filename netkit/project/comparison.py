"""Two states of a fabric compared: snapshots that are judged now, or stored runs as they were judged."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from netkit.design.select import select
from netkit.errors import CheckError, Problem
from netkit.facts import Snapshot
from netkit.facts.device import KINDS
from netkit.judge import Check, CheckContext, catalog
from netkit.judge.difference import Differences, differences
from netkit.project.checking import Checking
from netkit.project.judging import judged_of
from netkit.project.past import chosen_run, place_of, source_of
from netkit.project.project import Project
from netkit.report.comparison_text import Comparison, Side, attached, causes
from netkit.report.judgement_view import Judged, judged_again
from netkit.store.store import open_store

FEWEST = 64
"""Below this number of devices, starting a process takes longer than judging."""


def compared(
    project: Project, first: str, second: str, *, names: Sequence[str] = (), limit: str = "", store: str = ""
) -> Comparison:
    """Compare two states, each a file of a snapshot or the name of a stored run."""
    checking, fabric = Checking.of(project, limit=limit), project.fabric
    checks = catalog.select(project.checks(), names)
    with (
        _side(first, store, checking, checks, has_other=True) as early,
        _side(second, store, checking, checks) as late,
    ):
        (after, new), (before, old) = late(), early()
    if not before.devices & after.devices:
        what = f"{before.name} and {after.name} have no device in common"
        raise CheckError(Problem(what, "compare two that cover the same devices"))
    kinds = {kind for check in checks for kind in check.needs} if names else set(KINDS)
    found = _facts(limit, kinds, old, new)
    peers = {(one.device, one.port): one.peer for one in fabric.links()}
    peers |= {(one.peer, one.peer_port): one.device for one in fabric.links()}
    cable = CheckContext(fabric, Snapshot(fabric.name, 0.0, {})).cable
    changes, rest = attached(causes(before, after, peers), found.found, cable)
    return Comparison(fabric.name, before, after, changes, rest, found.uncompared, tuple(_notes(before, after)))


@contextmanager
def _side(
    name: str, store: str, checking: Checking, checks: Sequence[Check], *, has_other: bool = False
) -> Iterator[Callable[[], tuple[Side, CheckContext | None]]]:
    """Yield a function that returns one state; with another to judge meanwhile, a large one gets its own process."""
    file = Path(name)
    if not file.exists() and "/" not in name and file.suffix not in {".json", ".gz"}:
        found = _stored(name, store, checking, checks)
        yield lambda: (found, None)
        return
    context = replace(checking, snapshot=file).base_context()
    context = replace(context, names=frozenset(context.devices) & context.snapshot.devices.keys())
    if has_other and len(context.devices) >= FEWEST and len(os.sched_getaffinity(0)) > 1:
        with _judged_beside(context, checks) as judged:
            yield lambda: (_of(name, judged(), context), context)
        return
    yield lambda: (_of(name, judged_of(context, checks), context), context)


@contextmanager
def _judged_beside(context: CheckContext, checks: Sequence[Check]) -> Iterator[Callable[[], Judged]]:
    """Judge in a child process; only the judgement is sent back, the facts are in this process already."""
    processes = multiprocessing.get_context("fork")
    receiver, sender = processes.Pipe(duplex=False)
    worker = processes.Process(target=_judge, args=(context, checks, sender), daemon=True)
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


def _judge(context: CheckContext, checks: Sequence[Check], sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    sender.send(judged_of(context, checks))


def _of(name: str, judged: Judged, context: CheckContext | None) -> Side:
    snapshot = context.snapshot if context is not None else None
    return Side(name, judged.taken_s, judged.window_s, judged.judgement, judged.layers, snapshot)


def _stored(name: str, place: str, checking: Checking, checks: Sequence[Check]) -> Side:
    source = source_of(checking.project)
    with open_store(place_of(place or "."), is_new_allowed=False) as store:
        one = chosen_run(store.runs(source), name)
        judged = judged_again(one, store.judgement(one))
    names, wanted = {device.name for device in checking.devices}, {check.name for check in checks}
    results = tuple(
        replace(result, findings=tuple(each for each in result.findings if each.device in {"", *names}))
        for result in judged.judgement.results
        if result.check in wanted and result.device in {"fabric", *names}
    )
    return _of(one.name, replace(judged, judgement=replace(judged.judgement, results=results)), None)


def _facts(limit: str, kinds: Collection[str], old: CheckContext | None, new: CheckContext | None) -> Differences:
    if old is None or new is None:
        return Differences((), ())
    seen = {*old.snapshot.devices, *new.snapshot.devices}
    names = [device.name for device in select(new.fabric, limit) if device.name in seen]
    if not limit:
        names += sorted(seen - set(new.fabric.names))
    return differences(old.snapshot, new.snapshot, names, kinds, new.limits.light_trend_db)


def _notes(before: Side, after: Side) -> Iterator[str]:
    if after.taken_s < before.taken_s:
        yield f"{after.name} was taken earlier than {before.name}: swap the two"
    if before.snapshot is None or after.snapshot is None:
        yield "a stored run contains findings but no facts: only causes are compared"
    elif not before.window_s or not after.window_s:
        yield "rates are not compared: this requires two samples of counters in both snapshots"

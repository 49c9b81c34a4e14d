"""Rates of ports at the sites: each worker watches its devices for a while, and answers with a record of that."""

import heapq
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from netkit.design.select import Device
from netkit.errors import NetkitError, Problem
from netkit.facts import Sample
from netkit.fleet.dispatch import Dispatch, ShardAnswer
from netkit.fleet.job import WatchWork
from netkit.fleet.settings import FleetError
from netkit.project.project import Project
from netkit.project.watching import feeds_of, is_settled, outline_of
from netkit.watch.board import Board
from netkit.watch.feed import Condition
from netkit.watch.record import Record, RecordedEvent, read
from netkit.watch.session import Desk, running

CHUNK_BYTES = 8 * 1024 * 1024
NAP_S = 0.1
RECORD = "record.gz"


def watched(project: Project, devices: Sequence[Device], work: WatchWork) -> Iterator[bytes]:
    """Watch devices at their site; yield a record, in chunks."""
    outline = outline_of(project, devices, work.interval_s)
    feeds = feeds_of(project, devices, work.source or "", work.interval_s)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, RECORD)
        record, board = Record(file, outline), Board(outline)
        desk = Desk(board, record)
        ends_s = time.monotonic() + work.length_s
        with running(feeds, desk):
            while time.monotonic() < ends_s and not (work.is_once and is_settled(board, time.time())):
                time.sleep(NAP_S)
        record.close()
        if desk.failure is not None:
            raise desk.failure
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk


@contextmanager
def watched_at(
    fleet: Path, project: Project, devices: Sequence[Device], work: WatchWork
) -> Iterator[Iterator[RecordedEvent]]:
    """Have the sites of a fleet watch their devices; yield what they saw, as if all had ended now."""
    with tempfile.TemporaryDirectory() as folder:
        shards = list[Iterator[RecordedEvent]]()
        for number, answer in enumerate(Dispatch.of(fleet).answers(project, devices, work)):
            file = Path(folder, f"{number}.gz")
            with file.open("wb") as stream:
                stream.writelines(answer.parts)
            shards.append(_events(answer, file))
        yield heapq.merge(*shards, key=lambda event: event.heard_s)


def _events(answer: ShardAnswer, file: Path) -> Iterator[RecordedEvent]:
    """Return the events of a shard; its devices are gone if there is no answer that can be used."""
    now_s, why = time.time(), answer.why
    if not answer.failure:
        try:
            return _moved(file, now_s - _last_s(answer, file))
        except NetkitError as error:
            why = replace(answer, failure=error.problems[0].message).why
    return iter([RecordedEvent(now_s, name, Condition("gone", why)) for name in answer.job.devices])


def _last_s(answer: ShardAnswer, file: Path) -> float:
    """Return when the last event of a record came; FleetError if it is about other devices."""
    last_s, asked = 0.0, frozenset(answer.job.devices)
    for event in read(file)[1]:
        if event.device not in asked:
            raise FleetError(Problem(f"its answer is about {event.device}, which was not asked for"))
        last_s = max(last_s, event.heard_s)
    return last_s


def _moved(file: Path, by_s: float) -> Iterator[RecordedEvent]:
    for heard_s, device, what in read(file)[1]:
        moved = replace(what, at_s=what.at_s + by_s) if isinstance(what, Sample) else what
        yield RecordedEvent(heard_s + by_s, device, moved)

"""Snapshots and backups of devices, read by the workers of their sites."""

import heapq
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from netkit import plan as planning
from netkit.design.select import Device
from netkit.errors import NetkitError, Problem
from netkit.facts import Observation, Sample, Snapshot, serial
from netkit.fleet.dispatch import Dispatch, ShardAnswer
from netkit.fleet.job import BackupWork, SnapshotWork, WatchWork
from netkit.fleet.settings import FleetError
from netkit.project.connections import chosen_source
from netkit.project.observing import joined
from netkit.project.project import Project
from netkit.project.watching import feeds_of, is_settled, outline_of
from netkit.watch.board import Board
from netkit.watch.feed import Condition
from netkit.watch.session import Desk, Record, RecordedEvent, read, running

NOT_ANSWERED = "its site answered without it"


def snapshot_at(fleet: Path, project: Project, limit: str, *, window_s: float, is_light: bool, source: str) -> Snapshot:
    """The facts of devices; those that a site of the fleet in a folder did not read have the reason."""
    work = SnapshotWork(window_s=window_s, is_light=is_light, source=chosen_source(source))
    devices = project.devices(limit)
    platforms = {device.name: device.platform for device in devices}
    parts = []
    for answer in Dispatch.of(fleet).answers(project, devices, work):
        found, why = _facts(answer)
        seen = {one.device: one for part in found for one in part.devices.values() if one.device in answer.job.devices}
        missed = [name for name in answer.job.devices if name not in seen]
        unread = {name: Observation(name, platforms[name], failure=why) for name in missed}
        taken_s = max((part.taken_s for part in found), default=0.0)
        plan = next((part.plan for part in found if part.plan), "")
        parts.append(Snapshot(project.fabric.name, taken_s, {**seen, **unread}, plan))
    return joined(project.fabric, devices, parts)


def _facts(answer: ShardAnswer) -> tuple[Sequence[Snapshot], str]:
    """The snapshots of an answer, and why devices without one were not read."""
    try:
        found = [serial.load(part, "its answer") for part in answer.parts]
        for plan in (planning.read(one.plan, "its answer") for one in found if one.plan):
            named = {*(one.name for one in plan.devices), *(one.name for one in plan.unreachable)}
            others = named - {*answer.job.devices}
            if others:
                raise FleetError(Problem(f"its answer is about {min(others)}, which was not requested"))
    except NetkitError as error:
        return (), f"the site {answer.job.site} did not read it: {error.problems[0].message}"
    return found, answer.why if answer.failure else NOT_ANSWERED


def backups_at(fleet: Path, project: Project, devices: Sequence[Device]) -> tuple[dict[str, str], dict[str, str]]:
    """The text to save for each device, and the reason for each without one."""
    texts: dict[str, str] = {}
    missed: dict[str, str] = {}
    for answer in Dispatch.of(fleet).answers(project, devices, BackupWork()):
        for part in answer.parts:
            name, text, reason = _saved(part)
            if name in answer.job.devices and text is not None:
                texts[name] = text
            elif name in answer.job.devices:
                missed[name] = reason
        why = answer.why if answer.failure else NOT_ANSWERED
        missed |= {name: why for name in answer.job.devices if name not in texts and name not in missed}
    return texts, missed


def _saved(part: bytes) -> tuple[str, str | None, str]:
    """The device of a part, its text or none, and the reason; an empty name if it is not one."""
    try:
        found = json.loads(part)
        text = found.get("text")
        return str(found["device"]), None if text is None else str(text), str(found.get("reason", NOT_ANSWERED))
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", None, ""


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
    """The events of a shard; its devices are gone if there is no answer that can be used."""
    now_s, why = time.time(), answer.why
    if not answer.failure:
        try:
            return _moved(file, now_s - _last_s(answer, file))
        except NetkitError as error:
            why = replace(answer, failure=error.problems[0].message).why
    return iter([RecordedEvent(now_s, name, Condition("gone", why)) for name in answer.job.devices])


def _last_s(answer: ShardAnswer, file: Path) -> float:
    """When the last event of a record came; FleetError if it is about other devices."""
    last_s, asked = 0.0, frozenset(answer.job.devices)
    for event in read(file)[1]:
        if event.device not in asked:
            raise FleetError(Problem(f"its answer is about {event.device}, which was not requested"))
        last_s = max(last_s, event.heard_s)
    return last_s


def _moved(file: Path, by_s: float) -> Iterator[RecordedEvent]:
    for heard_s, device, what in read(file)[1]:
        moved = replace(what, at_s=what.at_s + by_s) if isinstance(what, Sample) else what
        yield RecordedEvent(heard_s + by_s, device, moved)

"""Snapshots and backups of devices, read by the workers of their sites."""

import json
from collections.abc import Sequence
from pathlib import Path

from netkit import plan as planning
from netkit.design.select import Device
from netkit.errors import NetkitError, Problem
from netkit.facts import Observation, Snapshot, serial
from netkit.fleet.dispatch import Dispatch, ShardAnswer
from netkit.fleet.job import BackupWork, SnapshotWork
from netkit.fleet.settings import FleetError
from netkit.project.connections import chosen_source
from netkit.project.observing import joined
from netkit.project.project import Project

NOT_ANSWERED = "its site answered without it"


def snapshot_at(fleet: Path, project: Project, limit: str, *, window_s: float, is_light: bool, source: str) -> Snapshot:
    """Return the facts of devices; those that a site of the fleet in a folder did not read have the reason."""
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
    """Return the snapshots of an answer, and why devices without one were not read."""
    try:
        found = [serial.load(part, "its answer") for part in answer.parts]
        for plan in (planning.read(one.plan, "its answer") for one in found if one.plan):
            named = {*(one.name for one in plan.devices), *(one.name for one in plan.unreachable)}
            others = named - {*answer.job.devices}
            if others:
                raise FleetError(Problem(f"its answer is about {min(others)}, which was not asked for"))
    except NetkitError as error:
        return (), f"the site {answer.job.site} did not read it: {error.problems[0].message}"
    return found, answer.why if answer.failure else NOT_ANSWERED


def backups_at(fleet: Path, project: Project, devices: Sequence[Device]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text to save for each device, and the reason for each without one."""
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
    """Return the device of a part, its text or none, and the reason; an empty name if it is not one."""
    try:
        found = json.loads(part)
        text = found.get("text")
        return str(found["device"]), None if text is None else str(text), str(found.get("reason", NOT_ANSWERED))
    except (ValueError, LookupError, TypeError, AttributeError):
        return "", None, ""

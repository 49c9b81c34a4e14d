"""Counters of devices that stay at their site, so that a check can judge them since the last one.

A file holds two samples of a device: the one that the coordinator used last, and a newer one, of which the site does
not know yet whether its answer arrives. The next job names the time of the one that was used.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from netkit.design.select import Device
from netkit.errors import Problem
from netkit.facts import Absent, Observation, Sample
from netkit.fleet.job import CheckWork, SiteJob
from netkit.fleet.settings import FleetError
from netkit.judge import CheckContext
from netkit.judge.delta import Earlier, since
from netkit.private import make_folder
from netkit.project.checking import NO_PAST
from netkit.project.past import Past
from netkit.project.project import Project
from netkit.project.runs import runs_folder
from netkit.report.plan_view import counted
from netkit.store.record import DamagedError, packed, unpacked

Stored = tuple[float, str, float | None, dict[str, dict[str, int]]]
"""Time, boot ID, uptime and counters of a sample."""


@dataclass(frozen=True, slots=True)
class KeptCounters:
    """The folder of the counters of a fabric."""

    folder: Path

    @classmethod
    def of(cls, project: Project) -> "KeptCounters":
        """Use the folder beside the runs of deploys, which all workers of a machine share."""
        folder = runs_folder(project.fabric.name, project.lab).with_name("counters")
        try:
            make_folder(folder)
        except OSError as error:
            what = f"cannot be created: {error.strerror}"
            raise FleetError(Problem(what, "set NETKIT_STATE_DIR at the worker", file=str(folder))) from None
        return cls(folder)

    def used(self, device: str, at_s: float) -> Earlier | None:
        """Return the newest sample up to a time; None if there is none."""
        found = [one for one in self._read(device) if one[0] <= at_s]
        if not found:
            return None
        taken_s, boot, uptime_s, counters = max(found, key=lambda one: one[0])
        return Earlier(Sample(taken_s, counters), boot, uptime_s)

    def keep(self, one: Observation, used: Earlier | None) -> None:
        """Keep the last sample of a device beside the one that was used before."""
        if not one.samples:
            return
        last, system = one.samples[-1], one.facts.system
        boot, uptime_s = ("", None) if isinstance(system, Absent) else (system.boot, system.uptime_s)
        stored = [(last.at_s, boot, uptime_s, {name: dict(places) for name, places in last.counters.items()})]
        if used is not None:
            earlier = {name: dict(places) for name, places in used.sample.counters.items()}
            stored.append((used.sample.at_s, used.boot, used.uptime_s, earlier))
        file = self._file(one.device)
        draft = file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):  # a full disk: the next check judges from the sample before
            draft.write_bytes(packed(stored))
            draft.replace(file)

    def _read(self, device: str) -> Sequence[Stored]:
        try:
            found: list[Stored] = unpacked(self._file(device).read_bytes(), list[Stored], f"file of {device}")
        except (OSError, DamagedError):
            return ()
        return found

    def _file(self, device: str) -> Path:
        return self.folder / f"{device}.counters"


class SitePast(Past):
    """What a site kept of its devices, for a job that names the samples that were used last."""

    def __init__(self, project: Project, used_s: Mapping[str, float]) -> None:
        self._feedback, self._kept = project.feedback, KeptCounters.of(project)
        found = {name: self._kept.used(name, at_s) for name, at_s in used_s.items()}
        self._earlier: Mapping[str, Earlier] = {name: one for name, one in found.items() if one is not None}

    def window_s(self, devices: Sequence[Device], wanted_s: float) -> float:
        """Return how long to watch counters: 0 if those of each device were kept."""
        missing = [device.name for device in devices if device.name not in self._earlier]
        if missing and wanted_s:
            what = f"no earlier counters of {counted(len(missing), 'device')} are here"
            self._feedback.note(f"{what}: they are judged over {wanted_s:g} s")
        return wanted_s if missing else 0.0

    def scene(self, scene: CheckContext) -> CheckContext:
        """Keep the counters, and compute them since the samples that were used."""
        for name, one in scene.snapshot.devices.items():
            self._kept.keep(one, self._earlier.get(name))
        return replace(scene, snapshot=since(scene.snapshot, self._earlier))


def past_of(project: Project, job: SiteJob) -> Past:
    """Return what the site kept for a check since the last one; nothing for other jobs."""
    times = job.work.since_s if isinstance(job.work, CheckWork) else None
    return NO_PAST if times is None else SitePast(project, dict(zip(job.devices, times, strict=True)))

"""Give the devices of a fabric to their sites in shards, and collect what the workers answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from netkit.design.select import Device, neighborhood
from netkit.errors import Problem, UsageError
from netkit.fleet import settings as fleet_settings
from netkit.fleet.answer import JobAnswer, LostJob
from netkit.fleet.coordinator import GRACE_S, Coordinator
from netkit.fleet.job import ROUNDS, BackupWork, CheckWork, SiteJob, SnapshotWork, WatchWork, new_job
from netkit.fleet.settings import FleetSettings
from netkit.fleet.signing import Credentials
from netkit.project.observing import LOOKING
from netkit.project.project import CHECKS, Project, beside
from netkit.project.revision import committed, path_in_repository
from netkit.store.record import batched

SHARD = 256
"""Devices per job."""
LONGEST_S = 900
"""How long a shard may take, beside the window."""
ReadingWork = BackupWork | CheckWork | SnapshotWork | WatchWork


@dataclass(frozen=True, slots=True)
class ShardAnswer:
    """What a site answered about some devices."""

    job: SiteJob
    parts: Sequence[bytes] = ()
    failure: str = ""
    """Why there is no answer; empty if there is one."""

    @property
    def why(self) -> str:
        """Why its devices were not read."""
        return f"the site {self.job.site} did not read it: {self.failure}"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The sites of a fleet, and the keys to give them jobs."""

    settings: FleetSettings
    credentials: Credentials = field(repr=False)

    @classmethod
    def of(cls, folder: Path) -> "Dispatch":
        """Use the fleet of a folder."""
        settings = fleet_settings.load(folder)
        return cls(settings, Credentials.load(folder, settings.broker))

    def sites_of(self, folder: Path) -> Sequence[str]:
        """The sites of the fabric in a folder."""
        fabric = path_in_repository(folder)
        return [name for name, site in self.settings.sites.items() if fabric in site.fabrics]

    def answers(
        self,
        project: Project,
        devices: Sequence[Device],
        work: ReadingWork,
        left_s: float = float("inf"),
        counted_s: Mapping[str, float] | None = None,
    ) -> Iterator[ShardAnswer]:
        """Yield the answer about each shard as it arrives, or that there is none in time.

        With `counted_s`, a check judges the counters of each device since that time.
        """
        if project.lab:
            raise UsageError(Problem("--lab does not work with --fleet", "drop --lab, or --fleet"))
        jobs = list(self._jobs(project, devices, work, left_s, counted_s))
        parts: dict[str, list[bytes]] = {job.nonce: [] for job in jobs}
        with (
            Coordinator(self.settings, self.credentials, project.feedback.note) as fleet,
            project.feedback.progress(LOOKING, len(devices)) as count,
        ):
            if work.verb in ROUNDS:
                fleet.hold(f"{work.verb} of {jobs[0].fabric}", {job.site for job in jobs})
            for event in fleet.run(jobs):
                if isinstance(event, JobAnswer):
                    parts[event.job.nonce].append(event.payload)
                if isinstance(event, LostJob) or (isinstance(event, JobAnswer) and event.is_last):
                    for _ in event.job.devices:
                        count()
                    failure = event.reason if isinstance(event, LostJob) else ""
                    yield ShardAnswer(event.job, parts.pop(event.job.nonce), failure)

    def _jobs(
        self,
        project: Project,
        devices: Sequence[Device],
        work: ReadingWork,
        left_s: float,
        counted_s: Mapping[str, float] | None,
    ) -> Iterator[SiteJob]:
        commit, fabric = self.committed(project)
        longest_s = LONGEST_S + int(getattr(work, "window_s", 0) or getattr(work, "length_s", 0))
        within_s = int(max(1.0, min(longest_s, left_s - GRACE_S)))
        known = {device.name: device for device in devices}
        for site, names in self.placed(fabric, devices).items():
            for some in shards([known[name] for name in names]):
                times = None if counted_s is None else tuple(counted_s.get(name, 0.0) for name in some)
                own = work if times is None else work.model_copy(update={"since_s": times})
                yield new_job(site, fabric, commit, own, within_s=within_s, devices=tuple(some))

    def committed(self, project: Project) -> tuple[str, str]:
        """The commit that sites check out, and the folder of the fabric in the repository."""
        return committed(project.folder, [*project.template_folders, *beside(project.folder, CHECKS)])

    def names_at(self, project: Project, site: str) -> Sequence[str]:
        """The devices of a fabric that a site is responsible for."""
        return self.placed(self.committed(project)[1], project.devices()).get(site, ())

    def placed(self, fabric: str, devices: Sequence[Device]) -> Mapping[str, list[str]]:
        """The devices of each site; those of no unit are at the first one that has the fabric."""
        having = {name: site.fabrics for name, site in self.settings.sites.items() if fabric in site.fabrics}
        sites = {name: fabrics[fabric].units for name, fabrics in having.items()}
        if not sites:
            what = f"{fabric} is at no site of the fleet"
            raise UsageError(Problem(what, f"add it to the fabrics of a site in {fleet_settings.FILE}"))
        placed: dict[str, list[str]] = {}
        for device in devices:
            homes = (name for name, units in sites.items() if not units or not device.unit or device.unit in units)
            home = next(homes, "")
            if not home:
                what = f"unit {device.unit} of {fabric}, with {device.name}, is at no site of the fleet"
                raise UsageError(Problem(what, f"add it to the units of a site in {fleet_settings.FILE}"))
            placed.setdefault(home, []).append(device.name)
        return {name: placed[name] for name in sites if name in placed}


def shards(devices: Iterable[Device]) -> Iterator[list[str]]:
    """Yield the names of each shard: whole units, since checks compare both ends of a cable only if read together."""
    shard: list[str] = []
    for _, group in groupby(sorted(devices, key=neighborhood), neighborhood):
        for names in batched((device.name for device in group), SHARD):
            if len(shard) + len(names) > SHARD:
                yield shard
                shard = []
            shard += names
    yield shard

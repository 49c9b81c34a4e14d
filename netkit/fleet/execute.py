"""What a worker of a site can do: a function for each verb, on the fabric at the commit that the job names.

A handler gets the opened fabric, the devices of the shard and the job. It yields the parts of the result, each at most
`answer.MOST_PART_BYTES`, and notes for people. Verbs that change devices are in netkit/fleet/site_deploy.py.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from netkit.design.select import Device
from netkit.errors import Problem
from netkit.facts import serial
from netkit.fleet import site_deploy
from netkit.fleet.checking import answered
from netkit.fleet.checkout import Checkouts
from netkit.fleet.credentials import Credentials
from netkit.fleet.execution import Note
from netkit.fleet.job import CheckWork, SiteJob, SnapshotWork, WatchWork
from netkit.fleet.kept_counters import past_of
from netkit.fleet.link import BrokerLink
from netkit.fleet.settings import FleetError, FleetSettings, SiteFabric
from netkit.fleet.site_deploy import SiteRequest
from netkit.fleet.watching import watched
from netkit.project.backups import backed_up
from netkit.project.deadline import Deadline
from netkit.project.project import Project

ACCESS_FILES = ("access.yaml", "known_hosts", "known_certificates")
"""How devices are reached: the site's own files, in place of those in the repository."""
READING = 0.7
"""The share of the time of a job for reading devices; judging them gets what is left."""
Handler = Callable[[SiteRequest], Iterator[bytes | Note]]


def backup(asked: SiteRequest) -> Iterator[bytes | Note]:
    """Yield for each device its text without secrets, or the reason why there is none."""
    texts, missed = backed_up(asked.project, asked.devices)
    for name, text in texts.items():
        yield json.dumps({"device": name, "text": text}).encode()
    for name, reason in missed.items():
        yield json.dumps({"device": name, "reason": reason}).encode()


def snapshot(asked: SiteRequest) -> Iterator[bytes | Note]:
    """Yield snapshots of one device each; the first also has the differences of the configurations."""
    work = asked.job.work
    if not isinstance(work, SnapshotWork):
        raise TypeError(work)
    source = work.source or ""
    found = asked.project.snapshot(asked.limit, window_s=work.window_s, is_light=work.is_light, source=source)
    plan = found.plan
    for name, one in found.devices.items():
        yield serial.dump(replace(found, devices={name: one}, plan=plan))
        plan = ""


def check(asked: SiteRequest) -> Iterator[bytes | Note]:
    """Yield the verdicts on single devices, and the facts that checks of several devices need."""
    work = asked.job.work
    if not isinstance(work, CheckWork):
        raise TypeError(work)
    deadline = _deadline(work, asked.job.deadline_s - time.time())
    yield from answered(asked.project, asked.devices, work, deadline, past_of(asked.project, asked.job))


def _deadline(work: CheckWork, left_s: float) -> Deadline:
    """Return when to stop reading, so that devices that hang cost their own facts, and not those of the shard."""
    reading_s = int(left_s * READING)
    if reading_s <= work.window_s:
        what = f"{left_s:.0f} s are left until its deadline, too few for counters over {work.window_s:g} s"
        raise FleetError(Problem(what, "check less often, or with more workers at the site"))
    return Deadline(f"{reading_s}s", work.window_s)


def watch(asked: SiteRequest) -> Iterator[bytes | Note]:
    """Yield the record of a watch, in chunks."""
    work = asked.job.work
    if not isinstance(work, WatchWork):
        raise TypeError(work)
    yield from watched(asked.project, asked.devices, work)


HANDLERS: Mapping[str, Handler] = {
    "backup": backup,
    "check": check,
    "deploy": site_deploy.deploy_plan,
    "history": site_deploy.history,
    "plan": site_deploy.plan,
    "resume": site_deploy.resume,
    "rollback": site_deploy.rollback,
    "snapshot": snapshot,
    "watch": watch,
}
"""Verb → what carries it out."""


@dataclass(frozen=True, slots=True)
class SiteExecutor:
    """Carries out the jobs of a site on this machine."""

    settings: FleetSettings
    site: str
    state: Path
    """The worker's folder: its copy of the repository."""
    access: Path
    """Folder with the site's access files, below it a folder for each fabric, named as in the repository."""
    credentials: Credentials = field(repr=False)
    lab: str = ""
    """The lab to use instead of the devices; empty: the devices."""

    def __call__(self, job: SiteJob) -> Iterator[bytes | Note]:
        handler = HANDLERS.get(job.verb)
        if handler is None:
            known = ", ".join(HANDLERS)
            raise FleetError(Problem(f"this worker cannot {job.verb}", f"it can {known}; update netkit at the site"))
        part = self.settings.site(self.site).fabrics.get(job.fabric)
        if part is None:
            what = f"{job.fabric} is not at the site {self.site}"
            raise FleetError(Problem(what, "add it to the fabrics of the site in its fleet.yaml"))
        tree = Checkouts(self.settings.repository, self.state).tree(job.commit)
        folder = _inside(tree, job)
        if not self.lab:
            self._lay_access(folder, job.fabric)
        project = Project.open(folder, lab=self.lab, workplace=tree)
        devices = project.devices(job.limit)
        _refuse_elsewhere(devices, part, self.site)
        here = frozenset(device.name for device in project.devices() if _is_at(device, part))
        yield from handler(SiteRequest(project, devices, job, here, self._link))

    def _link(self, patience_s: float) -> BrokerLink:
        vhost, user = self.settings.virtual_host(self.site), self.settings.user(self.site)
        return BrokerLink(self.settings.broker, vhost, user, self.credentials, patience_s=patience_s)

    def _lay_access(self, folder: Path, fabric: str) -> None:
        """Put the site's access files into the checkout, and remove those of the repository."""
        own = self.access / fabric
        if not (own / ACCESS_FILES[0]).exists() and (folder / ACCESS_FILES[0]).exists():
            what = f"the site has no access.yaml of its own for {fabric}; that in the repository is not used"
            raise FleetError(Problem(what, f"write {own / ACCESS_FILES[0]}"))
        for name in ACCESS_FILES:
            file = folder / name
            if (own / name).is_file():
                file.unlink(missing_ok=True)
                shutil.copyfile(own / name, file)


def _inside(tree: Path, job: SiteJob) -> Path:
    """Return the folder of the fabric; FleetError if there is none, or a link leads out of the checkout."""
    folder = (tree / job.fabric).resolve()
    if not folder.is_relative_to(tree.resolve()) or not folder.is_dir():
        what = f"{job.fabric} is not a folder of the repository at {job.commit[:10]}"
        raise FleetError(Problem(what, "check the paths of the fabrics in fleet.yaml"))
    return folder


def _refuse_elsewhere(devices: Sequence[Device], part: SiteFabric, site: str) -> None:
    """FleetError if one of the devices is in a unit of another site."""
    foreign = [device.name for device in devices if not _is_at(device, part)]
    if foreign:
        what = f"{foreign[0]} is not at the site {site}"
        raise FleetError(Problem(what, "check the units of the fabric in fleet.yaml, at the site and the coordinator"))


def _is_at(device: Device, part: SiteFabric) -> bool:
    """Whether a device may be at a site; spines and cores are in no unit, and may be at each."""
    return not (part.units and device.unit and device.unit not in part.units)

"""What a worker of a site can do: a function for each verb, on the fabric at the commit that the job names.

A handler gets the opened fabric, the devices of the shard and the job. It yields the parts of the result, each at most
`answer.MOST_PART_BYTES`, and notes for people. Verbs that change devices are in netkit/fleet/site_deploy.py.
"""

import gc
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from netkit import private
from netkit.design.select import Device
from netkit.errors import NetkitError, Problem
from netkit.facts import Absent, Observation, Sample, serial
from netkit.fleet import checking, site_deploy
from netkit.fleet.checking import answered
from netkit.fleet.job import CheckWork, SiteJob, SnapshotWork, WatchWork
from netkit.fleet.lease import Note
from netkit.fleet.link import BrokerLink
from netkit.fleet.reading import watched
from netkit.fleet.settings import FleetError, FleetSettings, RepositorySettings, SiteFabric
from netkit.fleet.signing import Credentials
from netkit.fleet.site_deploy import SiteRequest
from netkit.judge import CheckContext
from netkit.judge.delta import Earlier, since
from netkit.private import make_folder, without_secrets
from netkit.project.checking import NO_PAST
from netkit.project.deadline import Deadline
from netkit.project.past import Past
from netkit.project.project import Project
from netkit.project.reading import backed_up
from netkit.project.runs import runs_folder
from netkit.report.plan_view import counted
from netkit.store.record import DamagedError, packed, unpacked

MOST_TREES = 4
MOST_DESIGNS, MOST_DEVICES = 4, 10_000
"""Designs that a worker keeps, and their devices: 10,000 take 160 MB."""
FETCH_S = 600
STALE_S = 30
SAFE = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "submodule.recurse=false",
    "-c",
    "gc.auto=0",
)


class Checkouts:
    """Commits of one repository, checked out below a folder."""

    def __init__(self, settings: RepositorySettings, folder: Path) -> None:
        self._settings = settings
        self._copy = folder / "repository.git"
        self._trees = folder / "trees"

    def tree(self, commit: str) -> Path:
        """The folder of a commit; FleetError if it is not on an allowed branch."""
        private.make_folder(self._trees)
        self._unlock()
        if not (self._copy / "HEAD").exists():
            self._git(None, "init", "--quiet", "--bare", str(self._copy))
        if not self._is_allowed(commit):
            self._fetch()
            if not self._is_allowed(commit):
                branches = ", ".join(self._settings.branches)
                what = f"the commit {commit[:10]} is not on {branches} of {self._settings.url}"
                raise FleetError(
                    Problem(what, "push it there, or add its branch to `branches` in the site's fleet.yaml")
                )
        place, mark = self.place(commit), self._trees / f"{commit}.complete"
        if not mark.exists():
            self._remove(commit)
            self._git(self._copy, "worktree", "prune", "--expire=now")
            self._git(self._copy, "worktree", "add", "--quiet", "--force", "--detach", str(place), commit)
        mark.touch()
        self._keep_newest()
        return place

    def place(self, commit: str) -> Path:
        """Where the folder of a commit is, if it is checked out."""
        return self._trees / commit

    def _is_allowed(self, commit: str) -> bool:
        return any(self._is_on(commit, branch) for branch in self._settings.branches)

    def _is_on(self, commit: str, branch: str) -> bool:
        return not self._run(
            self._copy, ("merge-base", "--is-ancestor", f"{commit}^{{commit}}", f"refs/heads/{branch}")
        ).returncode

    def _fetch(self) -> None:
        wanted = [f"+refs/heads/{branch}:refs/heads/{branch}" for branch in self._settings.branches]
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--update-head-ok")
        self._git(self._copy, "fetch", *options, "--", self._settings.url, *wanted)

    def _keep_newest(self) -> None:
        marks = sorted(self._trees.glob("*.complete"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for mark in marks[MOST_TREES:]:
            self._remove(mark.stem)

    def _remove(self, commit: str) -> None:
        (self._trees / f"{commit}.complete").unlink(missing_ok=True)
        shutil.rmtree(self._trees / commit, ignore_errors=True)

    def _unlock(self) -> None:
        """Remove locks that a git left behind which was killed."""
        for file in self._copy.rglob("*.lock"):
            if file.stat().st_mtime < time.time() - STALE_S:
                file.unlink(missing_ok=True)

    def _git(self, folder: Path | None, *arguments: str) -> None:
        done = self._run(folder, arguments)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["git gave no reason"]
            reason = next((line for line in lines if line.startswith("fatal: ")), lines[-1]).removeprefix("fatal: ")
            remedy = "run git by hand as this user, at this site"
            raise FleetError(Problem(f"git {arguments[0]} of {self._settings.url} failed: {reason}", remedy))

    def _run(self, folder: Path | None, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        place = () if folder is None else ("--git-dir", str(folder))
        known = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
        try:
            return subprocess.run(  # noqa: S603 (no shell; no argument comes from a job but a commit of hexadecimal digits)
                ["git", *SAFE, *place, *arguments],  # noqa: S607 (the git of the user's PATH)
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**without_secrets(known), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
                timeout=FETCH_S,
                check=False,
            )
        except FileNotFoundError:
            raise FleetError(Problem("git is not installed", "install it at the site")) from None
        except subprocess.TimeoutExpired:
            what = f"git {arguments[0]} of {self._settings.url} takes longer than {FETCH_S} s"
            raise FleetError(Problem(what, "check the connection of the site to the repository")) from None


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
        """The newest sample up to a time; None if there is none."""
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
        """How long to watch counters: 0 if those of each device were kept."""
        missing = [device.name for device in devices if device.name not in self._earlier]
        if missing and wanted_s:
            what = f"no earlier counters of {counted(len(missing), 'device')} are here"
            self._feedback.note(f"{what}: they are judged over {wanted_s:g} s")
        return wanted_s if missing else 0.0

    def with_history(self, context: CheckContext) -> CheckContext:
        """Keep the counters, and compute them since the samples that were used."""
        for name, one in context.snapshot.devices.items():
            self._kept.keep(one, self._earlier.get(name))
        return replace(context, snapshot=since(context.snapshot, self._earlier))


def past_of(project: Project, job: SiteJob) -> Past:
    """What the site kept for a check since the last one; nothing for other jobs."""
    times = job.work.since_s if isinstance(job.work, CheckWork) else None
    return NO_PAST if times is None else SitePast(project, dict(zip(job.devices, times, strict=True)))


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
    """When to stop reading, so that devices that hang cost their own facts, and not those of the shard."""
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
    "rehearse": site_deploy.rehearse,
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
    designs: dict[tuple[str, str], Project] = field(default_factory=dict, repr=False)
    """Fabric and commit → its design, for the processes of jobs to inherit; the newest last."""

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
        project = self.designs.get((job.fabric, job.commit)) or self._open(tree, folder)
        devices = project.devices(job.limit)
        _refuse_elsewhere(devices, part, self.site)
        here = frozenset(device.name for device in project.devices() if _is_at(device, part))
        yield from handler(SiteRequest(project, devices, job, here, self._link))

    def prepare(self, job: SiteJob) -> None:
        """Design the fabric of a job in this process, unless it is; a job has done so before, so it takes no longer.

        A design has no secrets and no access files. The process of the job still verifies its commit.
        """
        designs, opened = self.designs, (job.fabric, job.commit)
        tree = Checkouts(self.settings.repository, self.state).place(job.commit)
        with suppress(NetkitError, OSError):  # the process of the job reports it
            found = designs.get(opened) or self._open(tree, _inside(tree, job))
            designs.pop(opened, None)
            designs[opened] = found
            checking.prepare(found.fabric)
        while len(designs) > 1 and (
            len(designs) > MOST_DESIGNS or sum(len(one.fabric.names) for one in designs.values()) > MOST_DEVICES
        ):
            del designs[next(iter(designs))]
            gc.collect()

    def _open(self, tree: Path, folder: Path) -> Project:
        return Project.open(folder, lab=self.lab, workplace=tree)

    def _link(self, patience_s: float) -> BrokerLink:
        vhost, user = self.settings.virtual_host(self.site), self.settings.user(self.site)
        return BrokerLink(self.settings.broker, vhost, user, self.credentials, patience_s=patience_s)

    def _lay_access(self, folder: Path, fabric: str) -> None:
        """Put the site's access files into the checkout, and remove those of the repository."""
        own = self.access / fabric
        if not (own / ACCESS_FILES[0]).exists() and (folder / ACCESS_FILES[0]).exists():
            what = f"the site has no access.yaml for {fabric}; the one in the repository is not used"
            raise FleetError(Problem(what, f"write {own / ACCESS_FILES[0]}"))
        for name in ACCESS_FILES:
            file = folder / name
            if (own / name).is_file():
                file.unlink(missing_ok=True)
                shutil.copyfile(own / name, file)


def _inside(tree: Path, job: SiteJob) -> Path:
    """The folder of the fabric; FleetError if there is none, or a link leads out of the checkout."""
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

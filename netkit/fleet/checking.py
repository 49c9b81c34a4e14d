"""Checks at the sites: workers read devices and judge them one by one; the coordinator judges the fabric as a whole."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from netkit import __version__
from netkit import plan as planning
from netkit.design.select import Device
from netkit.errors import NetkitError, Problem, UsageError
from netkit.facts import Observation, Snapshot, serial
from netkit.fleet import settings as fleet_settings
from netkit.fleet.answer import JobAnswer, JobEvent, LostJob
from netkit.fleet.coordinator import Coordinator
from netkit.fleet.credentials import Credentials
from netkit.fleet.job import CheckWork, SiteJob, new_job
from netkit.fleet.settings import FleetError, FleetSettings
from netkit.judge import Check, Verdict, catalog, error
from netkit.judge.run import CheckResult, Judgement, ShardResult, subjects
from netkit.judge.shard import Reads
from netkit.project.checking import ACCEPTANCE, CLUSTER, NO_PAST, Checking, Part
from netkit.project.connections import chosen_source
from netkit.project.observing import LOOKING
from netkit.project.project import CHECKS, Project, beside
from netkit.project.revision import committed
from netkit.store.record import batched, judgement_data, judgement_of

SHARD = 256
"""Devices per job."""
AT_ONCE = 32
"""Devices per part of an answer."""
LONGEST_S = 900
"""How long a shard may take, beside the window."""
BESIDE = ("system",)
"""What reports show of each device, also where no check of several devices reads it."""
UNDECLARED = "looks at other devices without declaring it: add reads=[…] to its decorator"
HEAD, RESULTS, FACTS = b"H", b"R", b"F"


def answered(project: Project, devices: Sequence[Device], work: CheckWork) -> Iterator[bytes]:
    """Read and judge devices at their site; yield the parts of the answer: each process has a head and what follows."""
    checks = catalog.select(project.checks(), work.names)
    checking = replace(
        Checking.of(project, window_s=work.window_s, is_light=work.is_light, source=work.source or ""), devices=devices
    )
    for part in checking.collect(checks, NO_PAST, Reads.of(checks, BESIDE)):
        yield from _packed(part, checks, {device.name: device for device in devices})


def _packed(part: Part, checks: Sequence[Check], devices: Mapping[str, Device]) -> Iterator[bytes]:
    found, shard = part.snapshot, part.shard or ShardResult({})
    head = {"netkit": __version__, "taken_s": found.taken_s, "plan": found.plan}
    yield HEAD + json.dumps({**head, "still": {name: sorted(at) for name, at in shard.still.items()}}).encode()
    here = [devices[name] for name in found.devices]
    refused = _refused([check for check in checks if check.name in shard.deferred], here)
    for results in batched([*shard.results, *refused], AT_ONCE * len(checks)):
        yield RESULTS + judgement_data(Judgement(tuple(results), ()))
    for names in batched(found.devices, AT_ONCE):
        some = {name: found.devices[name] for name in names}
        yield FACTS + serial.dump(replace(found, devices=some, plan=""))


def _refused(checks: Iterable[Check], devices: Sequence[Device]) -> Iterator[CheckResult]:
    """Yield the results of checks that cannot be judged where the device is read."""
    for check in checks:
        for name in subjects(check, devices):
            finding = error("", UNDECLARED, device=name)._replace(check=check.name)
            yield CheckResult(check.name, name, Verdict.ERROR, 1, (finding,))


@dataclass(slots=True)
class _Unpacking:
    """The parts of an answer so far."""

    fabric: str
    asked: frozenset[str]
    parts: list[Part] = field(default_factory=list)
    failure: str = ""
    """Why it is not used."""

    def take(self, payload: bytes) -> None:
        """Add a part; from the first one that is refused, the answer has failed."""
        if not self.failure:
            try:
                self._take(payload)
            except NetkitError as error:
                self.failure = error.problems[0].message

    def _take(self, payload: bytes) -> None:
        kind, content = payload[:1], payload[1:]
        if kind == HEAD:
            self.parts.append(self._begun(content))
            return
        if not self.parts:
            raise FleetError(Problem("its answer has no head"))
        part = self.parts[-1]
        snapshot, shard = part.snapshot, part.shard or ShardResult({})
        if kind == RESULTS:
            results = judgement_of(content, "its answer").results
            self._expect(one.device for one in results)
            shard = replace(shard, results=(*shard.results, *results))
        elif kind == FACTS:
            devices = serial.load(content, "its answer").devices
            self._expect(devices)
            snapshot = replace(snapshot, devices={**snapshot.devices, **devices})
        else:
            raise FleetError(Problem(f"its answer has a part of the kind {kind!r}"))
        self.parts[-1] = Part(snapshot, shard)

    def _expect(self, names: Iterable[str]) -> None:
        """Refuse devices that the site was not asked for: they may be at another one."""
        others = [name for name in names if name not in self.asked]
        if others:
            raise FleetError(Problem(f"its answer is about {others[0]}, which was not asked for"))

    def _begun(self, content: bytes) -> Part:
        try:
            head = json.loads(content)
            version, taken_s, plan = str(head["netkit"]), float(head["taken_s"]), str(head["plan"])
            still = {str(name): frozenset(map(str, ports)) for name, ports in head["still"].items()}
        except (ValueError, LookupError, TypeError, AttributeError):
            raise FleetError(Problem("the head of its answer is damaged")) from None
        if version != __version__:
            what = f"its worker runs netkit {version}, and this is {__version__}"
            raise FleetError(Problem(what, "run the same release at all sites"))
        if plan:
            differences = planning.read(plan, "its answer")
            self._expect(one.name for one in differences.devices)
            self._expect(one.name for one in differences.unreachable)
        return Part(Snapshot(self.fabric, taken_s, {}, plan), ShardResult({}, still=still))


@dataclass(frozen=True, slots=True)
class FleetCollector:
    """Has the workers of sites read devices."""

    settings: FleetSettings
    credentials: Credentials

    @classmethod
    def of(cls, folder: Path) -> "FleetCollector":
        """Use the fleet of a folder."""
        settings = fleet_settings.load(folder)
        return cls(settings, Credentials.load(folder, settings.broker))

    def __call__(self, checking: Checking, checks: Sequence[Check]) -> Sequence[Part]:
        """Give the devices to their sites; a shard without an answer leaves its devices unread, with the reason."""
        jobs = {job.nonce: job for job in self._jobs(checking, checks)}
        project, devices = checking.project, {device.name: device for device in checking.devices}
        answers = {nonce: _Unpacking(project.fabric.name, frozenset(job.devices)) for nonce, job in jobs.items()}
        parts: list[Part] = []
        with (
            Coordinator(self.settings, self.credentials, project.feedback.note) as fleet,
            project.feedback.progress(LOOKING, len(devices)) as count,
        ):
            for event in fleet.run(jobs.values()):
                done = _ended(event, answers[event.job.nonce], devices)
                for _ in (name for part in done for name in part.snapshot.devices):
                    count()
                parts += done
        return parts

    def _jobs(self, checking: Checking, checks: Sequence[Check]) -> Iterator[SiteJob]:
        project = checking.project
        kept_beside = [*project.template_folders, *beside(project.folder, CHECKS)]
        commit, fabric = committed(project.folder, kept_beside)
        names = tuple(check.name for check in checks if not check.name.startswith((ACCEPTANCE, CLUSTER)))
        source = chosen_source(checking.source)
        work = CheckWork(names=names, window_s=checking.window_s, is_light=checking.is_light, source=source)
        within_s = int(checking.window_s) + LONGEST_S
        for site, devices in self._placed(fabric, checking.devices).items():
            for some in batched(devices, SHARD):
                yield new_job(site, fabric, commit, work, within_s=within_s, devices=tuple(some))

    def _placed(self, fabric: str, devices: Sequence[Device]) -> Mapping[str, list[str]]:
        """Return the devices of each site; those of no unit are at the first one that has the fabric."""
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
        return placed


def _ended(event: JobEvent, answer: _Unpacking, devices: Mapping[str, Device]) -> Sequence[Part]:
    """Take an event of a job; return its parts once it is answered or lost."""
    if isinstance(event, JobAnswer):
        answer.take(event.payload)
        if not event.is_last:
            return ()
        return [_unread(event.job, answer.failure, devices)] if answer.failure else answer.parts
    return [_unread(event.job, event.reason, devices)] if isinstance(event, LostJob) else ()


def _unread(job: SiteJob, reason: str, devices: Mapping[str, Device]) -> Part:
    why = f"the site {job.site} did not read it: {reason}"
    seen = {name: Observation(name, devices[name].platform, failure=why) for name in job.devices}
    return Part(Snapshot(job.fabric, time.time(), seen))

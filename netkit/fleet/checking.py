"""Checks at the sites: workers read devices and judge them one by one; the coordinator judges the fabric as a whole."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from netkit import __version__
from netkit import plan as planning
from netkit.design.select import Device
from netkit.errors import NetkitError, Problem
from netkit.facts import Observation, Snapshot
from netkit.fleet import compact
from netkit.fleet.dispatch import Dispatch
from netkit.fleet.job import CheckWork
from netkit.fleet.settings import FleetError
from netkit.judge import Check, Verdict, catalog, error
from netkit.judge.run import CheckResult, Judgement, ShardResult, subjects
from netkit.judge.shard import Reads
from netkit.project.checking import ACCEPTANCE, CLUSTER, NO_PAST, Checking, Part
from netkit.project.connections import chosen_source
from netkit.project.deadline import NEVER, Deadline
from netkit.project.past import Past
from netkit.project.project import Project
from netkit.store.record import batched, judgement_data, judgement_of

AT_ONCE = 32
"""Devices per part of an answer."""
BESIDE = ("system",)
"""What reports show of each device, also where no check of several devices reads it."""
UNDECLARED = "looks at other devices without declaring it: add reads=[…] to its decorator"
HEAD, RESULTS, FACTS = b"H", b"R", b"F"


def answered(
    project: Project, devices: Sequence[Device], work: CheckWork, deadline: Deadline = NEVER, past: Past = NO_PAST
) -> Iterator[bytes]:
    """Read and judge devices at their site; yield the parts of the answer: each process has a head and what follows."""
    checks = catalog.select(project.checks(), work.names)
    checking = replace(
        Checking.of(project, window_s=work.window_s, is_light=work.is_light, source=work.source or ""),
        devices=devices,
        deadline=deadline,
    )
    for part in checking.collect(checks, past, Reads.of(checks, BESIDE)):
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
        yield FACTS + compact.packed(found.devices[name] for name in names)


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
            devices = {one.device: one for one in compact.unpacked(content)}
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
    """Has the workers of sites read and judge devices."""

    dispatch: Dispatch

    def __call__(self, checking: Checking, checks: Sequence[Check], past: Past) -> Sequence[Part]:
        """Give the devices to their sites; a shard without an answer leaves its devices unread, with the reason."""
        names = tuple(check.name for check in checks if not check.name.startswith((ACCEPTANCE, CLUSTER)))
        source = chosen_source(checking.source)
        work = CheckWork(names=names, window_s=checking.window_s, is_light=checking.is_light, source=source)
        project, platforms = checking.project, {device.name: device.platform for device in checking.devices}
        parts: list[Part] = []
        left_s, counted_s = checking.deadline.left_s, past.counted_s
        for answer in self.dispatch.answers(project, checking.devices, work, left_s, counted_s):
            unpacking = _Unpacking(project.fabric.name, frozenset(answer.job.devices), failure=answer.failure)
            for payload in answer.parts:
                unpacking.take(payload)
            if unpacking.failure:
                why = replace(answer, failure=unpacking.failure).why
                seen = {name: Observation(name, platforms[name], failure=why) for name in answer.job.devices}
                parts.append(Part(Snapshot(project.fabric.name, time.time(), seen)))
            else:
                parts += unpacking.parts
        return parts

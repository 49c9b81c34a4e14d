"""From a fabric to the context of its checks: read from the devices, from its lab, or from a snapshot."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from netkit import plan as planning
from netkit.design.select import Device, select
from netkit.errors import CheckError, PlanError, Problem, UsageError
from netkit.facts import Absent, Snapshot, serial
from netkit.facts.cluster import ClusterFacts
from netkit.facts.snapshot import Trial
from netkit.judge import Check, CheckContext
from netkit.judge.run import CheckDeadline, ShardResult
from netkit.judge.shard import Reads, judge_shard
from netkit.observe import CollectOptions
from netkit.platforms.linux.acceptance import results
from netkit.project.cluster import cluster_facts
from netkit.project.connections import Connections
from netkit.project.deadline import NEVER, Deadline
from netkit.project.observing import Looking, joined, look, spread
from netkit.project.past import Past
from netkit.project.processes import Names
from netkit.project.project import Feedback, Project

MOST_BYTES = 64 * 2**20


def added(snapshot: Snapshot, trials: Sequence[Trial]) -> Snapshot:
    return replace(snapshot, trials=(*snapshot.trials, *trials))


def read(files: Iterable[Path]) -> tuple[Trial, ...]:
    """Read the results in files; one without a time gets the time of its file."""
    return tuple(trial for file in files for trial in _of_file(file))


def _of_file(file: Path) -> tuple[Trial, ...]:
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        written_s = file.stat().st_mtime
    except OSError as error:
        raise CheckError(Problem(f"cannot be read: {error.strerror}", file=str(file))) from None
    if len(data) > MOST_BYTES:
        raise CheckError(Problem("is too large for results", "name a file with one run or a few", file=str(file)))
    found = results(data.decode("utf-8", "replace"), file.name)
    if isinstance(found, Absent):
        remedy = "give what all_reduce_perf, ib_write_bw or iperf3 -J printed"
        raise CheckError(Problem(found.reason, remedy, file=str(file)))
    return tuple(trial if trial.at_s is not None else replace(trial, at_s=written_s) for trial in found)


ACCEPTANCE, CLUSTER = "acceptance.", "cluster."
DRIFT = "drift"
PROBES = "probes"
NO_PAST = Past()


@dataclass(frozen=True, slots=True)
class Part:
    """Devices that were read together, and what was judged there; None if nothing was."""

    snapshot: Snapshot
    shard: ShardResult | None = None


@dataclass(frozen=True, slots=True)
class Checking:
    """What to judge: a fabric, its devices, and where their facts come from."""

    project: Project
    devices: Sequence[Device]
    window_s: float = 0.0
    snapshot: Path | None = None
    is_light: bool = False
    source: str = ""
    """Where facts of switches come from; empty: from access.yaml."""
    deadline: Deadline = NEVER
    has_pod_routes: bool = False
    """Ask the pods of the cluster for their routes."""
    cluster: str = ""
    """A kubeconfig, what kubectl or scontrol printed, or `slurm`; empty: none is read."""
    collector: "Callable[[Checking, Sequence[Check], Past], Sequence[Part]] | None" = None
    """What reads the devices; by default this machine."""

    @classmethod
    def of(
        cls,
        project: Project,
        *,
        limit: str = "",
        window_s: float = 0.0,
        snapshot: Path | None = None,
        is_light: bool = False,
        source: str = "",
    ) -> "Checking":
        """Select the devices of a fabric, and validate the options."""
        if snapshot is not None and project.lab:
            raise UsageError(Problem("facts come either from the lab or from a snapshot", "drop one of the options"))
        if snapshot is not None and source:
            raise UsageError(Problem("a snapshot already fixes the source of its facts", "drop --source"))
        return cls(project, select(project.fabric, limit), window_s, snapshot, is_light, source)

    def base_context(self, checks: Sequence[Check] | None = None, past: Past = NO_PAST) -> CheckContext:
        """Collect the facts that the chosen checks need, and no others."""
        if self.snapshot is None:
            parts = self.collect(checks, past)
            found = joined(self.project.fabric, self.devices, [part.snapshot for part in parts])
            return past.with_history(self.context_of(found, [part.shard for part in parts if part.shard is not None]))
        return past.with_history(self.context_of(self._read(self.snapshot)))

    def context_of(self, found: Snapshot, shards: Sequence[ShardResult] = ()) -> CheckContext:
        """The context of these devices with their facts, and what was judged where they were read."""
        try:
            plan = planning.read(found.plan) if found.plan else None
        except PlanError as error:
            what = f"the differences from the intent in it cannot be read: {error.problems[0].message}"
            raise CheckError(Problem(what, "take a new snapshot", file=str(self.snapshot or ""))) from None
        return CheckContext(
            self.project.fabric,
            found,
            self.project.intent.thresholds,
            names=frozenset(device.name for device in self.devices),
            plan=plan,
            shards=tuple(shards),
        )

    def context(
        self,
        checks: Sequence[Check],
        past: Past = NO_PAST,
        results: Sequence[Path] = (),
        measured: Callable[[], tuple[Trial, ...]] = tuple,
    ) -> CheckContext:
        """Collect facts and results of acceptance runs; checks of these or of the cluster alone read no device."""
        results_read = (*read(results), *measured())
        has_cluster = bool(self.cluster) and any(check.name.startswith(CLUSTER) for check in checks)
        cluster = self._cluster_facts() if has_cluster else None
        if self.snapshot is None and all(check.name.startswith((ACCEPTANCE, CLUSTER)) for check in checks):
            empty = Snapshot(self.project.fabric.name, time.time(), {}, cluster=cluster, trials=results_read)
            return CheckContext(self.project.fabric, empty, self.project.intent.thresholds, names=frozenset())
        context = self.base_context(checks, past)
        found = replace(context.snapshot, cluster=cluster) if cluster else context.snapshot
        return replace(context, snapshot=added(found, results_read))

    def _cluster_facts(self) -> ClusterFacts:
        return cluster_facts(self.project, self.cluster, has_routes=self.has_pod_routes)

    def collect(self, checks: Sequence[Check] | None, past: Past, reads: Reads | None = None) -> "Sequence[Part]":
        """Read the devices; if several processes do, each also judges its devices.

        With `reads`, all devices are judged, and only what these are is handed on.
        """
        if self.collector is not None:
            return self.collector(self, checks or (), past)
        has_drift = checks is None or any(check.name.startswith(f"{DRIFT}.") for check in checks)
        has_window = checks is None or any(check.has_window for check in checks)
        window_s = past.window_s(self.devices, self.window_s) if has_window else 0.0
        options = CollectOptions(window_s=window_s, has_config=has_drift)
        has_probes = checks is None or any(PROBES in check.needs for check in checks)
        looking = Looking(self.devices, options, is_light=self.is_light, has_probes=has_probes, deadline=self.deadline)
        connections = Connections.of(self.project, source=self.source)

        def part(names: Names, feedback: Feedback) -> Part:
            project, mine = replace(self.project, feedback=feedback), looking.part(names)
            if len(names) == len(self.devices) and reads is None:
                return Part(look(project, connections, mine))
            with self.deadline:  # its timer does not run in another process
                found = look(project, connections, mine)
            context = past.with_history(replace(self, devices=mine.devices).context_of(found))
            shard = _judged(context, checks or (), reads, self.deadline.judging())
            if reads is not None:
                found = replace(found, devices=shard.observations)
            return Part(found, replace(shard, observations={}))

        with spread(self.project, looking, part) as parts:
            return list(parts)

    def _read(self, file: Path) -> Snapshot:
        found = serial.read(file)
        if found.fabric != self.project.fabric.name:
            what = f"belongs to the fabric {found.fabric}, not to {self.project.fabric.name}"
            raise CheckError(Problem(what, "name its fabric with --fabric", file=str(file)))
        return found


def _judged(
    context: CheckContext, checks: Sequence[Check], reads: Reads | None, deadline: CheckDeadline
) -> ShardResult:
    with redirect_stdout(sys.stderr):  # as in judging: keep the output of users' checks out of the result
        return judge_shard(context, checks, reads or Reads(), deadline)

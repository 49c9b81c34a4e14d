"""From a fabric to the context of its checks: read from the devices, from its lab, or from a snapshot."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netkit import plan as planning
from netkit.design.select import Device, select
from netkit.errors import CheckError, PlanError, Problem, UsageError
from netkit.facts import Snapshot, serial
from netkit.facts.cluster import ClusterFacts
from netkit.facts.snapshot import Trial
from netkit.judge import Check, CheckContext
from netkit.observe import CollectOptions
from netkit.project import trials
from netkit.project.cluster import cluster_facts
from netkit.project.connections import Connections
from netkit.project.deadline import NEVER, Deadline
from netkit.project.observing import Looking, look
from netkit.project.past import Past
from netkit.project.project import Project

ACCEPTANCE, CLUSTER = "acceptance.", "cluster."
DRIFT = "drift"
PROBES = "probes"
NO_PAST = Past()


@dataclass(frozen=True, slots=True)
class Checking:
    """What to judge: a fabric, its devices, and where their facts come from."""

    project: Project
    devices: Sequence[Device]
    window_s: float = 0.0
    snapshot: Path | None = None
    is_light: bool = False
    source: str = ""
    """Where facts of switches come from; empty: as access.yaml says."""
    deadline: Deadline = NEVER
    has_pod_routes: bool = False
    """Ask the pods of the cluster for their routes."""
    cluster: str = ""
    """A kubeconfig, what kubectl or scontrol printed, or `slurm`; empty: none is read."""

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

    def scene(self, checks: Sequence[Check] | None = None, past: Past = NO_PAST) -> CheckContext:
        """Collect the facts that the chosen checks need, and no others."""
        found = self._collect(checks, past) if self.snapshot is None else self._read(self.snapshot)
        try:
            plan = planning.read(found.plan) if found.plan else None
        except PlanError as error:
            what = f"the differences from the intent in it cannot be read: {error.problems[0].message}"
            raise CheckError(Problem(what, "take a new snapshot", file=str(self.snapshot or ""))) from None
        scene = CheckContext(
            self.project.fabric,
            found,
            self.project.intent.thresholds,
            names=frozenset(device.name for device in self.devices),
            plan=plan,
        )
        return past.scene(scene)

    def context(
        self,
        checks: Sequence[Check],
        past: Past = NO_PAST,
        results: Sequence[Path] = (),
        measured: Callable[[], tuple[Trial, ...]] = tuple,
    ) -> CheckContext:
        """Collect facts and results of acceptance runs; checks of these or of the cluster alone read no device."""
        results_read = (*trials.read(results), *measured())
        has_cluster = bool(self.cluster) and any(check.name.startswith(CLUSTER) for check in checks)
        cluster = self._cluster_facts() if has_cluster else None
        if self.snapshot is None and all(check.name.startswith((ACCEPTANCE, CLUSTER)) for check in checks):
            empty = Snapshot(self.project.fabric.name, time.time(), {}, cluster=cluster, trials=results_read)
            return CheckContext(self.project.fabric, empty, self.project.intent.thresholds, names=frozenset())
        scene = self.scene(checks, past)
        found = replace(scene.snapshot, cluster=cluster) if cluster else scene.snapshot
        return replace(scene, snapshot=trials.added(found, results_read))

    def _cluster_facts(self) -> ClusterFacts:
        return cluster_facts(self.project, self.cluster, has_routes=self.has_pod_routes)

    def _collect(self, checks: Sequence[Check] | None, past: Past) -> Snapshot:
        has_drift = checks is None or any(check.name.startswith(f"{DRIFT}.") for check in checks)
        has_window = checks is None or any(check.has_window for check in checks)
        window_s = past.window_s(self.devices, self.window_s) if has_window else 0.0
        options = CollectOptions(window_s=window_s, has_config=has_drift)
        has_probes = checks is None or any(PROBES in check.needs for check in checks)
        looking = Looking(self.devices, options, is_light=self.is_light, has_probes=has_probes, deadline=self.deadline)
        return look(self.project, Connections.of(self.project, source=self.source), looking)

    def _read(self, file: Path) -> Snapshot:
        found = serial.read(file)
        if found.fabric != self.project.fabric.name:
            what = f"belongs to the fabric {found.fabric}, not to {self.project.fabric.name}"
            raise CheckError(Problem(what, "name its fabric with --fabric", file=str(file)))
        return found

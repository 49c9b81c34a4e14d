"""From a fabric to the scene its checks are given: live, from its lab, or from a snapshot."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netkit import plan as planning
from netkit.design.select import Device, select
from netkit.errors import CheckError, PlanError, Problem, UsageError
from netkit.facts import Snapshot, serial
from netkit.facts.snapshot import Trial
from netkit.judge import Check, CheckContext
from netkit.observe import CollectOptions
from netkit.plan import Plan
from netkit.project import trials
from netkit.project.deadline import NEVER, Deadline
from netkit.project.fleet import fleet
from netkit.project.observing import Looking, look
from netkit.project.past import Past
from netkit.project.project import Project

ACCEPTANCE = "acceptance."
DRIFT = "drift"
PROBES = "probes"
NO_PAST = Past()


@dataclass(frozen=True, slots=True)
class Checking:
    """A fabric that is to be judged, and from what."""

    project: Project
    devices: Sequence[Device]
    window_s: float = 0.0
    snapshot: Path | None = None
    is_light: bool = False
    source: str = ""
    """What switches are looked at through; empty as access.yaml says."""
    deadline: Deadline = NEVER

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
        """Choose the devices of a fabric, and what is read of them."""
        if snapshot is not None and project.lab:
            raise UsageError(Problem("the lab and a snapshot are two places to read from", "choose one"))
        if snapshot is not None and source:
            raise UsageError(Problem("what a snapshot was taken through is settled", "leave --source away"))
        return cls(project, select(project.fabric, limit), window_s, snapshot, is_light, source)

    def scene(self, checks: Sequence[Check] | None = None, past: Past = NO_PAST) -> CheckContext:
        """Return what checks are given; what none of the chosen ones needs is not asked for."""
        found = self._looked(checks, past) if self.snapshot is None else self._of_file(self.snapshot)
        scene = CheckContext(
            self.project.fabric,
            found,
            self.project.intent.thresholds,
            names=frozenset(device.name for device in self.devices),
            plan=self._plan(found) if found.plan else None,
        )
        return past.scene(scene)

    def context(
        self,
        checks: Sequence[Check],
        past: Past = NO_PAST,
        results: Sequence[Path] = (),
        measured: Callable[[], tuple[Trial, ...]] = tuple,
    ) -> CheckContext:
        """Return what checks are given, results of acceptance runs included; for those alone no device is asked."""
        found = (*trials.read(results), *measured())
        if self.snapshot is None and all(check.name.startswith(ACCEPTANCE) for check in checks):
            nothing = Snapshot(self.project.fabric.name, time.time(), {}, trials=found)
            return CheckContext(self.project.fabric, nothing, self.project.intent.thresholds, names=frozenset())
        scene = self.scene(checks, past)
        return replace(scene, snapshot=trials.added(scene.snapshot, found))

    def _plan(self, found: Snapshot) -> Plan:
        try:
            return planning.read(found.plan)
        except PlanError as error:
            what = f"holds differences from the intent that cannot be read: {error.problems[0].message}"
            raise CheckError(Problem(what, "take a new snapshot", file=str(self.snapshot or ""))) from None

    def _looked(self, checks: Sequence[Check] | None, past: Past) -> Snapshot:
        has_drift = checks is None or any(check.name.startswith(f"{DRIFT}.") for check in checks)
        has_window = checks is None or any(check.has_window for check in checks)
        window_s = past.window_s(self.devices, self.window_s) if has_window else 0.0
        options = CollectOptions(window_s=window_s, has_config=has_drift)
        has_probes = checks is None or any(PROBES in check.needs for check in checks)
        looking = Looking(self.devices, options, is_light=self.is_light, has_probes=has_probes, deadline=self.deadline)
        return look(self.project, fleet(self.project, source=self.source), looking)

    def _of_file(self, file: Path) -> Snapshot:
        found = serial.read(file)
        if found.fabric != self.project.fabric.name:
            what = f"is of the fabric {found.fabric}, not of {self.project.fabric.name}"
            raise CheckError(Problem(what, "name its fabric with --fabric", file=str(file)))
        return found

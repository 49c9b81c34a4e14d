"""Deploying a change while a fault of the lab is armed for one, and the configurations afterwards."""

from pathlib import Path
from typing import Any

import yaml

from netkit.deploy import Options
from netkit.design import Fabric
from netkit.project.project import Project
from tests.checks.fault_table import Row
from tests.deploy.fleet import Fleet
from tests.deploy.live_scene import merged, reasons
from tests.lab.running import RunningLab, write_fabric

OPTIONS = Options(
    revert_s=600, settle_s=120, drain_s=1, poll_s=0.5, parallel=4, max_fail=1, is_together=True, has_canary=False
)
HASTE: dict[str, Any] = {"revert_s": 4, "settle_s": 6}
"""For a switch that goes away: it has reverted before it answers again, and the deploy need not wait longer."""
AWAY = "seconds"
"""The option of a fault that sets for how long a switch is away."""
FILE = "fabric.yaml"


def failed(lab: RunningLab, folder: Path, row: Row) -> Project:
    """Deploy a row's change, which must fail at the faulty device only; return the intended configurations."""
    values = yaml.safe_load((lab.fabric / FILE).read_text(encoding="utf-8"))
    project = Project.open(write_fabric(folder / "changed", merged(values, dict(row.deploys))), lab=lab.name)
    outcome = _fleet(lab, folder, project.fabric).apply(**HASTE if AWAY in row.options else {})
    assert [one.device for one in outcome.devices if one.exit_code] == [row.at], reasons(outcome)
    return project


def taken_back(lab: RunningLab, folder: Path, project: Project) -> None:
    """Restore the intended configuration of every switch."""
    fleet = _fleet(lab, folder, project.fabric)
    plan = fleet.plan()
    assert plan.unreachable == ()
    if plan.changed:
        outcome = fleet.apply(plan, max_fail=0)
        assert outcome.exit_code == 0, reasons(outcome)


def _fleet(lab: RunningLab, folder: Path, fabric: Fabric) -> Fleet:
    return Fleet(lab, folder / "runs", fabric, options=OPTIONS)

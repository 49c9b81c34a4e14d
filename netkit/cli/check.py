"""`netkit check`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from netkit import plan as planning
from netkit.cli.fabric import CHECKS, Project, beside, open_project, warn
from netkit.cli.fleet import fleet
from netkit.cli.observing import Looking, look
from netkit.cli.text import columns
from netkit.deploy.shape import weightiest
from netkit.design.select import Device, select
from netkit.errors import CheckError, Problem, UsageError
from netkit.facts import Snapshot, serial
from netkit.judge import Check, Scene, Verdict, catalog
from netkit.judge.run import Judgement
from netkit.judge.run import run as judge
from netkit.observe import Options
from netkit.report.judgement_json import judgement_json, judgement_junit
from netkit.report.judgement_markdown import judgement_markdown
from netkit.report.judgement_text import judgement_text
from netkit.report.judgement_view import Judged

FORMATS: Mapping[str, Callable[[Judged], str]] = {
    "text": judgement_text,
    "json": judgement_json,
    "junit": judgement_junit,
    "markdown": judgement_markdown,
}
UNREACHED, FAILED = 4, 1
PROFILES = ("light", "full")
DRIFT = "drift"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for."""

    names: Sequence[str]
    limit: str
    lab: str
    window_s: float
    profile: str
    snapshot: Path | None
    output: str
    lists: bool


def run(folder: Path, **how: object) -> int:
    """Judge the fabric; return 4 when a device could not be reached, 1 when a check failed or nothing was judged."""
    asked = Asked(**how)  # type: ignore[arg-type]
    _refuse(asked)
    project = open_project(folder)
    warn(project)
    checks = catalog.select(catalog.load(beside(project.loaded.folder, CHECKS)), asked.names)
    if asked.lists:
        sys.stdout.write(columns((check.name, check.layer, check.title) for check in checks))
        return 0
    devices = select(project.fabric, asked.limit)
    scene = scene_of(project, devices, _snapshot(project, devices, checks, asked))
    judged = judged_of(scene, checks)
    sys.stdout.write(FORMATS[asked.output](judged))
    return judged.exit_code


def _refuse(asked: Asked) -> None:
    if asked.output not in FORMATS:
        raise UsageError(Problem(f"no output format {asked.output!r}", f"use one of {', '.join(FORMATS)}"))
    if asked.profile not in PROFILES:
        raise UsageError(Problem(f"no profile {asked.profile!r}", f"use {' or '.join(PROFILES)}"))
    if asked.snapshot is not None and asked.lab:
        raise UsageError(Problem("--lab and --from are two places to read from", "choose one"))


def _snapshot(project: Project, devices: Sequence[Device], checks: Sequence[Check], asked: Asked) -> Snapshot:
    if asked.snapshot is not None:
        return _of_file(project, asked.snapshot)
    has_drift = any(check.name.startswith(f"{DRIFT}.") for check in checks)
    window_s = asked.window_s if any(check.has_window for check in checks) else 0.0
    options = Options(window_s=window_s, has_config=has_drift)
    looking = Looking(devices, options, is_light=asked.profile == "light")
    return look(project, fleet(project, asked.lab), looking)


def _of_file(project: Project, file: Path) -> Snapshot:
    found = serial.read(file)
    if found.fabric != project.fabric.name:
        what = f"is of the fabric {found.fabric}, not of {project.fabric.name}"
        raise CheckError(Problem(what, "name its fabric with --fabric", file=str(file)))
    return found


def scene_of(project: Project, devices: Sequence[Device], snapshot: Snapshot) -> Scene:
    """Return what checks are given."""
    return Scene(
        project.fabric,
        snapshot,
        project.loaded.intent.thresholds,
        names=frozenset(device.name for device in devices),
        plan=planning.read(snapshot.plan) if snapshot.plan else None,
    )


def judged_of(scene: Scene, checks: Sequence[Check]) -> Judged:
    """Return what checks say about a scene, with what the process ends with."""
    found = judge(scene, checks)
    window_s = max((seen.window_s for seen in scene.devices.values()), default=0.0)
    judged = Judged(
        scene.fabric.name,
        len(scene.devices),
        window_s,
        scene.snapshot.taken_s,
        found,
        {check.name: check.layer for check in checks},
    )
    return replace(judged, exit_code=exit_code(found))


def exit_code(found: Judgement) -> int:
    """Return what a judgement ends with: a warning is no failure, and what nobody judged is no pass."""
    is_bad = found.verdict >= Verdict.FAIL or not found.examined
    return weightiest(FAILED if is_bad else 0, UNREACHED if found.unreached else 0)

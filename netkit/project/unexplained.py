"""What a plan cannot explain: paths that netkit would remove, and that nothing it knows of has put there."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from netkit.deploy.resume import deployed
from netkit.errors import NetkitError
from netkit.lab.folder import lab_folder
from netkit.plan import DevicePlan, Plan
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Path as ConfigPath
from netkit.project.against import at_revision
from netkit.project.project import Project
from netkit.project.rendering import quietly
from netkit.project.revision import commits_of
from netkit.project.runs import runs_folder
from netkit.render import Engine

MOST_COMMITS = 20
"""The most commits of a fabric that are rendered."""


def explained(project: Project, plan: Plan) -> Plan:
    """Drop from the unexplained what runs on this machine or the fabric's git history explain."""
    if project.lab and lab_folder(project.lab).record().get("is_rendered"):
        return _without(plan, {device.name: set(device.unexplained) for device in plan.unexplained})
    names = {device.name for device in plan.unexplained}
    known = deployed(runs_folder(project.fabric.name, project.lab), names)
    plan = _without(plan, {device.name: set(device.unexplained) for device in plan.devices if device.name in known})
    for commit in commits_of(project.folder, MOST_COMMITS) if plan.unexplained else ():
        if not plan.unexplained:
            break
        with suppress(NetkitError):  # an intent that was invalid rendered nothing
            plan = _without(plan, dict(_of_commit(project, plan, commit)))
    return plan


def _of_commit(project: Project, plan: Plan, commit: str) -> Iterator[tuple[str, set[ConfigPath]]]:
    """Yield for each device what its files at a commit had of the unexplained."""
    with at_revision(project, commit) as (base, _):
        devices = {one.name: base.fabric.device(one.name) for one in plan.unexplained}
        known = [device for device in devices.values() if device is not None]
        rendered = quietly(base, known, Engine(base.template_folders))
        for planned in plan.unexplained:
            device = devices[planned.name]
            if device is not None and device.platform == planned.platform:
                model = MODELS[planned.platform]
                files = {name: text for name, text in rendered[planned.name].items() if model.reads(name)}
                yield planned.name, set(_had(planned, set(model.parse(files))))


def _had(planned: DevicePlan, rendered: set[ConfigPath]) -> Iterator[ConfigPath]:
    """Yield the unexplained paths of which everything that goes was rendered."""
    gone = [change.path for change in planned.changes if change.is_removal]
    for path in planned.unexplained:
        if all(one in rendered for one in gone if one[: len(path)] == path):
            yield path


def _without(plan: Plan, explained_paths: dict[str, set[ConfigPath]]) -> Plan:
    def device(one: DevicePlan) -> DevicePlan:
        paths = explained_paths.get(one.name)
        return replace(one, unexplained=tuple(path for path in one.unexplained if path not in paths)) if paths else one

    return replace(plan, devices=tuple(map(device, plan.devices)))

"""The fabric as the intent defines it compared with a revision: both are rendered, no device is read."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from netkit import __version__
from netkit.design import Fabric, Switch
from netkit.design.clusters import KINDS
from netkit.design.numbering import renumbered
from netkit.design.select import Device, select
from netkit.errors import NetkitError, Problem, dotted
from netkit.plan import Plan, Running
from netkit.plan.cluster_diff import ClusterDiff, compare_cluster, nodes_of
from netkit.plan.intent_diff import IntentDiff, UnmatchedDevice
from netkit.platforms.ownership import shipped_templates
from netkit.project import comparing
from netkit.project.comparing import Sides, Work
from netkit.project.processes import Names
from netkit.project.project import Project
from netkit.project.rendering import cluster_files, quietly
from netkit.project.revision import Revision, revision
from netkit.render import Engine, inputs
from netkit.render.output import Artifact

RUNNING = "running"


def of_running(plan: Plan) -> IntentDiff:
    """Show a plan for devices as a diff; an unchanged device is listed only for its warnings."""
    notable = tuple(device for device in plan.devices if device.changes or device.warnings or device.not_read)
    return IntentDiff(RUNNING, replace(plan, devices=notable), len(plan.devices) - len(plan.changed))


def of_revision(project: Project, limit: str, name: str) -> IntentDiff:
    """Compare a revision with the current folder."""
    with at_revision(project, name) as (base, shown):
        return between(base, project, limit, shown)


@contextmanager
def at_revision(project: Project, name: str) -> Iterator[tuple[Project, str]]:
    """Yield the fabric at a revision, and the name to show for it."""
    with revision(project.folder, name) as base:
        if base.folder is None:  # the fabric did not exist yet: everything in it is new
            yield replace(project, fabric=_frame(project.fabric)), str(base)
        else:
            yield _opened(base, base.folder), str(base)


def between(base: Project, project: Project, limit: str, name: str) -> IntentDiff:
    """Compare two states of a fabric; `name` labels the earlier one."""
    return _Pair(base, project).compare(name, select(project.fabric, limit))


def _opened(base: Revision, folder: Path) -> Project:
    try:
        return Project.open(folder, workplace=base.workplace)
    except NetkitError as error:
        remedy = "compare with a revision that netkit validate accepts"
        first = error.problems[0]
        message = ": ".join(part for part in (dotted(first.path), first.message) if part)
        raise type(error)(Problem(f"at {base} the intent is invalid: {message}", remedy)) from None


class _Pair:
    """A fabric at two points in time."""

    def __init__(self, base: Project, project: Project) -> None:
        self.base, self.project = base, project
        self._inputs_before, self._inputs = inputs(base.fabric), inputs(project.fabric)
        templates = _templates(project)
        self._has_same_templates = _templates(base) == templates
        self._has_own_templates = bool(templates)
        self._has_same_frame = _frame(base.fabric) == _frame(project.fabric)

    def compare(self, name: str, devices: Sequence[Device]) -> IntentDiff:
        """Compare some devices of the later fabric, and list those that the earlier one had and this one lacks."""
        both = [device for device in devices if self._before(device)]
        new = [device for device in devices if not self._before(device)]
        plan = self._plan(tuple(device.name for device in both if self._differs(device)))
        before, after = self.base.fabric, self.project.fabric
        is_whole = len(devices) == len(after.names)
        known: tuple[Device, ...] = (*before.switches, *before.hosts)
        gone = [device for device in known if is_whole and after.device(device.name) is None]
        return IntentDiff(
            base=name,
            # Rendered files contain only netkit's configuration.
            plan=replace(plan, devices=tuple(replace(device, unowned=0, left=()) for device in plan.changed)),
            same=len(both) - len(plan.changed),
            added=tuple(_unmatched(device, before.device(device.name)) for device in new),
            removed=tuple(map(_unmatched, gone)),
            moved=renumbered(before, after),
            warnings=tuple(self._warnings()),
            clusters=tuple(self._clusters()) if is_whole else (),
        )

    def _clusters(self) -> Iterator[ClusterDiff]:
        before, after = cluster_files(self.base), cluster_files(self.project)
        for kind in KINDS:
            nodes = [nodes_of(project.fabric.clusters, kind) for project in (self.base, self.project)]
            found = compare_cluster(kind, before.get(kind, {}), after.get(kind, {}), *nodes)
            if found:
                yield found

    def _before(self, device: Device) -> Device | None:
        """The device as it was; one of another NOS counts as another device."""
        known = self.base.fabric.device(device.name)
        return known if known is not None and known.platform == device.platform else None

    def _differs(self, device: Device) -> bool:
        """Report whether the inputs of its templates differ.

        With the user's own templates every device is rendered: they may read other devices, netkit's own never do.
        """
        known = self._before(device)
        if known is None or not self._has_same_frame or not self._has_same_templates or self._has_own_templates:
            return True
        pairs = zip_longest(self._inputs_before(known), self._inputs(device))
        return any(before is None or after is None or _input(before) != _input(after) for before, after in pairs)

    def _plan(self, names: Names) -> Plan:
        before, after = Engine(self.base.template_folders), Engine(self.project.template_folders)

        def sides(names: Names) -> Sides:
            old, new = _named(self.base, names), _named(self.project, names)
            files = quietly(self.base, old, before)
            versions = {device.name: device.version if isinstance(device, Switch) else "" for device in old}
            running = {name: Running(files[name], versions[name]) for name in names}
            return running, quietly(self.project, new, after)

        if not names:
            return Plan(self.project.fabric.name, (), (), (), __version__)
        return comparing.make(
            Work(self.project.fabric, names, sides, {}, before=(self.base.fabric,), feedback=self.project.feedback)
        )

    def _warnings(self) -> Iterator[Problem]:
        known = {(note.message, note.remedy) for note in self.base.fabric.notes}
        for note in self.project.fabric.notes:
            if note.severity == "warning" and (note.message, note.remedy) not in known:
                yield self.project.loaded.places.locate(note)


def _frame(fabric: Fabric) -> Fabric:
    return replace(fabric, switches=(), hosts=(), clusters=(), notes=())


def _input(artifact: Artifact) -> tuple[str, str, Mapping[str, Any]]:
    """The input of a template without the fabric, which is compared once for all."""
    return artifact.file, artifact.template, {**artifact.context, "fabric": None}


def _templates(project: Project) -> dict[str, bytes | None]:
    """The user's own templates by name; an earlier folder takes precedence over a later one.

    A copy that equals netkit's own template does not count.
    """
    shipped = shipped_templates()
    found: dict[str, bytes | None] = {}
    for folder in reversed(project.template_folders):
        for file in sorted(_files(folder)):
            found[str(file.relative_to(folder))] = _content(file)
    return {name: content for name, content in found.items() if content != _content(shipped / name)}


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder as Jinja finds them: it follows symbolic links, which may form a loop."""
    for place, folders, names in os.walk(folder, followlinks=True):
        above = {os.path.realpath(parent) for parent in Path(place).parents}
        if os.path.realpath(place) in above:
            folders.clear()
        else:
            yield from (Path(place, name) for name in names if Path(place, name).is_file())


def _content(file: Path) -> bytes | None:
    """Read a file; None when it is missing or unreadable."""
    try:
        return file.read_bytes()
    except OSError:
        return None


def _named(project: Project, names: Names) -> list[Device]:
    found = [project.fabric.device(name) for name in names]
    return [device for device in found if device is not None]


def _unmatched(device: Device, before: Device | None = None) -> UnmatchedDevice:
    role = device.role if isinstance(device, Switch) else "host"
    return UnmatchedDevice(device.name, role, device.platform, "" if before is None else before.platform)

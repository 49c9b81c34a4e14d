"""The fabric as the intent has it against the fabric as it was at a revision: both rendered, no device asked."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from netkit import __version__
from netkit.design import Fabric, Switch
from netkit.design.renumbering import renumbered
from netkit.design.select import Device, select
from netkit.errors import NetkitError, Problem, dotted
from netkit.plan import Plan, Running
from netkit.plan.intent_diff import IntentDiff, UnmatchedDevice
from netkit.platforms.ownership import shipped_templates
from netkit.project import cores
from netkit.project.cores import Names, Sides, Work
from netkit.project.project import Project
from netkit.project.rendering import quietly
from netkit.project.revision import Revision, revision
from netkit.render import Engine, inputs
from netkit.render.artifact import Artifact

RUNNING = "running"


def of_running(plan: Plan) -> IntentDiff:
    """Return a plan of devices in the same shape; of one that stays as it is, only what there is to say of it."""
    told = tuple(device for device in plan.devices if device.changes or device.warnings or device.not_read)
    return IntentDiff(RUNNING, replace(plan, devices=told), len(plan.devices) - len(plan.changed))


def of_revision(project: Project, limit: str, name: str) -> IntentDiff:
    """Return what changes between a revision and the folder as it is."""
    with at_revision(project, name) as (base, shown):
        return between(base, project, limit, shown)


@contextmanager
def at_revision(project: Project, name: str) -> Iterator[tuple[Project, str]]:
    """Yield a fabric as it was at a revision, and how that is called."""
    with revision(project.folder, name) as base:
        yield _opened(base) if base.folder is not None else _without_devices(project), str(base)


def between(base: Project, project: Project, limit: str, name: str) -> IntentDiff:
    """Return what changes between two times of a fabric; the earlier one has a name."""
    return _Pair(base, project).shift(name, select(project.fabric, limit))


def _without_devices(project: Project) -> Project:
    """Return a project as it is before the first device: everything of it is new."""
    return replace(project, fabric=_frame(project.fabric))


def _opened(base: Revision) -> Project:
    try:
        return Project.open(base.folder or Path(), workplace=base.workplace)
    except NetkitError as error:
        remedy = "compare with a revision that netkit validate accepts"
        first = error.problems[0]
        said = ": ".join(part for part in (dotted(first.path), first.message) if part)
        problem = Problem(f"at {base} the intent is refused: {said}", remedy)
        raise type(error)(problem) from None


class _Pair:
    """A fabric at two times."""

    def __init__(self, base: Project, project: Project) -> None:
        self.base, self.project = base, project
        self._inputs_before, self._inputs = inputs(base.fabric), inputs(project.fabric)
        templates = _templates(project)
        self._has_same_templates = _templates(base) == templates
        self._is_own = bool(templates)
        self._has_same_frame = _frame(base.fabric) == _frame(project.fabric)

    def shift(self, name: str, devices: Sequence[Device]) -> IntentDiff:
        """Return what changes for some devices of the later fabric, and which of the earlier one are gone."""
        both = [device for device in devices if self._was(device)]
        plan = self._plan(tuple(device.name for device in both if self._differs(device)))
        is_whole = len(devices) == len(self.project.fabric.names)
        gone = [one for one in _devices(self.base) if is_whole and self.project.fabric.device(one.name) is None]
        return IntentDiff(
            base=name,
            plan=replace(plan, devices=plan.changed),
            same=len(both) - len(plan.changed),
            added=tuple(self._added(device) for device in devices if not self._was(device)),
            removed=tuple(map(_newcomer, gone)),
            moved=renumbered(self.base.fabric, self.project.fabric),
            warnings=tuple(self._warnings()),
        )

    def _added(self, device: Device) -> UnmatchedDevice:
        known = self.base.fabric.device(device.name)
        return _newcomer(device, was="" if known is None else _platform(known))

    def _was(self, device: Device) -> Device | None:
        """Return the device as it was; one of another NOS is another device."""
        known = self.base.fabric.device(device.name)
        return known if known is not None and _platform(known) == _platform(device) else None

    def _differs(self, device: Device) -> bool:
        """Whether its templates are given something else; where templates of the user's own are, rendering has to tell.

        Those that come with netkit never look at another device.
        """
        known = self._was(device)
        if known is None or not self._has_same_frame or not self._has_same_templates or self._is_own:
            return True
        pairs = zip_longest(self._inputs_before(known), self._inputs(device))
        return any(before is None or after is None or _given(before) != _given(after) for before, after in pairs)

    def _plan(self, names: Names) -> Plan:
        before, after = Engine(self.base.template_folders), Engine(self.project.template_folders)

        def sides(names: Names) -> Sides:
            running = quietly(self.base, _named(self.base, names), before)
            intended = quietly(self.project, _named(self.project, names), after)
            return {name: Running(running[name], _version(self.base, name)) for name in names}, intended

        if not names:
            return Plan(self.project.fabric.name, (), (), (), __version__)
        return cores.make(
            Work(self.project.fabric, names, sides, {}, before=(self.base.fabric,), feedback=self.project.feedback)
        )

    def _warnings(self) -> Iterator[Problem]:
        known = {(note.message, note.remedy) for note in self.base.fabric.notes}
        for note in self.project.fabric.notes:
            if note.severity == "warning" and (note.message, note.remedy) not in known:
                yield self.project.loaded.places.locate(note)


def _frame(fabric: Fabric) -> Fabric:
    """Return a fabric without its devices."""
    return replace(fabric, switches=(), hosts=(), notes=())


def _given(artifact: Artifact) -> tuple[str, str, Mapping[str, Any]]:
    """Return what a template is given, but for the fabric, which is compared once for all."""
    return artifact.file, artifact.template, {**artifact.context, "fabric": None}


def _templates(project: Project) -> dict[str, bytes | None]:
    """Return the user's own templates by name: those of an earlier folder hide those of the same name behind it.

    One that says what netkit's own says is not the user's.
    """
    shipped = shipped_templates()
    found: dict[str, bytes | None] = {}
    for folder in reversed(project.template_folders):
        for file in sorted(_files(folder)):
            found[str(file.relative_to(folder))] = _content(file)
    return {name: content for name, content in found.items() if content != _content(shipped / name)}


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, as Jinja finds them: behind links too, of which some lead in a circle."""
    for place, folders, names in os.walk(folder, followlinks=True):
        above = {os.path.realpath(parent) for parent in Path(place).parents}
        if os.path.realpath(place) in above:
            folders.clear()
        else:
            yield from (Path(place, name) for name in names if Path(place, name).is_file())


def _content(file: Path) -> bytes | None:
    """Return what a file says; None of one that is not there, or not to be read."""
    try:
        return file.read_bytes()
    except OSError:
        return None


def _devices(project: Project) -> Sequence[Device]:
    return (*project.fabric.switches, *project.fabric.hosts)


def _named(project: Project, names: Names) -> list[Device]:
    found = [project.fabric.device(name) for name in names]
    return [device for device in found if device is not None]


def _version(project: Project, name: str) -> str:
    device = project.fabric.device(name)
    return device.version if isinstance(device, Switch) else ""


def _platform(device: Device) -> str:
    return device.platform


def _newcomer(device: Device, was: str = "") -> UnmatchedDevice:
    return UnmatchedDevice(device.name, device.role if isinstance(device, Switch) else "host", _platform(device), was)

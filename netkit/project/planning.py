"""The plan of `netkit plan` and `netkit deploy`: renders, reads, and skips pairs already compared equal."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from netkit import plan as planning
from netkit.design.select import Device, select
from netkit.errors import ConfigError, PlanError, Problem, UsageError
from netkit.plan import DevicePlan, Plan, Running, Unreachable, UnreadDevice, serial
from netkit.plan.model import Step
from netkit.platforms import HOSTS
from netkit.platforms.backup import separated
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Files
from netkit.private import read_text
from netkit.project import comparing
from netkit.project.comparing import Read, Sides, Work
from netkit.project.processes import Names
from netkit.project.project import Project
from netkit.project.rendering import intended, quietly
from netkit.render import Engine
from netkit.report.plan_view import listed

if TYPE_CHECKING:
    from netkit.deploy import Options
    from netkit.project.connections import Connections


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the files it leads to."""

    plan: Plan
    intended: Mapping[str, Files]


def taking_over(planned: Planned, options: "Options") -> Planned:
    """A plan that removes what is unexplained, if the options allow it; a plan that does stays one."""
    if not options.is_taking_over:
        return planned
    return replace(planned, plan=replace(planned.plan, is_taking_over=True))


def strays(project: Project, plan: Plan) -> Iterator[Problem]:
    """Warn of paths of `leave` and `own` that match nothing on the devices they name, if all of these were read."""
    known = {device.name: device.unmatched for device in plan.devices if not device.not_read}
    fabric = project.fabric
    for key, rules in (("leave", fabric.leave), ("own", fabric.own)):
        for index, rule in enumerate(rules):
            names = fabric.names if rule.devices is None else rule.devices
            if all(name in known and rule.path in known[name] for name in names):
                where = "any device" if rule.devices is None else listed(sorted(names))
                what = f"{rule.path} matches nothing on {where}"
                problem = Problem(
                    what, "check its spelling: netkit backup shows the running configuration", (key, index)
                )
                yield project.loaded.places.locate(replace(problem, severity="warning"))


def cache_folder() -> Path:
    """The folder of files that can be deleted at any time."""
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home, "netkit") if home else Path.home() / ".cache" / "netkit"


def planned(project: Project, limit: str, running: Path | None) -> Planned:
    """Plan a fabric, from its devices or from saved configurations."""
    if running is not None:
        plan = from_files(project, limit, running)
        return Planned(plan, intended(project, select(project.fabric, limit)))
    from netkit.project.connections import Connections  # noqa: PLC0415 (as in from_devices)

    return from_devices(project, limit, Connections.of(project))


def from_files(project: Project, limit: str, folder: Path) -> Plan:
    """Plan from saved running configurations."""
    devices = {device.name: device for device in select(project.fabric, limit)}
    check_saved(folder, devices)
    engine = Engine(project.template_folders)

    def sides(names: Names) -> Sides:
        return saved(folder, names), quietly(project, [devices[name] for name in names], engine)

    return _made(project, tuple(devices), sides)


def from_devices(
    project: Project, limit: str, devices: "Connections", *, here: Collection[str] | None = None
) -> Planned:
    """Plan from what the devices run now.

    `here` are the devices that can be reached from here, by default all. The order takes the others as they are
    intended, and those that could not be read as the last run left them.
    """
    # Drivers, SSH and journals are slow to import, and files need none of them.
    from netkit.deploy.resume import last_known  # noqa: PLC0415 (see above)
    from netkit.project.reading import read  # noqa: PLC0415 (see above)
    from netkit.project.runs import runs_folder  # noqa: PLC0415 (see above)

    files = intended(project, select(project.fabric, limit))
    found = read(devices, tuple(files), project.feedback, project.processes)
    reachable = [one for one in select(project.fabric, "") if here is None or one.name in here]

    assumed: dict[str, Running] = {}

    def others() -> tuple[Plan, Callable[[str], planning.Sides]]:
        rest = intended(project, [one for one in reachable if limit and one.name not in files])
        there: dict[str, Running | Unreachable] = {
            name: one for name, one in found.items() if isinstance(one, Unreachable)
        }
        there |= read(devices, tuple(rest), project.feedback, project.processes) if rest else {}
        missed = {name: one.reason for name, one in there.items() if isinstance(one, Unreachable)}
        assumed.update(last_known(runs_folder(project.fabric.name, project.lab), missed))
        there |= assumed
        wanted = {name: rest.get(name, files.get(name, {})) for name in there}
        part = compared(project, there, wanted, is_part=True)
        unread = (*part.unreachable, *(UnreadDevice(name, missed[name]) for name in assumed))
        return replace(part, unreachable=unread), planning.sides_of(there, wanted)

    plan = compared(project, found, files, others=others)
    missed = (
        replace(one, reason=f"{one.reason}; the order takes it as the last run left it") if one.name in assumed else one
        for one in plan.unreachable
    )
    return Planned(replace(plan, unreachable=tuple(missed)), files)


def plan_of_file(project: Project, file: Path) -> Planned:
    """Read a plan from a file, and render its devices as they are intended now."""
    try:
        plan = planning.read(read_text(file, "replace"), str(file))
    except OSError as error:
        raise UsageError(Problem(f"{file} cannot be read: {error.strerror}", "netkit plan -o FILE")) from None
    if plan.fabric != project.fabric.name:
        what = f"{file} is a plan of fabric {plan.fabric}, not of {project.fabric.name}"
        raise PlanError(Problem(what, "make the plan again"))
    names = {device.name for device in plan.devices}
    return Planned(plan, intended(project, [one for one in select(project.fabric, "") if one.name in names]))


def as_now(whole: Plan, now: Plan, names: Collection[str]) -> tuple[Plan, Plan]:
    """A plan of a file with these devices as a plan made now has them, and the same as it was approved.

    Risks and losses decide whether a deploy is allowed, and who has to approve it: they are not taken from a file.
    A device that changed since keeps what the file says, and changes last: its deploy refuses it with the difference.
    """
    found = {one.name: one for one in now.devices}
    if not found:  # nothing will change
        return whole, whole
    devices: list[DevicePlan] = []
    moved: list[str] = []
    for was in whole.devices:
        one = found.get(was.name) if was.name in names else was
        if one is None:
            continue
        is_other = (one.running_digest, one.intended_digest) != (was.running_digest, was.intended_digest)
        if is_other and not one.is_unchanged:
            moved.append(was.name)
        elif not is_other and _what_is_done(one) != _what_is_done(was):
            what = f"{was.name}: its change is not what the plan says: it was edited, or made by another netkit"
            raise PlanError(Problem(what, "make the plan again"))
        devices.append(was if was.name in moved else one)
    is_whole = {one.name for one in whole.changed} == {*names} <= found.keys() and not moved
    for lost, said in ((now.worst, whole.worst), (now.gone, whole.gone)) if is_whole else ():
        if lost.pairs > said.pairs:
            what = f"{lost.pairs} pairs of NICs of {listed(lost.hosts)}{lost.family}"
            raise PlanError(Problem(f"this loses what the plan does not say: {what}", "make the plan again"))
    kept = [replace(step, devices=tuple(name for name in step.devices if name not in moved)) for step in now.steps]
    kept += [Step(len(kept) + 1, tuple(moved))]
    order = replace(
        whole,
        steps=tuple(step for step in kept if step.devices),
        bridges=tuple(bridge for bridge in now.bridges if bridge.device not in moved),
        gone=now.gone,
        has_routing=now.has_routing,
        partial=now.partial,
        unknown=now.unknown,
    )
    return replace(order, devices=tuple(devices), unreachable=(*now.unreachable, *whole.unreachable)), order


def _what_is_done(device: DevicePlan) -> tuple[object, ...]:
    return device.changes, device.risk, device.way, device.blast


def compared(
    project: Project,
    found: Read,
    files: Mapping[str, Files],
    *,
    others: planning.Others | None = None,
    is_part: bool = False,
) -> Plan:
    """Compare running with intended configurations.

    A device whose configuration cannot be parsed counts as unreachable; the others are planned as usual.
    """

    def sides(names: Names) -> Sides:
        return {name: running[name] for name in names if name in running}, {name: files[name] for name in names}

    running = found
    try:
        return _made(project, tuple(files), sides, others, is_part=is_part)
    except ConfigError:
        running = {name: _parsed(project.fabric.device(name), one) for name, one in found.items()}
        return _made(project, tuple(files), sides, others, is_part=is_part)


def _made(
    project: Project,
    names: Names,
    sides: Callable[[Names], Sides],
    others: planning.Others | None = None,
    *,
    is_part: bool = False,
) -> Plan:
    folder = cache_folder()
    known = serial.load(folder)
    before = len(known)
    work = Work(
        project.fabric,
        names,
        sides,
        known,
        others=others,
        is_part=is_part,
        explain=not is_part,
        feedback=project.feedback,
        processes=project.processes,
    )
    plan = comparing.make(work)
    if len(known) > before:
        serial.save(folder, known)
    if not is_part:
        plan = replace(plan, warnings=tuple(map(str, strays(project, plan))))
    if not plan.unexplained:
        return plan
    from netkit.project.unexplained import explained  # noqa: PLC0415 (few plans need it, and it is slow to import)

    return explained(project, plan)


def _parsed(device: Device | None, running: Running | Unreachable) -> Running | Unreachable:
    """The configuration of a device, or Unreachable if it cannot be parsed."""
    if isinstance(running, Unreachable):
        return running
    model = MODELS[device.platform if device is not None else HOSTS]
    try:
        model.parse({name: text for name, text in running.files.items() if text is not None and model.reads(name)})
    except ConfigError as error:
        return Unreachable(f"its running configuration cannot be parsed: {error.problems[0]}")
    return running


def check_saved(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder that has nothing of any of the devices."""
    if not folder.is_dir():
        raise UsageError(Problem(f"{folder} is not a folder", "--running takes DIR/<device>/<file>, as render writes"))
    if not any(_files(folder / name) or _backup(folder, name).is_file() for name in names):
        raise UsageError(Problem(f"{folder} has no file of any of these devices", "save them as DIR/<device>/<file>"))


def saved(folder: Path, names: Iterable[str]) -> Mapping[str, Running | Unreachable]:
    """Read the saved configurations of some devices; one without files counts as unreachable."""
    return {name: _device(folder, name) for name in names}


def _device(folder: Path, name: str) -> Running | Unreachable:
    files: dict[str, str | None] = {file.name: _text(file) for file in _files(folder / name)}
    if not files and _backup(folder, name).is_file():
        files = separated(_text(_backup(folder, name)))
    return Running(files) if files else Unreachable(f"no files in {folder / name}")


def _backup(folder: Path, name: str) -> Path:
    return folder / f"{name}.conf"


def _files(folder: Path) -> list[Path]:
    try:
        return [file for file in sorted(folder.iterdir()) if file.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(Problem("is not UTF-8", "save it again as UTF-8", file=str(file), line=line)) from None

"""A plan as `netkit plan` and `netkit deploy` make it: rendered now, read now, unchanged pairs remembered."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from netkit import plan as planning
from netkit.design.select import Device, select
from netkit.errors import ConfigError, PlanError, Problem, UsageError
from netkit.plan import Plan, Running, Unreachable, cache
from netkit.platforms import HOSTS
from netkit.platforms.backup import separated
from netkit.platforms.compare import MODELS
from netkit.platforms.config import Files
from netkit.project import cores
from netkit.project.cores import Names, Read, Sides, Work
from netkit.project.project import Project
from netkit.project.rendering import intended, quietly
from netkit.render import Engine

if TYPE_CHECKING:
    from netkit.project.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the files it leads to."""

    plan: Plan
    intended: Mapping[str, Files]


def cache_folder() -> Path:
    """Return where netkit keeps what it can do without."""
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home, "netkit") if home else Path.home() / ".cache" / "netkit"


def planned(project: Project, limit: str, running: Path | None) -> Planned:
    """Return the plan of a fabric and its files, from devices or from what was saved of them."""
    if running is not None:
        plan = from_files(project, limit, running)
        return Planned(plan, intended(project, select(project.fabric, limit)))
    from netkit.project.fleet import fleet  # noqa: PLC0415 (as in from_devices)

    return from_devices(project, limit, fleet(project))


def from_files(project: Project, limit: str, folder: Path) -> Plan:
    """Return the plan for devices whose running configuration was saved."""
    devices = {device.name: device for device in select(project.fabric, limit)}
    check_saved(folder, devices)
    engine = Engine(project.template_folders)

    def sides(names: Names) -> Sides:
        return saved(folder, names), quietly(project, [devices[name] for name in names], engine)

    return _made(project, tuple(devices), sides)


def from_devices(project: Project, limit: str, devices: "Fleet") -> Planned:
    """Return the plan for devices as they are."""
    from netkit.project.reading import read  # noqa: PLC0415 (drivers and SSH are slow to import, and files need neither)

    files = intended(project, select(project.fabric, limit))
    found = read(devices, tuple(files), project.feedback)

    def others() -> Plan:
        rest = intended(project, [one for one in select(project.fabric, "") if one.name not in files])
        return compared(project, read(devices, tuple(rest), project.feedback), rest, is_part=True)

    return Planned(compared(project, found, files, others=others if limit else None), files)


def plan_of_file(project: Project, file: Path) -> Planned:
    """Return the plan a file holds, with what its devices are intended to run now."""
    try:
        plan = planning.read(file.read_text(encoding="utf-8", errors="replace"), str(file))
    except OSError as error:
        raise UsageError(Problem(f"{file} cannot be read: {error.strerror}", "netkit plan -o FILE")) from None
    if plan.fabric != project.fabric.name:
        raise PlanError(Problem(f"{file} is of fabric {plan.fabric}, not {project.fabric.name}", "make the plan again"))
    names = {device.name for device in plan.devices}
    return Planned(plan, intended(project, [one for one in select(project.fabric, "") if one.name in names]))


def compared(
    project: Project,
    found: Read,
    files: Mapping[str, Files],
    *,
    others: Callable[[], Plan] | None = None,
    is_part: bool = False,
) -> Plan:
    """Return what differs between what devices run and what is intended.

    Of a device whose answers make no sense nothing is known; the others are none the worse for it.
    """
    try:
        return _made(project, tuple(files), _known_sides(found, files), others, is_part=is_part)
    except ConfigError:
        sides = _known_sides(_legible(project, found), files)
        return _made(project, tuple(files), sides, others, is_part=is_part)


def _known_sides(found: Read, files: Mapping[str, Files]) -> Callable[[Names], Sides]:
    def sides(names: Names) -> Sides:
        return {name: found[name] for name in names if name in found}, {name: files[name] for name in names}

    return sides


def _made(
    project: Project,
    names: Names,
    sides: Callable[[Names], Sides],
    others: Callable[[], Plan] | None = None,
    *,
    is_part: bool = False,
) -> Plan:
    folder = cache_folder()
    known = cache.load(folder)
    before = len(known)
    work = Work(project.fabric, names, sides, known, others=others, is_part=is_part, feedback=project.feedback)
    plan = cores.make(work)
    if len(known) > before:
        cache.save(folder, known)
    return plan


def _legible(project: Project, found: Read) -> Read:
    """Return what was read, with devices whose answers make no sense among those that could not be read."""
    return {name: _judged(project.fabric.device(name), one) for name, one in found.items()}


def _judged(device: Device | None, one: Running | Unreachable) -> Running | Unreachable:
    if isinstance(one, Unreachable):
        return one
    model = MODELS[device.platform if device is not None else HOSTS]
    try:
        model.parse({name: text for name, text in one.files.items() if text is not None and model.reads(name)})
    except ConfigError as error:
        return Unreachable(f"what it says it runs cannot be read: {error.problems[0]}")
    return one


def check_saved(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder in which nothing was saved of any of some devices."""
    if not folder.is_dir():
        raise UsageError(Problem(f"{folder} is not a folder", "--running takes DIR/<device>/<file>, as render writes"))
    if not any(_files(folder / name) or _backup(folder, name).is_file() for name in names):
        raise UsageError(Problem(f"{folder} has no files of any of these devices", "save them as DIR/<device>/<file>"))


def saved(folder: Path, names: Iterable[str]) -> Mapping[str, Running | Unreachable]:
    """Return what was saved of some devices; one without files is as unknown as one that does not answer."""
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
    except UnicodeDecodeError:
        raise ConfigError(Problem("is not text", "save it again", file=str(file))) from None

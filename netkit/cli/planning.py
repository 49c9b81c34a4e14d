"""A plan as `netkit plan` and `netkit deploy` make it: rendered now, read now, unchanged pairs remembered."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from netkit.cli import cores
from netkit.cli.cores import Work
from netkit.cli.fabric import Project
from netkit.cli.intended import intended
from netkit.cli.saved import saved
from netkit.design import Switch
from netkit.design.select import Device, select
from netkit.errors import ConfigError
from netkit.plan import Plan, Running, Unreachable, cache
from netkit.platforms.config import Files
from netkit.platforms.models import MODELS

if TYPE_CHECKING:
    from netkit.cli.fleet import Fleet

Read = Mapping[str, Running | Unreachable]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the files it leads to."""

    plan: Plan
    intended: Mapping[str, Files]


def cache_folder() -> Path:
    """Return where netkit keeps what it can do without."""
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(home, "netkit") if home else Path.home() / ".cache" / "netkit"


def from_files(project: Project, limit: str, folder: Path) -> Planned:
    """Return the plan for devices whose running configuration was saved."""
    files = intended(project, select(project.fabric, limit))
    return Planned(_made(project, saved(folder, files), files), files)


def from_devices(project: Project, limit: str, devices: "Fleet") -> Planned:
    """Return the plan for devices as they are."""
    from netkit.cli.reading import read  # noqa: PLC0415 (drivers and SSH are slow to import, and files need neither)

    files = intended(project, select(project.fabric, limit))
    found = read(devices, tuple(files))
    try:
        return Planned(_made(project, found, files), files)
    except ConfigError:
        return Planned(_made(project, _legible(project, found), files), files)


def _made(project: Project, found: Read, files: Mapping[str, Files]) -> Plan:
    folder = cache_folder()
    known = cache.load(folder)
    before = len(known)
    plan = cores.make(Work(project.fabric, found, files, known))
    if len(known) > before:
        cache.save(folder, known)
    return plan


def _legible(project: Project, found: Read) -> Read:
    """Return what was read, with devices whose answers make no sense among those that could not be read."""
    return {name: _judged(project.fabric.device(name), one) for name, one in found.items()}


def _judged(device: Device | None, one: Running | Unreachable) -> Running | Unreachable:
    if isinstance(one, Unreachable):
        return one
    model = MODELS[device.platform if isinstance(device, Switch) else "linux"]
    try:
        model.parse({name: text for name, text in one.files.items() if text is not None and model.reads(name)})
    except ConfigError as error:
        return Unreachable(f"what it says it runs cannot be read: {error.problems[0]}")
    return one

"""What each device should run, rendered now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from netkit.cli.bounds import bounded, each_in_time
from netkit.cli.fabric import Project
from netkit.cli.terminal.progress import progress
from netkit.design.select import Device
from netkit.platforms.config import Files
from netkit.render import Engine, render


def intended(project: Project, devices: Sequence[Device]) -> Mapping[str, Files]:
    """Return the intended files of some devices, and show how far that is."""
    with progress("rendering", len(devices)) as shown:
        return dict(shown(_rendered(project, devices, Engine(project.template_folders))))


def quietly(project: Project, devices: Iterable[Device], engine: Engine) -> Mapping[str, Files]:
    """Return the intended files of some devices; whoever goes through many has one engine for all."""
    return dict(_rendered(project, devices, engine))


def _rendered(project: Project, devices: Iterable[Device], engine: Engine) -> Iterator[tuple[str, Files]]:
    with bounded():
        for one in each_in_time(render(project.fabric, devices, engine)):
            yield one.device, one.files

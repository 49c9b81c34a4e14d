"""What each device should run, rendered now."""

from collections.abc import Mapping, Sequence

from netkit.cli.bounds import bounded, each_in_time
from netkit.cli.fabric import Project
from netkit.cli.progress import progress
from netkit.design.select import Device
from netkit.platforms.config import Files
from netkit.render import Engine, render


def intended(project: Project, devices: Sequence[Device]) -> Mapping[str, Files]:
    """Return the intended files of some devices."""
    rendered = render(project.fabric, devices, Engine(project.template_folders))
    with progress("rendering", len(devices)) as shown, bounded():
        return {one.device: one.files for one in shown(each_in_time(rendered))}

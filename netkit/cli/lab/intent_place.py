"""Which line of intent a device comes from."""

from netkit.design.fabric import Switch
from netkit.errors import Path, Problem
from netkit.project.project import Project


def of_device(project: Project, name: str) -> Path:
    """Return the path of the entry that decides most about a device: its override, its unit, or its tier."""
    if name in project.intent.overrides:
        return ("overrides", name)
    device = project.fabric.device(name)
    if isinstance(device, Switch) and device.role != "leaf":
        return ("switches", device.role)
    if device is not None:
        for index, entry in enumerate(project.intent.units):
            if device.unit in entry.unit and device.pod in entry.pod:
                return ("units", index)
    return ()


def placed(project: Project, name: str, what: str) -> Problem:
    """Return a problem with a device at its line of intent."""
    return project.loaded.places.locate(Problem(f"{name}: {what}", path=of_device(project, name)))

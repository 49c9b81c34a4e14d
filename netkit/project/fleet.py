"""The devices of a fabric as they are reached: the real ones, or those of a lab and then nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from netkit.access import connect, settings
from netkit.access.endpoint import Endpoint
from netkit.access.endpoints import endpoint_of, endpoints, lab_endpoints
from netkit.access.secrets import SecretStore
from netkit.access.source import NATIVE, Origin, origin, viewer
from netkit.errors import AccessError, LabError, Problem, UsageError
from netkit.lab.folder import lab_folder
from netkit.platforms.driver import Driver
from netkit.platforms.shell_batch import SHARE
from netkit.platforms.view import Viewer
from netkit.project.project import PLAYBOOKS, Project, beside


@dataclass(frozen=True, slots=True)
class Fleet:
    """Where devices are, and what opens them."""

    endpoints: Mapping[str, Endpoint]
    secrets: SecretStore
    lab: str = ""
    """The lab they belong to; empty for real devices."""
    playbooks: tuple[Path, ...] = ()
    """The user's own folders of playbooks."""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Platform → where the facts of its devices come from; native when it is not here."""

    def endpoint(self, device: str) -> Endpoint:
        """Return where a device is; AccessError when it is nowhere."""
        return endpoint_of(self.endpoints, device, self.lab)

    def connect(self, device: str) -> Driver:
        """Return the driver of a device, not opened yet."""
        return connect.connect(self.endpoint(device), self.secrets, self.playbooks)

    def viewer(self, device: str) -> Viewer:
        """Return what looks at a device, not opened yet."""
        endpoint = self.endpoint(device)
        return viewer(endpoint, self.secrets, self.origin(endpoint.platform))

    def origin(self, platform: str) -> Origin:
        """Return where the facts of a platform's devices come from."""
        return self.origins.get(platform, NATIVE)


def fleet(project: Project, *, source: str = "") -> Fleet:
    """Return the devices of a fabric, or those of its lab, which are looked at through a source of facts."""
    access = settings.load(project.folder)
    secrets = SecretStore(access.secrets)
    playbooks = beside(project.folder, PLAYBOOKS)
    origins = _origins(project, access, source, is_lab=bool(project.lab))
    if project.lab:
        return Fleet(_of_lab(project, project.lab, access), secrets, project.lab, playbooks, origins)
    found = endpoints(project.fabric, access, project.folder)
    return Fleet(found, secrets, playbooks=playbooks, origins=origins)


def _origins(project: Project, access: settings.AccessSettings, source: str, *, is_lab: bool) -> Mapping[str, Origin]:
    asked = chosen_source(source)
    platforms = {switch.platform for switch in project.fabric.switches}
    return {name: origin(project.fabric, access, name, asked, is_lab=is_lab) for name in sorted(platforms)}


def chosen_source(name: str) -> settings.FactSource | None:
    """Return the source of facts of a name; none of an empty one."""
    sources: tuple[settings.FactSource, ...] = get_args(settings.FactSource)
    if name and name not in sources:
        raise UsageError(Problem(f"no source of facts {name!r}", f"use one of {', '.join(sources)}"))
    return next((one for one in sources if one == name), None)


def patient_viewer(reached: Fleet, name: str, limit_s: float) -> Viewer:
    """Return what asks a host, with the patience that its longest run needs."""
    return connect.viewer(replace(reached.endpoint(name), timeout_s=limit_s * SHARE), reached.secrets)


def lab_path(name: str) -> Path:
    """Return the folder of a lab that runs."""
    folder = lab_folder(name)
    if not folder.is_alive:
        raise LabError(Problem(f"no lab {name} runs", "netkit lab up --fabric DIR"))
    return folder.path


def _of_lab(project: Project, name: str, access: settings.AccessSettings) -> Mapping[str, Endpoint]:
    path = lab_path(name)
    found = lab_endpoints(lab_folder(name).record(), path, access)
    for device, endpoint in found.items():
        wanted = _platform(project, device)
        if wanted and endpoint.platform != wanted:
            what = f"in the lab {name} it speaks {endpoint.platform}, in the fabric {wanted}"
            raise AccessError(Problem(f"{device}: {what}", "netkit lab down, then netkit lab up"))
    return found


def _platform(project: Project, name: str) -> str:
    device = project.fabric.device(name)
    return "" if device is None else device.platform

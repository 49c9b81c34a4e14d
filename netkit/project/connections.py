"""How the devices of a fabric are reached: the real ones, or those of a lab and then nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from netkit.access import connect, settings
from netkit.access.endpoints import endpoint_of, endpoints, lab_endpoints
from netkit.access.secrets import SecretStore
from netkit.access.settings import Endpoint
from netkit.access.source import NATIVE, Origin, origin, viewer
from netkit.errors import AccessError, LabError, Problem, UsageError
from netkit.lab.folder import lab_folder
from netkit.platforms.driver import Driver
from netkit.platforms.view import SHARE, Viewer
from netkit.project.project import PLAYBOOKS, Project, beside


@dataclass(frozen=True, slots=True)
class Connections:
    """Endpoints of devices, and what opens connections to them."""

    endpoints: Mapping[str, Endpoint]
    secrets: SecretStore
    lab: str = ""
    """The lab they belong to; empty for real devices."""
    playbooks: tuple[Path, ...] = ()
    """The user's own folders of playbooks."""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Platform → source of facts of its devices; native when it is missing."""

    @classmethod
    def of(cls, project: Project, *, source: str = "") -> "Connections":
        """Find how the devices of a fabric, or of its lab, are reached, with `source` for their facts."""
        access = settings.load(project.folder)
        secrets = SecretStore(access.secrets)
        playbooks = beside(project.folder, PLAYBOOKS)
        chosen, platforms = chosen_source(source), {switch.platform for switch in project.fabric.switches}
        is_lab = bool(project.lab)
        origins = {name: origin(project.fabric, access, name, chosen, is_lab=is_lab) for name in sorted(platforms)}
        if project.lab:
            return cls(_of_lab(project, project.lab, access), secrets, project.lab, playbooks, origins)
        found = endpoints(project.fabric, access, project.folder)
        return cls(found, secrets, playbooks=playbooks, origins=origins)

    def endpoint(self, device: str) -> Endpoint:
        """The endpoint of a device; AccessError if it has none."""
        return endpoint_of(self.endpoints, device, self.lab)

    def source(self, device: str) -> str:
        """The address that connections to a device come from; empty if it is not known, as in a lab."""
        endpoint = self.endpoints.get(device)
        return connect.source(endpoint) if endpoint and not self.lab else ""

    def connect(self, device: str) -> Driver:
        """The driver of a device, not opened yet."""
        return connect.connect(self.endpoint(device), self.secrets, self.playbooks)

    def viewer(self, device: str) -> Viewer:
        """The viewer of a device, not opened yet."""
        endpoint = self.endpoint(device)
        return viewer(endpoint, self.secrets, self.origin(endpoint.platform))

    def origin(self, platform: str) -> Origin:
        return self.origins.get(platform, NATIVE)


def chosen_source(name: str) -> settings.FactSource | None:
    """Validate the name of a source of facts; None if it is empty."""
    sources: tuple[settings.FactSource, ...] = get_args(settings.FactSource)
    if name and name not in sources:
        raise UsageError(Problem(f"no source of facts {name!r}", f"use one of {', '.join(sources)}"))
    return next((one for one in sources if one == name), None)


def patient_viewer(reached: Connections, name: str, limit_s: float) -> Viewer:
    """The viewer of a host with a time limit that fits its longest measurement."""
    return connect.viewer(replace(reached.endpoint(name), timeout_s=limit_s * SHARE), reached.secrets)


def lab_path(name: str) -> Path:
    """The folder of a running lab."""
    folder = lab_folder(name)
    if not folder.is_alive:
        raise LabError(Problem(f"the lab {name} does not run", "netkit lab up --fabric DIR"))
    return folder.path


def _of_lab(project: Project, name: str, access: settings.AccessSettings) -> Mapping[str, Endpoint]:
    path = lab_path(name)
    found = lab_endpoints(lab_folder(name).record(), path, access)
    for device, endpoint in found.items():
        known = project.fabric.device(device)
        if known is not None and endpoint.platform != known.platform:
            what = f"runs {endpoint.platform} in the lab {name}, but {known.platform} in the fabric"
            raise AccessError(Problem(f"{device}: {what}", "netkit lab down, then netkit lab up"))
    return found

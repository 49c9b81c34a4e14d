"""Fabric → the files of each device."""

from collections.abc import Iterable, Iterator
from typing import Any

from netkit import __version__
from netkit.design.fabric import Fabric, Host, Switch
from netkit.platforms import PLATFORMS
from netkit.render.engine import Engine
from netkit.render.output import Rendered
from netkit.render.views import host_views, switch_views


def render(
    fabric: Fabric, devices: Iterable[Switch | Host], engine: Engine, *, ztp: bool = False
) -> Iterator[Rendered]:
    """Yield the files of each device, one device at a time."""
    views = host_views(fabric)
    for device in devices:
        artifacts = switch_views(fabric, device, ztp=ztp) if isinstance(device, Switch) else views(device)
        files = {
            artifact.file: engine.render(artifact.template, artifact.context, device.name) for artifact in artifacts
        }
        yield Rendered(device.name, files, _about(device))


def manifest_head(fabric: Fabric) -> dict[str, Any]:
    """Return what the manifest says about the render as a whole."""
    return {"netkit": __version__, "fabric": fabric.name, "purpose": fabric.purpose}


def _about(device: Switch | Host) -> dict[str, Any]:
    if isinstance(device, Host):
        return {"role": "host", "platform": "linux", "model": device.model.name}
    platform = PLATFORMS[device.platform]
    lacks = {
        feature: capability.note for feature, capability in platform.capabilities.items() if not capability.is_available
    }
    return {
        "role": device.role,
        "platform": device.platform,
        "version": device.version,
        "model": device.model.name,
        **({"not_expressed": lacks} if lacks else {}),
    }

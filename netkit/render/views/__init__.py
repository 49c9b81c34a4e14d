"""One view per platform: everything a template needs, decided beforehand, so that templates only loop."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from netkit.design.fabric import Fabric, Host, Switch
from netkit.platforms import registry
from netkit.render.artifact import Artifact
from netkit.render.views import host


def switch_views(fabric: Fabric, switch: Switch, *, ztp: bool = False) -> Iterator[Artifact]:
    """Yield the files of a switch, and with `ztp` those of its first boot, by which it becomes reachable."""
    is_own = switch.platform in registry.OWN  # few fabrics have all of them
    view: Any = import_module(f"{__name__}.{switch.platform}") if is_own else registry.part(switch.platform, "view")
    yield from view.artifacts(fabric, switch)
    if ztp:
        yield from view.ztp(fabric, switch)


def host_views(fabric: Fabric) -> Callable[[Host], Iterator[Artifact]]:
    """Return the function that yields the files of a host."""
    return host.views(fabric)

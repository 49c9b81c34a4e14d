"""One view per platform: everything a template needs, decided beforehand, so that templates only loop."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from netkit.design.fabric import Fabric, Host, Switch
from netkit.render.artifact import Artifact
from netkit.render.views import host


def switch_views(fabric: Fabric, switch: Switch, *, ztp: bool = False) -> Iterator[Artifact]:
    """Yield the files of a switch, and with `ztp` those of its first boot, by which it becomes reachable."""
    view: Any = importlib.import_module(f"netkit.render.views.{switch.platform}")  # few fabrics have all of them
    yield from view.artifacts(fabric, switch)
    if ztp:
        yield from view.ztp(fabric, switch)


def host_views(fabric: Fabric) -> Callable[[Host], Iterator[Artifact]]:
    """Return the function that yields the files of a host."""
    return host.views(fabric)

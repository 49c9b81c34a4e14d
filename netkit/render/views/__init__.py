"""One view per platform: everything a template needs, decided beforehand, so that templates only loop."""

from collections.abc import Callable, Iterator

from netkit.design.fabric import Fabric, Host, Switch
from netkit.render.artifact import Artifact
from netkit.render.views import eos, frr, host, nvue, sonic

SWITCH_VIEWS: dict[str, Callable[[Fabric, Switch], Iterator[Artifact]]] = {
    "eos": eos.artifacts,
    "frr": frr.artifacts,
    "nvue": nvue.artifacts,
    "sonic": sonic.artifacts,
}

ZTP_VIEWS: dict[str, Callable[[Fabric, Switch], Iterator[Artifact]]] = {
    "eos": eos.ztp,
    "frr": frr.ztp,
    "nvue": nvue.ztp,
    "sonic": sonic.ztp,
}
"""What a factory-fresh switch needs to become reachable."""


def switch_views(fabric: Fabric, switch: Switch, *, ztp: bool = False) -> Iterator[Artifact]:
    """Yield the files of a switch, and with `ztp` those of its first boot."""
    yield from SWITCH_VIEWS[switch.platform](fabric, switch)
    if ztp:
        yield from ZTP_VIEWS[switch.platform](fabric, switch)


def host_views(fabric: Fabric) -> Callable[[Host], Iterator[Artifact]]:
    """Return the function that yields the files of a host."""
    return host.views(fabric)
